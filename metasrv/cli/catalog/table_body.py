"""A table as people read it: key, partitions, columns, indexes and constraints."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from metasrv.cli.output import said, show_facts, show_table

if TYPE_CHECKING:
    from metasrv_base.wire.api.tables import (
        ColumnBody,
        ConstraintBody,
        IndexBody,
        PartitionSpec,
        TableBody,
    )

PUBLIC = "public"
SIGNS = {"check": "check", "not-null": "not null", "unique": "unique"}


def show_table_body(body: "TableBody") -> None:
    show_facts(
        {
            "table": f"{body.catalog}.{body.schema_name}.{body.name}",
            "id": body.id,
            "version": body.version,
            "primary key": ", ".join(body.primary_key),
            "partitions": partition_words(body.partition),
            "options": body.options or None,
            "created": body.created_at,
            "dropped": body.dropped_at,
            "regions": len(body.regions),
        }
    )
    _section(("column", "type", "null", "default", "state"), map(_column, body.columns))
    _section(("index", "columns", "unique", "state"), map(_index, body.indexes))
    _section(("constraint", "holds for", "condition", "state"), map(_constraint, body.constraints))


def partition_words(partition: "PartitionSpec | None") -> str:
    """`hash of id into 4`, or `range of day, split at 2024-01-01, 2024-02-01`."""
    if partition is None:
        return "none"
    columns = ", ".join(partition.columns)
    if partition.by == "hash":
        return f"hash of {columns} into {partition.count}"
    bounds = (_bound(bound) for bound in partition.bounds)
    return f"range of {columns}, split at {', '.join(bounds)}"


def _bound(values: Sequence[object]) -> str:
    shown = ", ".join(map(str, values))
    return shown if len(values) == 1 else f"({shown})"


def _section(head: Sequence[str], rows: Iterator[tuple[object, ...]]) -> None:
    """Nothing without rows; without the last column, `state`, if all of it is public."""
    found = list(rows)
    if not found:
        return
    is_public = all(row[-1] == PUBLIC for row in found)
    end = -1 if is_public else None
    typer.echo()
    show_table(head[:end], [row[:end] for row in found])


def _column(one: "ColumnBody") -> tuple[object, ...]:
    default = None if one.default is None else json.dumps(one.default, ensure_ascii=False)
    return one.name, one.type, "" if one.nullable else "not null", default or "", str(one.state)


def _index(one: "IndexBody") -> tuple[object, ...]:
    return one.name, ", ".join(one.columns), "unique" if one.unique else "", str(one.state)


def _constraint(one: "ConstraintBody") -> tuple[object, ...]:
    condition = one.expression or f"{said(list(one.columns))} {SIGNS[one.kind]}"
    return one.name, "all rows" if one.holds else "new rows", condition, str(one.state)
