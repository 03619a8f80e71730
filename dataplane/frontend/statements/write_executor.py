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
"""Until a refusal waits no longer for regions that do not say whether an earlier copy came."""
NO_VERSION = -1
"""Of a row: none is negative."""


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
    """Told of the schema that it is bound to from now on."""
    is_short: bool = False
    """So few rows that no thread is worth its while (metasrv_base/concurrency/run_in_thread.py)."""
    sent_ms: int | None = None
    """When its first sender made it; None: nobody said."""

    def is_short_with(self, found: pa.Table | pa.RecordBatch | None) -> bool:
        """Whether that holds with the rows as they are in the region."""
        return self.is_short and (found is None or is_small(0, found.nbytes))


@dataclass(frozen=True, slots=True)
class _Done:
    """Applied."""

    version: int
    repeated: bool


@dataclass(slots=True)
class _Progress:
    """Of one region's part."""

    schema: Schema
    part: RegionRows
    sent: SendLog
    batch: pa.RecordBatch | None = None
    """As planned, and not sent yet; None: it has to be planned, anew."""
    done: _Done | None = None
    error: MetaError | None = None
    careful: bool = False
    """What must not be there is looked up before it is written: a region has said that it is."""
    conflicts: int = 0

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Each part says for itself what became of it."""
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
        """What was done, and the newest schema version that it was computed with.

        Every part is planned before the first is sent, so that what can be judged by the request
        and by the rows as they were read refuses all of it. Raises what `settle` says.
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

    async def _planned(self, wish: WriteRequest, at: _Progress) -> None:
        with at.noted():
            while at.batch is None and at.done is None:
                await self._plan(wish, at)

    async def _written(self, wish: WriteRequest, at: _Progress) -> None:
        with at.noted():
            while at.done is None:
                if at.batch is None:
                    await self._plan(wish, at)
                else:
                    await self._send(wish, at, at.batch)

    async def _looked_up(self, wish: WriteRequest, at: _Progress) -> None:
        """Whether an earlier copy of what is refused now was applied here."""
        if at.error is not None or at.done is not None:
            return
        until = min(wish.until, asyncio.get_running_loop().time() + LOOK_S)
        nothing = Refused(reason="the part of another region is refused")
        try:
            at.done = await self._remembered(at, _call(replace(wish, until=until), at), nothing)
        except MetaError:
            return  # nothing was sent to it

    async def _plan(self, wish: WriteRequest, at: _Progress) -> None:
        """One attempt; neither a batch nor done: it was made for a schema that has ended."""
        call = _call(wish, at)
        try:
            known = await self._known(wish, at, call)
            try:
                short = wish.is_short_with(known.rows)
                at.batch = await run_in_thread(short, _batch, wish.op, at, known)
            except (Conflict, Refused) as error:
                at.done = await self._remembered(at, call, error)
        except Conflict as error:
            if error.code != "schema-version-stale":
                raise
            await self._rebind(wish, at, error)

    async def _send(self, wish: WriteRequest, at: _Progress, batch: pa.RecordBatch) -> None:
        """One attempt; not done: what it was planned on has changed meanwhile."""
        at.batch = None
        try:
            at.done = await self._sent(at, batch, _call(wish, at))
        except Conflict as error:
            if error.code != "schema-version-stale":
                raise
            await self._rebind(wish, at, error)

    async def _sent(self, at: _Progress, batch: pa.RecordBatch, call: CallBudget) -> _Done | None:
        try:
            done = await self.regions.write(at.schema, at.part.number, batch, at.sent, call)
        except Conflict as error:
            if error.code not in JUDGED:
                raise
            at.careful, at.conflicts = True, at.conflicts + 1
            if at.conflicts == CONFLICTS_MAX:
                holder = "other statements"
                raise Conflict("object-locked", resource="the rows", holder=holder) from error
            return None
        return _Done(done.version, done.repeated)

    async def _known(self, wish: WriteRequest, at: _Progress, call: CallBudget) -> Known:
        op, schema, part = wish.op, at.schema, at.part
        rows = None
        if at.careful or reads_rows(schema, op):
            keys: list[bytes] = part.given.keys.to_pylist()
            columns = columns_to_read(schema, op)
            found = await self.regions.rows(schema, part.number, keys, call, columns)
            rows = await run_in_thread(wish.is_short_with(found), _aligned, part.given.keys, found)
        statement = RegionStatement(schema, op, part.given)
        entries: dict[int, Mapping[bytes, ReadEntry]] = {}
        if not any(index.unique for index in schema.indexes):
            return Known(rows, entries)
        short = wish.is_short_with(rows)
        wanted = await run_in_thread(short, statement.entries_to_read, rows, puts=at.careful)
        for index_id, keys in wanted.items():
            entries[index_id] = await self.regions.entries(
                schema, part.number, index_id, keys, call
            )
        return Known(rows, entries)

    async def _remembered(self, at: _Progress, call: CallBudget, against: MetaError) -> _Done:
        """What stands against a statement may have come after it, in rows or in the schema: the
        region tells if an earlier copy was applied. Raises *against* if none was."""
        question, asked = _never(at.part.given.keys), SendLog()
        try:
            done = await self.regions.write(at.schema, at.part.number, question, asked, call)
        except Conflict as error:
            if error.code not in JUDGED:
                raise
            at.sent.refused(asked.judged_epoch, error)
            raise against from error
        assert done.repeated, "no region applies it"
        return _Done(done.version, done.repeated)

    async def _rebind(self, wish: WriteRequest, at: _Progress, stale: MetaError) -> None:
        """To the table as it is now, once this process knows of it. Raises *stale* if the rows are
        none of it any more, or time is up."""
        try:
            async with asyncio.timeout_at(wish.until):
                schema = await self.catalog.newer(at.schema)
            given = await run_in_thread(wish.is_short, wish.read, schema.layout)
            places = pc.index_in(at.part.given.keys, value_set=given.keys)
        except (Refused, TimeoutError) as error:
            if isinstance(error, NotFound):
                raise
            raise stale from error
        if places.null_count or not _routes_alike(schema.layout, at.schema.layout):
            raise stale
        wish.bind(schema)
        at.schema, at.part = schema, RegionRows(at.part.number, given.taken(places))


async def _each(work: Callable[[_Progress], Awaitable[None]], states: Sequence[_Progress]) -> None:
    await fan_out([partial(work, state) for state in states], at_once=REGIONS_AT_ONCE)


def _call(wish: WriteRequest, at: _Progress) -> CallBudget:
    return CallBudget(id_of_part(wish.statement_id, at.part.number), wish.until, wish.sent_ms)


def _batch(op: Op, at: _Progress, known: Known) -> pa.RecordBatch:
    batch = RegionStatement(at.schema, op, at.part.given).plan(known)
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


def _routes_alike(one: Layout, other: Layout) -> bool:
    return one.router == other.router and one.key_types == other.key_types


def _aligned(keys: pa.BinaryArray, found: pa.Table) -> pa.RecordBatch:
    """One row for each key, null where there is none."""
    places = pc.index_in(keys, value_set=found.column("_key").combine_chunks())
    (batch,) = found.take(places).combine_chunks().to_batches()
    return batch
