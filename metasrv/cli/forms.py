"""`-o`: the forms in which a command shows objects, beside its table for people."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from metasrv.cli.output import plain, show_json


class Form(StrEnum):
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    WIDE = "wide"


Output = Annotated[
    Form | None,
    typer.Option(
        "--output", "-o", help="json, yaml, name (one a line), or wide (a table with more columns)."
    ),
]
_PLAIN = re.compile(r"[a-z_]+[a-z0-9_]*", re.ASCII)
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
"""Words that YAML does not read as text."""
ForPeople = Callable[[], None]


def form_of(output: Form | None, as_json: bool) -> Form | None:
    """The form of both options; `--json` is short for `-o json`. Raises BadParameter."""
    if as_json and output not in (None, Form.JSON):
        raise typer.BadParameter(f"--json and -o {output}: say one of them")
    return Form.JSON if as_json else output


def show_form(
    form: Form | None,
    body: Any,
    names: Iterable[str],
    for_people: ForPeople,
    wide: ForPeople | None = None,
) -> None:
    """Shows *body*, a model or a list of models. *names*: of its objects. *wide*: None if the table
    for people has all columns."""
    match form:
        case Form.JSON:
            show_json(body)
        case Form.YAML:
            typer.echo("\n".join(yaml_lines(plain(body))))
        case Form.NAME:
            for name in names:
                typer.echo(name)
        case Form.WIDE:
            (wide or for_people)()
        case None:
            for_people()


def yaml_lines(value: Any) -> Iterator[str]:
    """JSON as YAML blocks. Scalars stay as JSON has them, which YAML reads alike."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            key = name if _PLAIN.fullmatch(name) and name not in _WORDS else _scalar(name)
            yield from _entry(f"{key}:", item)
    elif isinstance(value, list) and value:
        for item in value:
            first, *rest = yaml_lines(item)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _entry(head: str, item: Any) -> Iterator[str]:
    if isinstance(item, Mapping | list) and item:
        yield head
        yield from (f"  {line}" for line in yaml_lines(item))
    else:
        yield f"{head} {_scalar(item)}"


def _scalar(value: Any) -> str:
    """A scalar as JSON has it; what cannot be printed is escaped as YAML does."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
