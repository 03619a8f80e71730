"""A YAML file as JSON values, each with its line and column.

Plain scalars are what the core schema of YAML 1.2 says: `no` and `2013-01-31` are texts, and
`true`, `null` and numbers are not.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

NODES_MAX = 2_000_000
"""Values of one file, aliases counted as often as they stand: a small file must not become a large
one."""
DEPTH_MAX = 64
_NULL = re.compile(r"~|null|Null|NULL|")
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


class YamlFault(Exception):
    """A file that cannot be read, with its place, both from 1."""

    def __init__(self, line: int, column: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.column = column
        self.reason = reason


@dataclass(frozen=True, slots=True)
class YamlDocument:
    value: Any
    places: dict[str, tuple[int, int]]
    """JSON pointer -> line and column, both from 1."""


def documents(text: str) -> Iterator[YamlDocument]:
    """Raises YamlFault."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for node in yaml.compose_all(text, Loader=loader):
            reader = _YamlReader()
            yield YamlDocument(reader.value(node, "", 0), reader.places)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = str(error.problem or error.context)
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise YamlFault(line, column, reason) from error
    except yaml.YAMLError as error:
        raise YamlFault(1, 1, str(error).partition("\n")[0]) from error


class _YamlReader:
    def __init__(self) -> None:
        self.places: dict[str, tuple[int, int]] = {}

    def value(self, node: Any, pointer: str, depth: int) -> Any:
        if node is None:
            return None
        if depth > DEPTH_MAX:
            raise _fault(node, f"values are at most {DEPTH_MAX} deep")
        if len(self.places) > NODES_MAX:
            raise _fault(node, f"at most {NODES_MAX} values")
        self.places[pointer] = (node.start_mark.line + 1, node.start_mark.column + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, pointer, depth)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.value(each, f"{pointer}/{number}", depth + 1)
                for number, each in enumerate(node.value)
            ]
        return _scalar(node)

    def _mapping(self, node: Any, pointer: str, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _fault(key, "a name is a text")
            name = key.value
            if name in members:
                raise _fault(key, f"{name} stands here twice")
            escaped = name.replace("~", "~0").replace("/", "~1")
            members[name] = self.value(value, f"{pointer}/{escaped}", depth + 1)
        return members


def _scalar(node: Any) -> Any:
    text: str = node.value
    if node.style:  # in quotes or a block; of a plain scalar "" or None
        return text
    if _NULL.fullmatch(text):
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text):
        return text
    if math.isinf(number := float(text)):
        raise _fault(node, "the number is too large")
    return number


def _fault(node: Any, reason: str) -> YamlFault:
    return YamlFault(node.start_mark.line + 1, node.start_mark.column + 1, reason)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Puts texts into quotes that are numbers of YAML 1.2 and not of 1.1, as `09` and `1e5`; those
    of 1.1 the library knows."""


def _text_node(dumper: Any, text: str) -> Any:
    style = "'" if _NUMBER.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text_node)


def yaml_text(value: Any) -> str:
    """A value as YAML that `documents` reads back, members in their order."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
    )
    return text
