"""A bulk load: rows read, encoded and sent at the same time, one line of batches per region.

Each region gets its batches in order and one after the other, so that of two rows with one key the
later one stays; regions work side by side.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

import pyarrow as pa

from metasrv.sdk.rows.binding import Bound
from metasrv.sdk.rows.via_frontend import Through
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import MetaError, Refused
from metasrv_base.rows.outcome import RegionOutcome, settle
from metasrv_base.rows.places import moved
from metasrv_base.rows.split import RegionPart, newest_of_each_key
from metasrv_base.rows.statement_ids import StatementKey

LoadOp = Literal["insert", "upsert"]
Source: TypeAlias = "pa.Table | pa.RecordBatchReader | Iterable[pa.RecordBatch]"
Queue = asyncio.Queue[pa.RecordBatch | None]
"""Batches on their way; nothing comes after None."""
Queues = dict[int, Queue]
OnRows = Callable[[int], None]
"""Called with the rows that were applied so far."""
WAITING_MAX = 2
"""Batches that wait for one region: one is encoded while another is written."""


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Every row was applied."""

    rows: int
    """Rows that were applied; in an upsert, rows with one key in one batch count once."""
    batches: int
    read: int
    """Rows that were read from the source."""

    @property
    def replaced(self) -> int:
        """Rows that a later one of the same batch replaced; how many of the table's rows, or of
        other batches', were replaced nobody counts."""
        return self.read - self.rows


@dataclass(frozen=True, slots=True)
class LoadPlan:
    op: LoadOp
    batch_rows: int
    """Rows of one batch of one region."""
    through: Through
    new_key: Callable[[], StatementKey]
    on_progress: OnRows | None


@dataclass
class Load:
    """One load under way."""

    bound: Bound
    plan: LoadPlan
    outcomes: list[RegionOutcome] = field(default_factory=list)
    """Outcomes in order of time."""
    read: int = 0
    """Rows of the source so far."""

    async def run(self, source: Source) -> LoadResult:
        """Stops at the first batch that is not applied; what is under way then is waited for.

        Raises as `settle` does, with the `rows` that were applied before.
        """
        queues: Queues = {number: asyncio.Queue(WAITING_MAX) for number in self.bound.regions}
        lines = [partial(self._write_region, *line) for line in queues.items()]
        work: list[Callable[[], Awaitable[None]]] = [partial(self._feed, source, queues), *lines]
        try:
            await fan_out(work, at_once=len(work))
        except Refused as error:  # a row that cannot be read, after some that were applied
            raise Refused(error.code, **{**error.facts, "rows": self._rows}) from error
        if self._has_failed:
            raise self._failure()
        return LoadResult(self._rows, len(self.outcomes), self.read)

    @property
    def _rows(self) -> int:
        return sum(outcome.rows for outcome in self.outcomes if outcome.outcome == "applied")

    @property
    def _has_failed(self) -> bool:
        return any(outcome.error is not None for outcome in self.outcomes)

    async def _feed(self, source: Source, queues: Queues) -> None:
        try:
            await self._fill(batches_of(source, self.plan.batch_rows), queues)
        finally:
            for queue in queues.values():
                await queue.put(None)

    async def _fill(self, batches: Iterator[pa.RecordBatch], queues: Queues) -> None:
        gathered: dict[int, list[pa.RecordBatch]] = {number: [] for number in queues}
        while not self._has_failed and await self._gather_next(batches, gathered, queues):
            pass
        for number, queue in queues.items():
            if gathered[number] and not self._has_failed:
                await queue.put(_joined(gathered.pop(number)))

    async def _gather_next(
        self,
        batches: Iterator[pa.RecordBatch],
        gathered: dict[int, list[pa.RecordBatch]],
        queues: Queues,
    ) -> bool:
        """Reads the next batch of the source, and keeps nothing of it but what is *gathered*.
        Returns whether there was one."""
        parts = await asyncio.to_thread(self._next_parts, batches)
        for part in parts or ():
            waiting = gathered[part.number]
            waiting.append(part.rows)
            if sum(rows.num_rows for rows in waiting) >= self.plan.batch_rows:
                gathered[part.number] = []
                await queues[part.number].put(_joined(waiting))
        return parts is not None

    def _next_parts(self, batches: Iterator[pa.RecordBatch]) -> list[RegionPart] | None:
        try:
            batch = next(batches, None)
        except pa.ArrowException as error:
            raise Refused("invalid-request", reason=str(error).partition("\n")[0]) from error
        if batch is None:
            return None
        first, self.read = self.read, self.read + batch.num_rows
        try:
            return self.plan.through.parts(self.bound.layout, batch, self.plan.op, first)
        except Refused as error:
            raise moved(error, first, batch.num_rows) from error

    async def _write_region(self, number: int, queue: Queue) -> None:
        while await self._write_next(number, queue):
            pass

    async def _write_next(self, number: int, queue: Queue) -> bool:
        """Writes the next batch of a region, and keeps nothing of it: the one after it may be long
        on its way. Returns whether there was one."""
        rows = await queue.get()
        if rows is None:
            return False
        if self._has_failed:
            return True  # what is left is taken out of the way of the reader
        if self.plan.op == "upsert":
            rows = await asyncio.to_thread(newest_of_each_key, rows)
        part = RegionPart(number, rows)
        key = self.plan.new_key()
        outcome = await self.plan.through.put(self.bound, part, self.plan.op, key)
        self.outcomes.append(outcome)
        if self.plan.on_progress is not None and outcome.outcome == "applied":
            self.plan.on_progress(self._rows)
        return True

    def _failure(self) -> MetaError:
        """Returns the error that `settle` raises for the newest batch of each region, with the rows
        loaded so far."""
        newest = {outcome.region_id: outcome for outcome in self.outcomes}
        try:
            settle([outcome for outcome in newest.values() if outcome.error is not None])
        except MetaError as error:
            return type(error)(error.code, **{**error.facts, "rows": self._rows})
        raise AssertionError("a load failed without an error")


def batches_of(source: Source, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Cuts the source into batches of at most `batch_rows`; a small one is not joined with the
    next."""
    batches: Iterable[pa.RecordBatch] = source
    if isinstance(source, pa.Table):
        batches = source.to_batches(max_chunksize=batch_rows)
    for batch in batches:
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows)
        del batch  # the next one may be long on its way


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches)
