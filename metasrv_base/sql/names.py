"""Names of objects in SQL: their parts, and when they need quotes."""

import re

from metasrv_base.expressions.tokens import WORDS
from metasrv_base.sql.commands import NameInCatalog, QualifiedTable
from metasrv_base.sql.quoting import quoted_name
from metasrv_base.sql.reader import Reader

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_QUOTED = WORDS | {"primary", "constraint", "check", "unique", "foreign", "exclude", "like"}
"""Words that a column cannot be called without quotes."""


def table_name(reader: Reader, expected: str = "a table") -> QualifiedTable:
    """Reads `[[catalog.]schema.]table`."""
    *holders, table = _parts(reader, expected, most=3)
    schema = holders[-1] if holders else None
    return QualifiedTable(table, schema, holders[0] if len(holders) == 2 else None)


def name_in_catalog(reader: Reader, expected: str, pointer: str | None = None) -> NameInCatalog:
    """Reads `[catalog.]name`; *pointer* stands for the name."""
    first = reader.name(expected, pointer)
    if not reader.takes("."):
        return NameInCatalog(first)
    return NameInCatalog(reader.name(expected, pointer), first)


def _parts(reader: Reader, expected: str, most: int) -> list[str]:
    parts = [reader.name(expected, "/name")]
    while len(parts) < most and reader.takes("."):
        parts.append(reader.name(expected, "/name"))
    return parts


def identifier(name: str) -> str:
    """A name as it is printed: with quotes where it needs them."""
    is_plain = _BARE.fullmatch(name) is not None and name.lower() not in _QUOTED
    return name if is_plain else quoted_name(name)


def dotted(*parts: str | None) -> str:
    """The parts that there are."""
    return ".".join(identifier(part) for part in parts if part is not None)
