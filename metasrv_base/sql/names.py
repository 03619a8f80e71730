"""Names of objects read from SQL: their parts."""

from metasrv_base.sql.commands import NameInCatalog, QualifiedTable
from metasrv_base.sql.reader import Reader


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
