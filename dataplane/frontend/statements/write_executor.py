"""Statements that write: planned for each region on what was read of it, and sent until they hold.

Nothing is sent before the parts of all regions are planned: a row that is wrong refuses the whole
request, and no region applies its part. A version conflict is read and planned again, within a
budget; so is a schema version that has ended, under the new one. Every attempt bears the same
statement id, and a region applies a statement once: whichever copy comes first, no other has an
effect.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.frontend.catalog.catalog import LiveCatalog
from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.planning.entries import ReadEntry
from dataplane.frontend.planning.planning import Known, RegionStatement, columns_to_read, reads_rows
from dataplane.frontend.planning.row_input import Op, RegionRows, RowInput, by_region
from dataplane.frontend.statements.regions import CallBudget, RegionClient, SendLog
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.concurrency.run_in_thread import is_small, run_in_thread
from metasrv_base.errors import Conflict, MetaError, NotFound, Refused
from metasrv_base.ids import TableId, region_id
from metasrv_base.rows.layout import Layout
from metasrv_base.rows.outcome import RegionOutcome, WriteResult, outcome_of, settle
from metasrv_base.rows.retry import JUDGED
from metasrv_base.rows.statement_ids import id_of_part
from metasrv_base.wire.limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from metasrv_base.wire.node.batches import OP_DELETE

CONFLICTS_MAX = 10
"""Attempts on rows that others change at the same time; then the statement conflicts."""
REGIONS_AT_ONCE = 16
LOOK_S = 2.0
"""Seconds until a refusal waits no longer for regions that do not say whether an earlier copy
came."""
NO_VERSION = -1
"""A version that no row has: row versions are not negative."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A statement that writes, whatever the schema."""

    op: Op
    read: Callable[[Layout], RowInput]
    """The rows as a layout has them. Raises Refused where they do not fit."""
    statement_id: str
    until: float
    """Seconds of the loop's clock."""
    bind: Callable[[Schema], None]
    """Called with each schema that the statement is bound to."""
    is_short: bool = False
    """True: so few rows that a thread does not pay (metasrv_base/concurrency/run_in_thread.py)."""
    sent_ms: int | None = None
    """The time at which its first sender made it; None: the sender did not say."""

    def is_short_with(self, rows: pa.Table | pa.RecordBatch | None) -> bool:
        """Whether that holds with the rows as they are in the region."""
        return self.is_short and (rows is None or is_small(0, rows.nbytes))


@dataclass(frozen=True, slots=True)
class _Done:
    """Applied."""

    version: int
    repeated: bool


@dataclass(slots=True)
class _Progress:
    """The progress of one region's part."""

    schema: Schema
    part: RegionRows
    sent: SendLog
    batch: pa.RecordBatch | None = None
    """The batch as planned, and not sent yet; None: it must be planned, perhaps again."""
    done: _Done | None = None
    error: MetaError | None = None
    careful: bool = False
    """True: keys that must be absent are looked up before they are written, since a region has
    refused them."""
    conflicts: int = 0

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Notes an error of the block: each part has an outcome of its own."""
        try:
            yield
        except MetaError as error:
            self.error = error

    @property
    def outcome(self) -> RegionOutcome:
        id = str(region_id(TableId(self.schema.layout.table_id), self.part.number))
        count = self.part.given.count
        if self.error is not None:
            return outcome_of(id, count, self.error, self.sent.perhaps)
        if self.done is None:
            return RegionOutcome(id, "not-applied", count)
        return RegionOutcome(id, "applied", count, self.done.version, self.done.repeated)


@dataclass(frozen=True, slots=True)
class WriteExecutor:
    catalog: LiveCatalog
    regions: RegionClient

    async def run(self, schema: Schema, wish: WriteRequest) -> tuple[WriteResult, int]:
        """Returns the result, and the newest schema version that it was computed with.

        Every part is planned before the first is sent, so that a fault of the request, or of the
        rows as they were read, refuses all of it. Raises what `settle` raises.
        """
        wish.bind(schema)
        given = await run_in_thread(wish.is_short, wish.read, schema.layout)
        parts = await run_in_thread(wish.is_short, by_region, schema.layout, given)
        states = [_Progress(schema, part, SendLog()) for part in parts]
        await _each(partial(self._planned, wish), states)
        is_refused = any(state.error is not None for state in states)
        await _each(partial(self._looked_up if is_refused else self._written, wish), states)
        versions = [state.schema.version for state in states]
        return settle([state.outcome for state in states]), max(versions, default=schema.version)

    async def _planned(self, wish: WriteRequest, state: _Progress) -> None:
        with state.noted():
            while state.batch is None and state.done is None:
                await self._plan(wish, state)

    async def _written(self, wish: WriteRequest, state: _Progress) -> None:
        with state.noted():
            while state.done is None:
                if state.batch is None:
                    await self._plan(wish, state)
                else:
                    await self._send(wish, state, state.batch)

    async def _looked_up(self, wish: WriteRequest, state: _Progress) -> None:
        """Whether an earlier copy of what is refused now was applied here."""
        if state.error is not None or state.done is not None:
            return
        until = min(wish.until, asyncio.get_running_loop().time() + LOOK_S)
        nothing = Refused(reason="the rows of another region were refused")
        try:
            state.done = await self._remembered(
                state, _call(replace(wish, until=until), state), nothing
            )
        except MetaError:
            return  # nothing was sent to it

    async def _plan(self, wish: WriteRequest, state: _Progress) -> None:
        """One attempt; neither a batch nor done: it was made for a schema that has ended."""
        call = _call(wish, state)
        try:
            existing = await self._known(wish, state, call)
            try:
                short = wish.is_short_with(existing.rows)
                state.batch = await run_in_thread(short, _batch, wish.op, state, existing)
            except (Conflict, Refused) as error:
                state.done = await self._remembered(state, call, error)
        except Conflict as error:
            if error.code != "schema-version-stale":
                raise
            await self._rebind(wish, state, error)

    async def _send(self, wish: WriteRequest, state: _Progress, batch: pa.RecordBatch) -> None:
        """One attempt; not done: what it was planned on has changed meanwhile."""
        state.batch = None
        try:
            state.done = await self._sent(state, batch, _call(wish, state))
        except Conflict as error:
            if error.code != "schema-version-stale":
                raise
            await self._rebind(wish, state, error)

    async def _sent(
        self, state: _Progress, batch: pa.RecordBatch, call: CallBudget
    ) -> _Done | None:
        try:
            done = await self.regions.write(
                state.schema, state.part.number, batch, state.sent, call
            )
        except Conflict as error:
            if error.code not in JUDGED:
                raise
            state.careful, state.conflicts = True, state.conflicts + 1
            if state.conflicts == CONFLICTS_MAX:
                holder = "other statements"
                raise Conflict("object-locked", resource="the rows", holder=holder) from error
            return None
        return _Done(done.version, done.repeated)

    async def _known(self, wish: WriteRequest, state: _Progress, call: CallBudget) -> Known:
        op, schema, part = wish.op, state.schema, state.part
        rows = None
        if state.careful or reads_rows(schema, op):
            keys: list[bytes] = part.given.keys.to_pylist()
            columns = columns_to_read(schema, op)
            table = await self.regions.rows(schema, part.number, keys, call, columns)
            rows = await run_in_thread(wish.is_short_with(table), _aligned, part.given.keys, table)
        statement = RegionStatement(schema, op, part.given)
        entries: dict[int, Mapping[bytes, ReadEntry]] = {}
        if not any(index.unique for index in schema.indexes):
            return Known(rows, entries)
        short = wish.is_short_with(rows)
        entry_keys = await run_in_thread(short, statement.entries_to_read, rows, puts=state.careful)
        for index_id, keys in entry_keys.items():
            entries[index_id] = await self.regions.entries(
                schema, part.number, index_id, keys, call
            )
        return Known(rows, entries)

    async def _remembered(self, state: _Progress, call: CallBudget, against: MetaError) -> _Done:
        """Asks the region whether an earlier copy was applied, since the cause of *against* may be
        newer than that copy. Raises *against* if none was."""
        question, sends = _never(state.part.given.keys), SendLog()
        try:
            done = await self.regions.write(state.schema, state.part.number, question, sends, call)
        except Conflict as error:
            if error.code not in JUDGED:
                raise
            state.sent.refused(sends.judged_epoch, error)
            raise against from error
        assert done.repeated, "no region applies it"
        return _Done(done.version, done.repeated)

    async def _rebind(self, wish: WriteRequest, state: _Progress, stale: MetaError) -> None:
        """Binds to the table as it is now, once this process knows of it. Raises *stale* if the
        rows do not belong to it any more, or time is up."""
        try:
            async with asyncio.timeout_at(wish.until):
                schema = await self.catalog.newer(state.schema)
            given = await run_in_thread(wish.is_short, wish.read, schema.layout)
            places = pc.index_in(state.part.given.keys, value_set=given.keys)
        except (Refused, TimeoutError) as error:
            if isinstance(error, NotFound):
                raise
            raise stale from error
        if places.null_count or not _routes_alike(schema.layout, state.schema.layout):
            raise stale
        wish.bind(schema)
        state.schema, state.part = schema, RegionRows(state.part.number, given.taken(places))


async def _each(work: Callable[[_Progress], Awaitable[None]], states: Sequence[_Progress]) -> None:
    if len(states) == 1:  # as most statements have it
        await work(states[0])
    else:
        await fan_out([partial(work, state) for state in states], at_once=REGIONS_AT_ONCE)


def _call(wish: WriteRequest, state: _Progress) -> CallBudget:
    return CallBudget(id_of_part(wish.statement_id, state.part.number), wish.until, wish.sent_ms)


def _batch(op: Op, state: _Progress, existing: Known) -> pa.RecordBatch:
    batch = RegionStatement(state.schema, op, state.part.given).plan(existing)
    if batch.nbytes > BATCH_BYTES_MAX or batch.num_rows > BATCH_ROWS_MAX:
        raise Refused("body-too-large", limit_bytes=BATCH_BYTES_MAX, limit_rows=BATCH_ROWS_MAX)
    return batch


def _never(keys: pa.BinaryArray) -> pa.RecordBatch:
    """A batch that no region applies: it expects a version that no row has."""
    columns = {
        "_key": keys.slice(0, 1),
        "_op": pa.array([OP_DELETE], pa.uint8()),
        "_expect": pa.array([NO_VERSION], pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


def _routes_alike(layout: Layout, other: Layout) -> bool:
    return layout.router == other.router and layout.key_types == other.key_types


def _aligned(keys: pa.BinaryArray, table: pa.Table) -> pa.RecordBatch:
    """One row for each key, null where there is none."""
    places = pc.index_in(keys, value_set=table.column("_key").combine_chunks())
    (batch,) = table.take(places).combine_chunks().to_batches()
    return batch
