"""Statements that write: planned for each region on what was read of it, and sent until they hold.

Nothing is sent before the parts of all regions are planned: a row that is wrong refuses the whole
request, and no region applies its part. A version conflict is read and planned again, within a
budget; so is a schema version that has ended, under the new one. Every attempt bears the same
statement id, and a region applies a statement once: whichever copy comes first, no other has an
effect.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from dataplane.frontend.catalog.catalog import Name
from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.lease.transactions import Transaction
from dataplane.frontend.metrics import FrontendMetrics
from dataplane.frontend.planning.entries import ReadEntry
from dataplane.frontend.planning.planning import Known, RegionStatement, columns_to_read, reads_rows
from dataplane.frontend.planning.row_input import JsonRows, Op, RowInput, by_region, from_rows
from dataplane.frontend.statements.part_progress import PartProgress
from dataplane.frontend.statements.regions import CallBudget, RegionClient, SendLog
from dataplane.frontend.statements.statements import Statements
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.concurrency.run_in_thread import is_small, run_in_thread
from metasrv_base.errors import Conflict, MetaError, NotFound, Refused
from metasrv_base.rows.layout import Layout
from metasrv_base.rows.outcome import RegionOutcome, WriteResult, settle
from metasrv_base.rows.retry import JUDGED
from metasrv_base.rows.statement_ids import id_of_part
from metasrv_base.wire.node.batches import BatchResult

CONFLICTS_MAX = 10
"""Attempts on rows that others change at the same time; then the statement conflicts."""
REGIONS_AT_ONCE = 16
LOOK_S = 2.0
"""Seconds until a refusal waits no longer for regions that do not say whether an earlier copy
came."""


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    rows: int
    schema_version: int
    """The newest that was used."""
    regions: tuple[RegionOutcome, ...]


@dataclass(frozen=True, slots=True)
class StatementTimes:
    """The times that a client says with a statement that writes."""

    sent_ms: int | None = None
    """When its first sender made it, in ms since 1970; None: its arrival at each region counts."""
    answer_by_ms: int | None = None
    """When the sender of this copy waits no longer, on the monotonic clock; None: once the
    transaction is too old."""


NOT_SAID = StatementTimes()


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
    """Whether it has so few rows that a thread does not pay
    (metasrv_base/concurrency/run_in_thread.py)."""
    sent_ms: int | None = None
    """The time at which its first sender made it; None: the sender did not say."""

    def is_short_with(self, rows: pa.Table | pa.RecordBatch | None) -> bool:
        """Whether that holds with the rows as they are in the region."""
        return self.is_short and (rows is None or is_small(0, rows.nbytes))

    def call(self, part: PartProgress) -> CallBudget:
        """The budget that all requests of one part share."""
        return CallBudget(id_of_part(self.statement_id, part.number), self.until, self.sent_ms)


@dataclass(frozen=True, slots=True)
class Writes:
    statements: Statements
    regions: RegionClient
    metrics: FrontendMetrics

    async def rows(
        self,
        name: Name,
        op: Op,
        rows: JsonRows,
        statement_id: str,
        times: StatementTimes = NOT_SAID,
    ) -> WriteOutcome:
        """Writes the rows of one body.

        Raises what `settle` says (metasrv_base/rows/outcome.py), and Refused before anything is
        sent."""
        with self.statements.running(answer_by_ms=times.answer_by_ms) as transaction:
            schema = await self.statements.bound(transaction, name)
            request = self.request(transaction, op, partial(_from_rows, rows, op), statement_id)
            is_short = is_small(len(rows), 0)
            result, version = await self.run(
                schema, replace(request, sent_ms=times.sent_ms, is_short=is_short)
            )
        return WriteOutcome(result.rows, version, result.regions)

    def request(
        self, transaction: Transaction, op: Op, read: Callable[[Layout], RowInput], id: str
    ) -> WriteRequest:
        """Makes a request that lasts as long as calls of the transaction, and is bound by it."""
        bind = partial(self.statements.bind, transaction)
        return WriteRequest(op, read, id, self.statements.call(transaction).until, bind)

    async def run(self, schema: Schema, request: WriteRequest) -> tuple[WriteResult, int]:
        """Returns the result, and the newest schema version that it was computed with.

        Every part is planned before the first is sent, so that a fault of the request, or of the
        rows as they were read, refuses all of it. Raises what `settle` raises.
        """
        request.bind(schema)
        statement_rows = await run_in_thread(request.is_short, request.read, schema.layout)
        by_number = await run_in_thread(request.is_short, by_region, schema.layout, statement_rows)
        parts = [
            PartProgress(number, RegionStatement(schema, request.op, rows))
            for number, rows in by_number.items()
        ]
        await _each(partial(self._planned, request), parts)
        is_refused = any(part.error is not None for part in parts)
        await _each(partial(self._looked_up if is_refused else self._written, request), parts)
        result = settle([part.outcome for part in parts])
        self.metrics.rows.labels(request.op).inc(result.rows)
        return result, max((part.schema.version for part in parts), default=schema.version)

    async def _planned(self, request: WriteRequest, part: PartProgress) -> None:
        with part.noted():
            while part.batch is None and part.done is None:
                await self._plan(request, part)

    async def _written(self, request: WriteRequest, part: PartProgress) -> None:
        with part.noted():
            while part.done is None:
                if part.batch is None:
                    await self._plan(request, part)
                else:
                    await self._send(request, part, part.batch)

    async def _looked_up(self, request: WriteRequest, part: PartProgress) -> None:
        """Whether an earlier copy of what is refused now was applied here."""
        if part.error is not None or part.done is not None:
            return
        until = min(request.until, asyncio.get_running_loop().time() + LOOK_S)
        nothing = Refused(reason="the rows of another region were refused")
        try:
            part.done = await self._remembered(
                part, replace(request, until=until).call(part), nothing
            )
        except MetaError:
            return  # nothing was sent to it

    async def _plan(self, request: WriteRequest, part: PartProgress) -> None:
        """One attempt; neither a batch nor done: it was made for a schema that has ended."""
        call = request.call(part)
        try:
            existing = await self._existing(request, part, call)
            try:
                is_short = request.is_short_with(existing.rows)
                part.batch = await run_in_thread(is_short, part.plan, existing)
            except (Conflict, Refused) as error:
                part.done = await self._remembered(part, call, error)
        except Conflict as error:
            if error.code != "schema-version-stale":
                raise
            await self._rebind(request, part, error)

    async def _send(self, request: WriteRequest, part: PartProgress, batch: pa.RecordBatch) -> None:
        """One attempt; not done: what it was planned on has changed meanwhile."""
        part.batch = None
        try:
            part.done = await self._sent(part, batch, request.call(part))
        except Conflict as error:
            if error.code != "schema-version-stale":
                raise
            await self._rebind(request, part, error)

    async def _sent(
        self, part: PartProgress, batch: pa.RecordBatch, call: CallBudget
    ) -> BatchResult | None:
        try:
            return await self.regions.write(part.schema, part.number, batch, part.sent, call)
        except Conflict as error:
            if error.code not in JUDGED:
                raise
            part.careful, part.conflicts = True, part.conflicts + 1
            if part.conflicts == CONFLICTS_MAX:
                holder = "other statements"
                raise Conflict("object-locked", resource="the rows", holder=holder) from error
            return None

    async def _existing(self, request: WriteRequest, part: PartProgress, call: CallBudget) -> Known:
        """Reads the rows and entries that the part's plan depends on."""
        op, schema = request.op, part.schema
        rows = None
        if part.careful or reads_rows(schema, op):
            keys: list[bytes] = part.keys.to_pylist()
            columns = columns_to_read(schema, op)
            table = await self.regions.rows(schema, part.number, keys, call, columns)
            rows = await run_in_thread(request.is_short_with(table), part.aligned, table)
        entries: dict[int, Mapping[bytes, ReadEntry]] = {}
        if not any(index.unique for index in schema.indexes):
            return Known(rows, entries)
        entry_keys = await run_in_thread(
            request.is_short_with(rows), part.statement.entries_to_read, rows, puts=part.careful
        )
        for index_id, keys in entry_keys.items():
            entries[index_id] = await self.regions.entries(
                schema, part.number, index_id, keys, call
            )
        return Known(rows, entries)

    async def _remembered(
        self, part: PartProgress, call: CallBudget, against: MetaError
    ) -> BatchResult:
        """Asks the region whether an earlier copy was applied, since the cause of *against* may be
        newer than that copy. Raises *against* if none was."""
        question, sends = part.never_applied(), SendLog()
        try:
            result = await self.regions.write(part.schema, part.number, question, sends, call)
        except Conflict as error:
            if error.code not in JUDGED:
                raise
            part.sent.refused(sends.judged_epoch, error)
            raise against from error
        assert result.repeated, "no region applies it"
        return result

    async def _rebind(self, request: WriteRequest, part: PartProgress, stale: MetaError) -> None:
        """Binds to the table as it is now, once this process knows of it. Raises *stale* if the
        rows do not belong to it any more, or time is up."""
        try:
            async with asyncio.timeout_at(request.until):
                schema = await self.statements.catalog.newer(part.schema)
            statement_rows = await run_in_thread(request.is_short, request.read, schema.layout)
            fits = part.fits(schema, statement_rows)
        except (Refused, TimeoutError) as error:
            if isinstance(error, NotFound):
                raise
            raise stale from error
        if not fits:
            raise stale
        request.bind(schema)
        part.rebind(schema, statement_rows)


async def _each(
    work: Callable[[PartProgress], Awaitable[None]], parts: Sequence[PartProgress]
) -> None:
    if len(parts) == 1:  # as most statements have it
        await work(parts[0])
    else:
        await fan_out([partial(work, part) for part in parts], at_once=REGIONS_AT_ONCE)


def _from_rows(rows: JsonRows, op: Op, layout: Layout) -> RowInput:
    return from_rows(layout, rows, op)
