"""A column as an option says it: `NAME:TYPE`, then `!` for not null, then `=DEFAULT`.

The words of SQL are taken too: `price decimal(10,2) not null default 1.5`.
"""

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import typer

from metasrv_base.errors import Refused

if TYPE_CHECKING:
    from metasrv_base.schema.types import ColumnType

_COLUMN = re.compile(
    r"(?P<name>[^\s:]+)(?:\s*:\s*|\s+)(?P<type>\w+\s*(?:\([^)]*\))?)\s*"
    r"(?P<required>!|not\s+null\b)?\s*(?:(?:=|default\s)(?P<default>.*))?",
    re.IGNORECASE | re.DOTALL,
)
_BETWEEN = re.compile(r",(?![^(]*\))")
"""A comma that is not inside of parentheses."""
_NEAR: Mapping[str, str] = {
    "varchar": "string",
    "text": "string",
    "char": "string",
    "str": "string",
    "uuid": "string",
    "json": "string",
    "bool": "boolean",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32` or `int64",
    "integer": "int32` or `int64",
    "bigint": "int64",
    "long": "int64",
    "float": "float64",
    "real": "float32",
    "double": "float64",
    "bytes": "binary",
    "bytea": "binary",
    "blob": "binary",
    "decimal": "decimal(10,2)",
    "numeric": "decimal(10,2)",
    "timestamp": "timestamp(us)",
    "timestamptz": "timestamp(us)",
    "datetime": "timestamp(us)",
    "time": "timestamp(us)",
}
"""Names of types elsewhere, without what stands in parentheses -> ours."""
_TEXT_IN_JSON = frozenset({"string", "decimal", "date", "timestamp", "binary"})
TYPE_NAMES = (
    *("boolean", "int8", "int16", "int32", "int64", "float32", "float64", "string", "binary"),
    *("date", "decimal(p,s)", "timestamp(s|ms|us|ns)"),
)
"""Names of types, as in metasrv_base/schema/types.py, which imports Arrow."""
TYPES = " ".join(TYPE_NAMES)


def named_types(text: str, option: str) -> dict[str, str]:
    """Types by column, from `a:int64,b:decimal(10,2)`. *option*: named in errors."""
    types: dict[str, str] = {}
    for part in _BETWEEN.split(text):
        name, colon, type = (word.strip() for word in part.partition(":"))
        if not name or not colon:
            raise typer.BadParameter(f"{option} {part}: say NAME:TYPE, as 'a:int64,b:string'")
        if name in types:
            raise typer.BadParameter(f"{option}: column {name} has two types")
        types[name] = type_of(type, f"{option} {part}").text
    return types


def column_of(text: str, option: str) -> dict[str, Any]:
    """The column that *text* describes, as a ColumnSpec. *option*: named in errors."""
    match = _COLUMN.fullmatch(text.strip())
    if match is None:
        format_text = "NAME:TYPE, then ! for not null, then =DEFAULT, as 'price:decimal(10,2)!=1.5'"
        raise typer.BadParameter(f"{option} {text}: a column is {format_text}")
    type = type_of(match["type"], f"{option} {text}")
    column = {"name": match["name"], "type": type.text, "nullable": match["required"] is None}
    if match["default"] is not None:
        column["default"] = default_of(type, match["default"].strip())
    return column


def type_of(text: str, where: str) -> "ColumnType":
    """The type of that text. *where*: the option, named in errors."""
    from metasrv_base.schema.types import parse_type

    plain = re.sub(r"\s", "", text)
    try:
        return parse_type(plain)
    except Refused as error:
        near = near_type(plain)
        hint = f"did you mean `{near}`? " if near else ""
        message = f"{where}: there is no type {text}; {hint}The types: {TYPES}"
        raise typer.BadParameter(message) from error


def near_type(text: str) -> str | None:
    """Our type for a name of another system, or for a slip of the finger."""
    name, _, rest = text.lower().partition("(")
    if name in ("decimal", "numeric") and re.fullmatch(r"\d+,\d+\)", rest):
        return f"decimal({rest}"
    if name in _NEAR:
        return _NEAR[name]
    close = get_close_matches(name, TYPE_NAMES, n=1)
    return close[0] if close else None


def default_of(type: "ColumnType", text: str) -> Any:
    """The JSON form of a default, in which quotes may be left out; `null`: none."""
    try:
        value = json.loads(text)
    except ValueError:
        return text.strip("'")
    is_text = isinstance(value, str) or value is None
    return value if is_text or type.name not in _TEXT_IN_JSON else text
