"""docs/keyspace.md, made from the families: what an operator reads beside `etcdctl get`."""

from collections.abc import Iterator, Mapping
from enum import Enum
from inspect import cleandoc
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from keys.model.families import FAMILIES, KeyFamily
from metasrv_base.described import descriptions

PATH = "docs/keyspace.md"
HEADER = """\
# The key space

Generated from `keys/model/families.py` by `make generate`; do not edit.

Every key stands under the cluster's prefix, which may be empty. Values are JSON; unknown fields
are refused. `format` is the number of the format a value was written in, 1
so far; a value of a higher one was written by a newer server and is never rewritten by an older.
Read them with `etcdctl get --prefix __table_info/`.
"""


def pages() -> Mapping[str, str]:
    """Returns the generated pages; called by scripts/generate.py."""
    return {PATH: keyspace_page()}


def keyspace_page() -> str:
    parts: dict[str, type[BaseModel]] = {}
    sections = [HEADER, *_summary()]
    for family in FAMILIES:
        sections += ["", f"## `{family.key.template}`", "", *_family_lines(family)]
        parts |= _parts_of(family.key.value_type, set())
    stored = {family.key.value_type.__name__ for family in FAMILIES}
    sections += ["", "## Parts of values"]
    for name, part in sorted(parts.items()):
        if name not in stored:
            sections += ["", f"### {name}", "", *_model_lines(part)]
    return "\n".join(sections) + "\n"


def _summary() -> Iterator[str]:
    yield "| key | value | written by |"
    yield "| --- | --- | --- |"
    for family in FAMILIES:
        value = family.key.value_type.__name__
        yield f"| `{family.key.template}` | {value} | {family.written_by} |"


def _family_lines(family: KeyFamily) -> Iterator[str]:
    # The generated docstring of a dataclass repeats its signature; only one we wrote is prose.
    written = family.key.__doc__ or ""
    if not written.startswith(f"{family.key.__name__}("):
        yield from (cleandoc(written), "")
    yield f"Value: {family.key.value_type.__name__}. Written by: {family.written_by}."
    yield ""
    yield from _model_lines(family.key.value_type)


def _model_lines(model: type[BaseModel]) -> Iterator[str]:
    written = model.__dict__.get("__doc__")
    if written:
        yield from (cleandoc(written), "")
    yield "| field | type | |"
    yield "| --- | --- | --- |"
    texts = descriptions(model)
    for name, field in model.model_fields.items():
        prose = " ".join(texts.get(name, "").split())
        yield f"| `{field.alias or name}` | {_type_text(field.annotation)} | {prose} |"


def _type_text(kind: Any) -> str:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _type_text(args[0])
    if origin in (Union, UnionType):
        return " or ".join(_type_text(arg) for arg in args)
    if origin is tuple:
        return f"list of {_type_text(args[0])}"
    if origin is dict:
        return f"object of {_type_text(args[1])}"
    if origin is not None:
        return " or ".join(f"`{arg}`" for arg in args)
    if kind is Any:
        return "any JSON"
    if kind is type(None):
        return "null"
    if issubclass(kind, Enum):
        return " or ".join(f"`{member.value}`" for member in kind)
    return str(kind.__name__)


def _parts_of(kind: Any, visited: set[Any]) -> dict[str, type[BaseModel]]:
    """Every model that is reached from *kind*."""
    models: dict[str, type[BaseModel]] = {}
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in visited:
        visited.add(kind)
        models[kind.__name__] = kind
        for field in kind.model_fields.values():
            models |= _parts_of(field.annotation, visited)
    for arg in get_args(kind):
        models |= _parts_of(arg, visited)
    return models
