"""The rows of one query, all of them or an error: a result is never cut."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pyarrow as pa

from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.sql.faults import fault_of
from dataplane.frontend.sql.selection import Selection, selection
from dataplane.frontend.statements.regions import CallBudget, RegionClient
from dataplane.frontend.statements.scans import Place, shown
from metasrv_base.errors import Refused
from metasrv_base.rows.layout import Layout
from metasrv_base.sql.rows.row_commands import RowStatement, SelectRows
from metasrv_base.wire.frontend.rows import ROWS_MAX

AND_SO_ON = "read on from the last key with WHERE and LIMIT, or by a scan, Spark or DuckDB"


@dataclass(frozen=True, slots=True)
class RowQuery:
    statement: RowStatement
    select: SelectRows
    bytes_max: int
    """The bound on its rows, in bytes of Arrow."""

    @property
    def rows_wanted(self) -> int:
        """One more than a result holds, without LIMIT: then there are too many."""
        return ROWS_MAX + 1 if self.select.limit is None else self.select.limit


async def rows_of(
    regions: RegionClient, schema: Schema, query: RowQuery, call: CallBudget
) -> pa.RecordBatch:
    """The rows with all columns that were read. Raises Refused `invalid-sql` where there are more
    than a result holds."""
    chosen = selection(schema, query.statement, query.select)
    parts: list[pa.RecordBatch] = []
    rows = size = 0
    async for part in _parts(regions, schema, chosen, query, call):
        rows, size = rows + part.num_rows, size + part.nbytes
        if size > query.bytes_max:
            expected = f"at most {query.bytes_max} bytes of rows: {AND_SO_ON}"
            raise _too_many(query, f"{rows} rows of {size} bytes", expected)
        parts.append(part)
    if query.select.limit is None and rows > ROWS_MAX:
        expected = f"LIMIT n, or at most {ROWS_MAX} rows: {AND_SO_ON}"
        raise _too_many(query, f"more than {ROWS_MAX} rows", expected)
    if len(parts) == 1:
        return parts[0]
    columns = schema.layout.chosen(query.select.columns)
    whole = pa.Table.from_batches(parts, parts[0].schema if parts else Layout.arrow_of(columns))
    return whole.combine_chunks().to_batches()[0] if rows else _empty(whole.schema)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _too_many(query: RowQuery, actual: str, expected: str) -> Refused:
    pointer = "/limit" if "/limit" in query.statement.places else "/table"
    refused = fault_of(query.statement, pointer, expected)
    return Refused(refused.code, **{**refused.facts, "found": actual})


async def _parts(
    regions: RegionClient, schema: Schema, chosen: Selection, query: RowQuery, call: CallBudget
) -> AsyncIterator[pa.RecordBatch]:
    left = query.rows_wanted
    if not left:
        return
    columns = schema.layout.columns
    if (key := chosen.key) is not None:
        encoded = schema.layout.key_bytes(tuple(key))
        (number,) = chosen.regions
        yield shown(columns, [await regions.rows(schema, number, [encoded], call)])
        return
    for scan in chosen.scans:
        cursor: Place | None = scan.start
        while cursor is not None and left > 0:
            page = await scan.page(regions, cursor, left, call)
            rows = page.rows
            if rows.num_rows:
                yield rows.slice(0, left)
            left, cursor = left - rows.num_rows, page.following
