"""Declared values in the form in which equal ones are written alike. Pure.

Only for what `declared_errors` has found right, and for what the catalog holds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from metasrv_base.errors import Refused
from metasrv_base.expressions.nodes import columns_of
from metasrv_base.expressions.parse import parse
from metasrv_base.expressions.text import text_of
from metasrv_base.schema.conversion import conversion_of
from metasrv_base.schema.types import parse_type
from metasrv_base.schema.values import from_json, to_json
from metasrv_base.wire.api.tables import (
    ColumnSpec,
    HashPartition,
    RangePartition,
)
from metasrv_base.wire.language.declared import DeclaredConstraint, DeclaredTable

CANNOT = object()
"""A default that the new type cannot hold."""


def default_of(column: ColumnSpec) -> Any:
    """A default in the one JSON form of its value."""
    return value_of(column.type, column.default)


def value_of(type: str, value: Any) -> Any:
    if value is None:
        return None
    parsed = parse_type(type)
    return to_json(parsed, from_json(parsed, value))


def converted_default(column: ColumnSpec, type: str) -> Any:
    """The default of a column once it has another type; `CANNOT`: the type cannot hold it."""
    if column.default is None:
        return None
    source, target = parse_type(column.type), parse_type(type)
    try:
        value = conversion_of(source, target).of_value(from_json(source, column.default))
    except Refused:
        return CANNOT
    return to_json(target, value)


def check_of(text: str, columns: Sequence[str], renames: Mapping[str, str] | None = None) -> str:
    """A condition in one way of writing. *renames*: of columns that it names, to their new
    names."""
    node = parse(text, {name: number for number, name in enumerate(columns)})
    new = renames or {}
    return text_of(node, lambda number: new.get(columns[number], columns[number]))


def check_columns(text: str, columns: Sequence[str]) -> set[str]:
    """The columns that a condition names."""
    node = parse(text, {name: number for number, name in enumerate(columns)})
    return {columns[number] for number in columns_of(node)}


def partition_key(table: DeclaredTable) -> object:
    """A value that is equal for partitions that are."""
    partition = table.partition
    if partition is None:
        return None
    if isinstance(partition, HashPartition):
        return ("hash", partition.columns, partition.count)
    types = {column.name: column.type for column in table.columns}
    bounds = (
        tuple(
            value_of(types[name], value)
            for name, value in zip(partition.columns, bound, strict=True)
        )
        for bound in partition.bounds
    )
    return ("range", partition.columns, tuple(bounds))


def renamed(table: DeclaredTable, renames: Mapping[str, str]) -> DeclaredTable:
    """The table with the new names of its columns, wherever they are named."""
    if not renames:
        return table
    names = [column.name for column in table.columns]

    def new(name: str) -> str:
        return renames.get(name, name)

    return table.model_copy(
        update={
            "columns": tuple(
                column.model_copy(update={"name": new(column.name)}) for column in table.columns
            ),
            "primary_key": tuple(map(new, table.primary_key)),
            "partition": _renamed_partition(table.partition, renames),
            "colocation_columns": None
            if table.colocation_columns is None
            else tuple(map(new, table.colocation_columns)),
            "indexes": tuple(
                index.model_copy(update={"columns": tuple(map(new, index.columns))})
                for index in table.indexes
            ),
            "constraints": tuple(
                _renamed_constraint(each, names, renames) for each in table.constraints
            ),
        }
    )


def _renamed_partition(
    partition: HashPartition | RangePartition | None, renames: Mapping[str, str]
) -> HashPartition | RangePartition | None:
    if partition is None:
        return None
    columns = tuple(renames.get(name, name) for name in partition.columns)
    return partition.model_copy(update={"columns": columns})


def _renamed_constraint(
    constraint: DeclaredConstraint, names: Sequence[str], renames: Mapping[str, str]
) -> DeclaredConstraint:
    if constraint.check is not None:
        check = check_of(constraint.check, names, renames)
        return constraint.model_copy(update={"check": check})
    assert constraint.not_null is not None
    column = renames.get(constraint.not_null, constraint.not_null)
    return constraint.model_copy(update={"not_null": column})
