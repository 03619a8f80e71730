"""CREATE TABLE and CREATE INDEX of what their bodies say."""

from collections.abc import Iterator, Mapping
from typing import assert_never

from pydantic import JsonValue

from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.sql.commands import QualifiedTable
from metasrv_base.sql.identifiers import dotted, identifier
from metasrv_base.sql.literals import literal
from metasrv_base.sql.options import options_text
from metasrv_base.sql.types import type_name
from metasrv_base.wire.api.tables import (
    ColumnSpec,
    HashPartition,
    IndexSpec,
    RangePartition,
    TableShape,
    TableSpec,
)

INDENT = "    "


def create_table(table: QualifiedTable, spec: TableSpec) -> str:
    """CREATE TABLE, a column a line, without the semicolon."""
    condition = "IF NOT EXISTS " if spec.if_not_exists else ""
    lines = [column_text(column) for column in spec.columns]
    lines.append(f"PRIMARY KEY {listed(spec.primary_key)}")
    body = ",\n".join(f"{INDENT}{line}" for line in lines)
    types = {column.name: parse_type(column.type) for column in spec.columns}
    clauses = "".join(f"\n{clause}" for clause in _clauses(spec, types))
    return f"CREATE TABLE {condition}{table_text(table)} (\n{body}\n){clauses}"


def create_index(table: QualifiedTable, spec: IndexSpec) -> str:
    unique = "UNIQUE " if spec.unique else ""
    condition = "IF NOT EXISTS " if spec.if_not_exists else ""
    valid = " NOT VALID" if spec.not_valid else ""
    index = f"{condition}{identifier(spec.name)}"
    return f"CREATE {unique}INDEX {index} ON {table_text(table)} {listed(spec.columns)}{valid}"


def table_text(table: QualifiedTable) -> str:
    return dotted(table.catalog, table.schema, table.table)


def column_text(column: ColumnSpec) -> str:
    """A column as CREATE TABLE and ADD COLUMN define it."""
    null = "" if column.nullable else " NOT NULL"
    default = ""
    if column.default is not None:
        default = f" DEFAULT {default_text(column.default, parse_type(column.type))}"
    return f"{identifier(column.name)} {type_name(column.type)}{null}{default}"


def default_text(value: JsonValue, type: ColumnType | None) -> str:
    return "now()" if isinstance(value, dict) else literal(value, type)


def listed(names: tuple[str, ...]) -> str:
    return f"({', '.join(map(identifier, names))})"


def _clauses(spec: TableShape, types: Mapping[str, ColumnType]) -> Iterator[str]:
    """Yields the clauses that say more than the defaults."""
    if spec.partition is not None:
        yield _partition(spec.partition, types)
    if spec.colocation_columns is not None:
        yield f"COLOCATE BY {listed(spec.colocation_columns)}"
    if spec.placement is not None:
        yield f"PLACEMENT {identifier(spec.placement)}"
    if spec.tablespace is not None:
        yield f"TABLESPACE {identifier(spec.tablespace)}"
    if spec.storage_profile is not None:
        yield f"STORAGE PROFILE {identifier(spec.storage_profile)}"
    if spec.replicas is not None:
        yield f"REPLICAS {spec.replicas}"
    if spec.min_in_sync is not None:
        yield f"MIN IN SYNC {spec.min_in_sync}"
    if spec.options:
        yield f"WITH {options_text(spec.options)}"


def _partition(partition: HashPartition | RangePartition, types: Mapping[str, ColumnType]) -> str:
    columns = listed(partition.columns)
    match partition:
        case HashPartition():
            return f"PARTITION BY HASH {columns} PARTITIONS {partition.count}"
        case RangePartition():
            of = [types.get(name) for name in partition.columns]
            values = ", ".join(
                f"({', '.join(map(literal, bound, of))})" for bound in partition.bounds
            )
            return f"PARTITION BY RANGE {columns} SPLIT AT VALUES {values}"
        case _:
            assert_never(partition)
