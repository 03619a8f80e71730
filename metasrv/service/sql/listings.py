"""The statements that read the catalog: SHOW, SHOW CREATE TABLE, DESCRIBE. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import assert_never

from pydantic import JsonValue

from keys.catalog.catalog import Catalog
from metasrv.service.bodies.shapes import table_definition
from metasrv.service.requests.ddl_request import must_have_catalog, schema_named, table_named
from metasrv.service.sql.session import SqlSession
from metasrv_base.elements.states import ElementState
from metasrv_base.sql import commands as sql
from metasrv_base.sql.identifiers import identifier
from metasrv_base.sql.printing.table_sql import statements_of
from metasrv_base.sql.types import type_name
from metasrv_base.wire.language.sql import ROWS_MAX

Row = tuple[JsonValue, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    columns: tuple[str, ...]
    types: tuple[str, ...]
    """Types of the columns; empty where values of one column are of several."""
    rows: tuple[Row, ...]
    is_cut: bool
    """Whether there are more than ROWS_MAX."""


def listing(
    catalog: Catalog,
    session: SqlSession,
    command: sql.Show | sql.ShowCreateTable | sql.DescribeTable,
) -> Listing:
    """Raises NotFound, with what comes close."""
    match command:
        case sql.Show():
            return _show(catalog, session, command)
        case sql.ShowCreateTable(name):
            table = table_named(catalog, session.table(name))
            text = ";\n".join(statements_of(table_definition(table.info, catalog.placing)))
            return _cut(("table", "statements"), [(table.info.full_name, text)])
        case sql.DescribeTable(name):
            columns = ("column", "type", "nullable", "default", "key")
            return _cut(columns, _columns(catalog, session, name), ())
        case _:
            assert_never(command)


def _columns(catalog: Catalog, session: SqlSession, name: sql.QualifiedTable) -> Iterator[Row]:
    info = table_named(catalog, session.table(name)).info
    places = {column: number for number, column in enumerate(info.primary_key, 1)}
    for column in info.columns:
        if column.state is ElementState.PUBLIC:
            type = type_name(column.type)
            yield column.name, type, column.nullable, column.default, places.get(column.id)


def _show(catalog: Catalog, session: SqlSession, command: sql.Show) -> Listing:
    of = command.of
    match command.listing:
        case "catalogs":
            return _cut(("catalog",), _named(catalog.catalogs))
        case "placements":
            return _cut(("placement",), _named(catalog.placing.placements))
        case "schemas":
            tenant = of.name if isinstance(of, sql.NameInCatalog) else session.catalog
            must_have_catalog(catalog, tenant)
            return _cut(
                ("schema",), _named(name for held, name in catalog.schemas if held == tenant)
            )
        case "tablespaces":
            tenant = of.name if isinstance(of, sql.NameInCatalog) else session.catalog
            must_have_catalog(catalog, tenant)
            return _cut(("tablespace",), _named(catalog.placing.tablespaces_of(tenant)))
        case "tables":
            holder = of if isinstance(of, sql.NameInCatalog) else sql.NameInCatalog(session.schema)
            schema = session.schema_named(holder)
            schema_named(catalog, schema)
            there = catalog.in_schema(schema.catalog, schema.schema)
            rows = ((table.info.name, str(table.info.table_id)) for table in there)
            return _cut(("table", "id"), rows)
        case "indexes":
            assert isinstance(of, sql.QualifiedTable)
            return _indexes(catalog, session, of)
        case _:
            assert_never(command.listing)


def _indexes(catalog: Catalog, session: SqlSession, name: sql.QualifiedTable) -> Listing:
    info = table_definition(table_named(catalog, session.table(name)).info, catalog.placing)
    rows = (
        (index.name, ", ".join(map(identifier, index.columns)), index.unique, str(index.state))
        for index in info.indexes
    )
    types = ("string", "string", "boolean", "string")
    return _cut(("index", "columns", "unique", "state"), rows, types)


def _named(names: Iterable[str]) -> Iterator[Row]:
    return ((name,) for name in sorted(names))


def _cut(
    columns: tuple[str, ...], rows: Iterable[Row], types: tuple[str, ...] | None = None
) -> Listing:
    """Cuts the rows at ROWS_MAX. *types*: by default strings."""
    some = tuple(islice(rows, ROWS_MAX + 1))
    types = ("string",) * len(columns) if types is None else types
    return Listing(columns, types, some[:ROWS_MAX], len(some) > ROWS_MAX)
