"""EXPLAIN of an INSERT, an UPDATE or a DELETE: the regions that would be written. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.planning.row_input import JsonRows, Op, by_region, from_rows
from dataplane.frontend.sql.conditions import ColumnConditions
from dataplane.frontend.sql.selection import Path
from metasrv_base.rows.layout import LayoutColumn
from metasrv_base.sql.literals import literal
from metasrv_base.sql.rows.reserved import column_text
from metasrv_base.wire.api.tables import RegionRouteBody

WRITE_EXPLAINED = ("operation", "access", "keys", "rows", "region", "node")
KEYS_SHOWN = 3
"""Keys of one region that are shown."""
RegionOf: TypeAlias = Callable[[int], RegionRouteBody]
"""The route of a region, by its number."""


def explained_write(
    schema: Schema, op: Op, rows: JsonRows, region_of: RegionOf
) -> Sequence[tuple[str | int, ...]]:
    """A row for each region, in their order, with columns as in WRITE_EXPLAINED.

    Raises Refused for rows that the statement would refuse by themselves: a value that does not fit
    its column, a key that is not whole, or that stands twice. Constraints, and whether the rows are
    there, are judged by the statement alone.
    """
    layout = schema.layout
    access = Path(schema, ColumnConditions()).described
    lines: list[tuple[str | int, ...]] = []
    for number, part in by_region(layout, from_rows(layout, rows, op)).items():
        region = region_of(number)
        first = (rows[part.place(row)] for row in range(min(part.count, KEYS_SHOWN)))
        keys = [" AND ".join(_equal(layout.key, row)) for row in first]
        if part.count > KEYS_SHOWN:
            keys.append("..")
        node = region.leader or "none"
        lines.append((op.value, access, "; ".join(keys), part.count, region.region_id, node))
    return lines


def _equal(columns: Sequence[LayoutColumn], row: Mapping[str, object]) -> Iterator[str]:
    for column in columns:
        yield f"{column_text(column.name)} = {literal(row[column.name], column.type)}"
