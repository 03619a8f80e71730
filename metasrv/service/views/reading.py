"""Rows of a view, in order, some at a time: memory and turns of the event loop are bounded."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from metasrv.service.catalog.reading import CatalogView, Freshness, view
from metasrv.service.cluster.nodes import node_reports
from metasrv.service.state.state import ServerState
from metasrv.service.views.view import CatalogUnits, Position, Row, Units, View, ViewFacts
from metasrv.service.views.where import ViewFilter
from metasrv_base.errors import Refused

ROWS_OF_A_TURN = 512
"""Rows of small units that one turn makes and judges; those of one unit are never parted: a table
has at most 1,024 columns or regions."""
WHOLE_UNIT = 1 << 31
"""Above the rows of any unit, as the last part of a cursor: all of it was told."""


@dataclass(frozen=True, slots=True)
class ViewRead:
    """A view, the facts that its rows are made of, and the rows that are wanted."""

    view: View
    facts: ViewFacts
    filter: ViewFilter


@dataclass(frozen=True, slots=True)
class RowSlice:
    """Rows that the filter takes, out of some that were looked at."""

    rows: tuple[Row, ...]
    cursors: tuple[Position, ...]
    """The cursor behind each: the position of its unit, and the number of its rows up to there."""
    end: Position
    """The cursor behind all that was looked at."""
    looked_at: int
    """Rows, and units without any."""


async def opened(state: ServerState, of: View, freshness: Freshness) -> CatalogView:
    """The catalog that rows are made from. Raises Refused for `as_of` of what is only now."""
    if freshness.as_of is not None and not of.is_versioned:
        reason = f"the view {of.name} shows what is now: nobody keeps what was"
        raise Refused("invalid-request", path="as_of", reason=reason)
    return await view(state, freshness)


async def begun(
    state: ServerState, catalog_view: CatalogView, of: View, where: ViewFilter
) -> ViewRead:
    """Raises as `ServerState.leading` where the view has what only the leader knows."""
    reported = await node_reports(state) if of.needs_reports else {}
    addresses = await state.addresses.known()
    return ViewRead(of, ViewFacts(catalog_view.catalog, addresses, reported), where)


async def row_slices(
    state: ServerState, read: ViewRead, cursor: Position | None = None
) -> AsyncGenerator[RowSlice, None]:
    """Yields all rows behind *cursor*; None: all there are."""
    low, last_number = (None, 0) if cursor is None else (cursor[:-1], int(cursor[-1]))
    async for units in _units(state, read, low):
        rows: list[Row] = []
        cursors: list[Position] = []
        looked_at = 0
        for position, unit in units:
            for number, row in enumerate(read.view.rows(read.facts, unit), 1):
                if position != low or number > last_number:
                    rows.append(row)
                    cursors.append((*position, number))
            looked_at += 1
            if len(rows) >= ROWS_OF_A_TURN:
                yield _row_slice(read, rows, cursors, position, looked_at)
                await asyncio.sleep(0)
                rows, cursors, looked_at = [], [], 0
        if units:
            yield _row_slice(read, rows, cursors, units[-1][0], looked_at)
        await asyncio.sleep(0)


def _row_slice(
    read: ViewRead, rows: list[Row], cursors: list[Position], last: Position, looked_at: int
) -> RowSlice:
    kept = read.filter.kept(rows)
    return RowSlice(
        tuple(row for row, is_kept in zip(rows, kept, strict=True) if is_kept),
        tuple(cursor for cursor, is_kept in zip(cursors, kept, strict=True) if is_kept),
        (*last, WHOLE_UNIT),
        max(looked_at, len(rows)),
    )


async def _units(state: ServerState, read: ViewRead, low: Position | None) -> AsyncIterator[Units]:
    source, scope = read.view.source, read.filter.scope
    if isinstance(source, CatalogUnits):
        for units in source.units(read.facts.catalog, scope, low):
            yield units
        return
    async for units in source.units(state, read.facts, scope, low):
        yield units
