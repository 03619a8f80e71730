"""A table as people read it: key, partitions, columns, indexes and constraints."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from metasrv.cli.output import show_facts, show_table, value_text

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
            "colocation": ", ".join(body.colocation_columns or ()) or None,
            "replicas": _number(body, "replicas", body.replicas),
            "min in sync": _number(body, "min_in_sync", body.min_in_sync),
            "placement": body.placement,
            "storage profile": body.storage_profile,
            "tablespace": body.tablespace,
            "options": body.options or None,
            "created": body.created_at,
            "dropped": body.dropped_at,
            "regions": len(body.regions),
        }
    )
    _section(("column", "type", "null", "default", "state"), map(_column, body.columns))
    _section(("index", "columns", "unique", "state"), map(_index, body.indexes))
    _section(("constraint", "holds for", "condition", "state"), map(_constraint, body.constraints))


def _number(body: "TableBody", name: str, number: int) -> str:
    return f"{number} (default)" if name in body.inherited else str(number)


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
    """Prints nothing without rows; leaves out the last column, `state`, if all of it is public."""
    all_rows = list(rows)
    if not all_rows:
        return
    is_public = all(row[-1] == PUBLIC for row in all_rows)
    end = -1 if is_public else None
    typer.echo()
    show_table(head[:end], [row[:end] for row in all_rows])


def _column(column: "ColumnBody") -> tuple[object, ...]:
    return (
        column.name,
        column.type,
        "" if column.nullable else "not null",
        _default(column),
        str(column.state),
    )


def _default(column: "ColumnBody") -> str:
    """Empty without one. Text is quoted; other values that travel as text, as of a decimal, are
    not."""
    if column.default is None:
        return ""
    if isinstance(column.default, str) and column.type != "string":
        return column.default
    return json.dumps(column.default, ensure_ascii=False)


def _index(index: "IndexBody") -> tuple[object, ...]:
    return index.name, ", ".join(index.columns), "unique" if index.unique else "", str(index.state)


def _constraint(constraint: "ConstraintBody") -> tuple[object, ...]:
    condition = (
        constraint.expression or f"{value_text(list(constraint.columns))} {SIGNS[constraint.kind]}"
    )
    return (
        constraint.name,
        "all rows" if constraint.holds else "new rows",
        condition,
        str(constraint.state),
    )
