"""Rows of views of tables and of what they are made of, one function for each view. Pure."""

from collections.abc import Iterator, Mapping

from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.tables import Column, TableInfo
from metasrv.service.bodies.shapes import shown_check
from metasrv.service.views.view import Row, ViewColumn, ViewFacts, yes_no
from metasrv_base.elements.states import ElementState
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.sql.identifiers import identifier
from metasrv_base.sql.literals import literal
from metasrv_base.sql.types import type_name
from procedures.quorum import min_in_sync

PRIMARY_KEY = "PRIMARY KEY"
_KINDS = {"unique": "UNIQUE", "check": "CHECK", "not-null": "NOT NULL"}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "float32": 24, "float64": 53}
OF_TABLE = (
    ViewColumn("table_catalog", "string", "The catalog that holds the table."),
    ViewColumn("table_schema", "string", "The schema that holds the table."),
    ViewColumn("table_name", "string", "The name of the table."),
    ViewColumn("table_id", "int64", "The id of the table; a rename keeps it."),
)


def of_table(info: TableInfo) -> tuple[str, str, str, int]:
    """The values of `OF_TABLE`."""
    return info.catalog, info.schema_name, info.name, info.table_id


def named_list(names: Iterator[str]) -> str:
    return ", ".join(map(identifier, names))


def tables_rows(facts: ViewFacts, table: CatalogTable) -> Iterator[Row]:
    info, placed = table.info, facts.catalog.placing.names_of(table.info)
    names = {column.id: column.name for column in info.columns}
    yield (
        *of_table(info),
        "BASE TABLE",
        info.engine,
        info.options.get("comment"),
        len(info.public_columns),
        len(info.indexes),
        len(info.constraints),
        len(table.route.region_routes),
        named_list(names[column] for column in info.primary_key),
        info.partition.by.upper(),
        info.replicas,
        min_in_sync(info),
        placed.placement,
        placed.storage_profile,
        placed.tablespace,
        info.version,
        info.schema_version,
        table.catalog_version,
        info.created_at_ms,
    )


def dropped_rows(facts: ViewFacts, table: CatalogTable) -> Iterator[Row]:
    info = table.info
    yield (
        *of_table(info),
        len(table.route.region_routes),
        info.version,
        info.created_at_ms,
        table.dropped_at_ms,
        table.dropped_by,
    )


def columns_rows(facts: ViewFacts, table: CatalogTable) -> Iterator[Row]:
    places = {column: position for position, column in enumerate(table.info.primary_key, 1)}
    for ordinal, column in enumerate(table.info.public_columns, 1):
        yield (*of_table(table.info), *_column(ordinal, column), places.get(column.id))


def _column(ordinal: int, column: Column) -> Row:
    type = parse_type(column.type)
    is_whole = type.name == "decimal" or type.name.startswith("int")
    return (
        column.name,
        column.id,
        ordinal,
        None if column.default is None else literal(column.default, type),
        yes_no(column.nullable),
        type_name(column.type),
        column.type,
        _precision(type),
        10 if type.name == "decimal" else 2 if type.name in _BITS else None,
        (type.scale if type.name == "decimal" else 0) if is_whole else None,
        _DIGITS[type.unit] if type.name == "timestamp" else 0 if type.name == "date" else None,
    )


def _precision(type: ColumnType) -> int | None:
    return type.precision if type.name == "decimal" else _BITS.get(type.name)


def indexes_rows(facts: ViewFacts, table: CatalogTable) -> Iterator[Row]:
    names = _names(table.info)
    for index in table.info.indexes:
        columns = named_list(names[column] for column in index.columns)
        unique, state = yes_no(index.unique), index.state.value
        yield (*of_table(table.info), index.name, index.id, columns, unique, state)


def constraints_rows(facts: ViewFacts, table: CatalogTable) -> Iterator[Row]:
    """The primary key, which has no name, and the others; those of a state that is not public are
    enforced already, or still."""
    names = _names(table.info)
    own = of_table(table.info)
    key = named_list(names[column] for column in table.info.primary_key)
    public = ElementState.PUBLIC.value
    yield (*own, None, PRIMARY_KEY, None, key, None, "YES", public)
    for each in table.info.constraints:
        yield (
            *own,
            each.name,
            _KINDS[each.kind.value],
            each.id,
            named_list(names[column] for column in each.columns),
            shown_check(each, names),
            yes_no(each.holds),
            each.state.value,
        )


def partitions_rows(facts: ViewFacts, table: CatalogTable) -> Iterator[Row]:
    info, rule = table.info, table.info.partition
    names, regions = _names(info), table.route.region_routes
    types = {column.id: parse_type(column.type) for column in info.columns}
    columns = named_list(names[column] for column in rule.columns)
    bounds: list[str | None] = [None, *([None] * len(regions))]
    if rule.by == "range":
        texts = [
            ", ".join(literal(v, types[c]) for c, v in zip(rule.columns, bound, strict=True))
            for bound in rule.bounds
        ]
        bounds = [None, *texts, None]
    for position, region in enumerate(regions):
        yield (
            *of_table(info),
            position + 1,
            rule.by.upper(),
            columns or None,
            bounds[position],
            bounds[position + 1],
            region.region_id,
            region.leader,
            region.state.value,
        )


def _names(info: TableInfo) -> Mapping[int, str]:
    return {column.id: column.name for column in info.columns}
