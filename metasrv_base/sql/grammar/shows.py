"""Statements that read the catalog: SHOW, DESCRIBE."""

from collections.abc import Callable, Mapping

from metasrv_base.sql.commands import (
    DescribeTable,
    NameInCatalog,
    QualifiedTable,
    Show,
    ShowCreateTable,
)
from metasrv_base.sql.names import name_in_catalog, table_name
from metasrv_base.sql.reader import Reader

OfObject = QualifiedTable | NameInCatalog | None


def show(reader: Reader) -> Show | ShowCreateTable:
    """Reads what follows SHOW."""
    if reader.takes("CREATE"):
        reader.must_take("TABLE")
        return ShowCreateTable(table_name(reader))
    word = reader.choose(*_LISTINGS)
    return _LISTINGS[word](reader)


def describe(reader: Reader) -> DescribeTable:
    """Reads what follows DESCRIBE or DESC."""
    reader.takes("TABLE")
    return DescribeTable(table_name(reader))


def _of(reader: Reader, read: Callable[[Reader], OfObject]) -> OfObject:
    return read(reader) if reader.takes("FROM") or reader.takes("IN") else None


def _schema(reader: Reader) -> OfObject:
    return name_in_catalog(reader, "a schema", "/schema")


def _catalog(reader: Reader) -> OfObject:
    return NameInCatalog(reader.name("a catalog", "/catalog"))


def _indexes(reader: Reader) -> Show:
    reader.choose("FROM", "IN", "ON")
    return Show("indexes", table_name(reader))


_LISTINGS: Mapping[str, Callable[[Reader], Show]] = {
    "CATALOGS": lambda reader: Show("catalogs"),
    "SCHEMAS": lambda reader: Show("schemas", _of(reader, _catalog)),
    "DATABASES": lambda reader: Show("schemas", _of(reader, _catalog)),
    "TABLES": lambda reader: Show("tables", _of(reader, _schema)),
    "INDEXES": _indexes,
    "PLACEMENTS": lambda reader: Show("placements"),
    "TABLESPACES": lambda reader: Show("tablespaces", _of(reader, _catalog)),
}
