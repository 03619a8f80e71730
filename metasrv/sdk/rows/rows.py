"""The rows of one table: statements, reads, and scans, through frontends."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypedDict, TypeVar, Unpack

import pyarrow as pa

from metasrv.sdk.rows.binding import Binding, Bound
from metasrv.sdk.rows.frontends import Frontends
from metasrv.sdk.rows.rows_query import RowsQuery
from metasrv.sdk.rows.via_frontend import Through
from metasrv_base.clock import Clock, SystemClock
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import Conflict, Refused
from metasrv_base.rows.convert import Rows
from metasrv_base.rows.layout import KeyLike, Layout
from metasrv_base.rows.outcome import WriteResult
from metasrv_base.rows.retry import SENT_MS_MAX
from metasrv_base.rows.statement_ids import StatementKey
from metasrv_base.wire.node.batches import ChecksumResult

T = TypeVar("T")
DEADLINE_MS = SENT_MS_MAX
"""The default deadline of a statement."""
FIND_ROWS = 1_000
REGIONS_AT_ONCE = 16
"""Requests of one read of all regions under way at a time."""


class StatementOptions(TypedDict, total=False):
    """Keyword arguments of every statement."""

    deadline_ms: int
    """Default 60,000. Regions refuse what they are sent later than two minutes after it was made
    (`statement-too-old`), whatever the deadline."""
    statement_id: str
    """The id of a write: the same id again is answered with the first result, within two minutes of
    the first."""
    sent_ms: int
    """The time at which a write with a `statement_id` was made, in ms since 1970. The same id with
    the same time is never applied twice, however late it comes. Default: the time of this call, so
    that a later call with the same id is known for two minutes only."""


class LagOptions(TypedDict, total=False):
    """Keyword arguments of reads that copies may answer."""

    max_lag: int | None
    """The age in ms that rows may have, 1 to 3,600,000: copies of a region may answer that have all
    rows that were acknowledged so long before. Default, and None: leaders answer, with all rows."""


class ReadOptions(LagOptions, total=False):
    """Keyword arguments of every read by key."""

    deadline_ms: int
    """Default 60,000."""


@dataclass(frozen=True, slots=True)
class TableChecksum:
    """Equal for equal rows, wherever they lie."""

    rows: int
    checksum: str
    """16 hexadecimal digits: the sum over the regions, mod 2^64."""
    regions: tuple[ChecksumResult, ...]


class AsyncRows:
    """`client.table("main.public.flights")`: insert, upsert, update, delete, get, find and more."""

    def __init__(self, binding: Binding, frontends: Frontends, clock: Clock | None = None) -> None:
        self.binding = binding
        self._clock = clock or SystemClock()
        self._through = Through(binding, frontends)

    @property
    def name(self) -> str:
        return str(self.binding.name)

    def __repr__(self) -> str:
        return f"<table {self.name}>"

    async def schema(self) -> pa.Schema:
        """Columns in declared order, in Arrow's types."""
        return (await self.binding.get()).layout.arrow

    async def regions(self) -> list[int]:
        """Numbers of the table's regions."""
        return sorted((await self.binding.get()).regions)

    async def insert(self, rows: Rows, **options: Unpack[StatementOptions]) -> WriteResult:
        """New rows. Conflict `already-exists` with `keys` if one is there: its region took none.

        Rows of one region are taken together or not at all; whenever less than all were applied
        the error has `regions`, with what each did (metasrv_base/rows/outcome.py).
        """
        return await self._write(RowsQuery("insert", rows), options)

    async def upsert(self, rows: Rows, **options: Unpack[StatementOptions]) -> WriteResult:
        """Rows, new or in the place of those with their keys."""
        return await self._write(RowsQuery("upsert", rows), options)

    async def update(self, rows: Rows, **options: Unpack[StatementOptions]) -> WriteResult:
        """Rows that are there: what is named changes, in all of them the same columns. Conflict
        `row-missing` if one is not."""
        return await self._write(RowsQuery("update", rows), options)

    async def delete(
        self, keys: Iterable[KeyLike], **options: Unpack[StatementOptions]
    ) -> WriteResult:
        """Deletes rows by primary key; a key without a row is no error."""
        return await self._write(RowsQuery("delete", (), _listed(keys)), options)

    async def get(self, key: KeyLike, **options: Unpack[ReadOptions]) -> dict[str, object] | None:
        """One row by primary key; None: there is none."""
        rows = await self.get_many([key], **options)
        return rows[0] if rows else None

    async def get_many(
        self, keys: Iterable[KeyLike], **options: Unpack[ReadOptions]
    ) -> list[dict[str, object]]:
        """The rows that are there, by region."""
        return await self._through.get(_listed(keys), _until(options), options.get("max_lag"))

    async def find(
        self,
        index: str,
        eq: object = None,
        from_: object = None,
        to: object = None,
        limit: int = FIND_ROWS,
        **options: Unpack[LagOptions],
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """At most *limit* rows in the order of an index: those whose first values are *eq*, or from
        `from_` up to but not `to`. One value, or a tuple of the first ones."""
        named = {"eq": eq, "from": from_, "to": to}
        bounds = {
            name: value if isinstance(value, tuple) else (value,)
            for name, value in named.items()
            if value is not None
        }
        async for page in self._through.find(index, bounds, limit, options.get("max_lag")):
            yield page

    async def scan(
        self,
        columns: Sequence[str] | None = None,
        from_: KeyLike | None = None,
        to: KeyLike | None = None,
        regions: Sequence[int] | None = None,
        max_lag: int | None = None,
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Live rows, region by region, in key order within each. `from_` is inclusive, `to` is
        not; both may be the first values of a key only. Each answer has a deadline of its own.
        *max_lag*: the age in ms that rows of an answer may have; None: leaders answer."""
        bound = await self.binding.get()
        chosen = bound.layout.chosen(columns)
        for number in sorted(bound.regions) if regions is None else regions:
            if number not in bound.regions:
                raise Refused("invalid-request", pointer="/regions", found=number)
            async for page in self._through.pages(bound, number, chosen, (from_, to), max_lag):
                yield page

    async def to_arrow(
        self, columns: Sequence[str] | None = None, max_lag: int | None = None
    ) -> pa.Table:
        """All live rows, regions read at the same time. *max_lag*: as of `scan`."""

        async def read_all(bound: Bound) -> pa.Table:
            chosen = bound.layout.chosen(columns)

            async def read(number: int) -> list[pa.RecordBatch]:
                pages = self._through.pages(bound, number, chosen, (None, None), max_lag)
                return [page async for page in pages]

            calls = [partial(read, number) for number in sorted(bound.regions)]
            by_region = await fan_out(calls, at_once=REGIONS_AT_ONCE)
            pages = [page for some in by_region for page in some]
            return pa.Table.from_batches(pages, Layout.arrow_of(chosen))

        return await self._by_newest(_until({}), read_all)

    async def count(self, **options: Unpack[StatementOptions]) -> int:
        """Live rows, counted by the regions."""
        return (await self.checksum(**options)).rows

    async def checksum(self, **options: Unpack[StatementOptions]) -> TableChecksum:
        """Computed by the regions at the same time, over all live rows."""
        bound, until = await self.binding.get(), _until(options)
        checksum = self._through.checksum
        calls = [partial(checksum, bound, number, until) for number in sorted(bound.regions)]
        regions = await fan_out(calls, at_once=REGIONS_AT_ONCE)
        total = sum(int(region.checksum, 16) for region in regions) % (1 << 64)
        return TableChecksum(
            sum(region.rows for region in regions), f"{total:016x}", tuple(regions)
        )

    # -- inside

    async def _write(self, query: RowsQuery, options: StatementOptions) -> WriteResult:
        if isinstance(query.rows, Mapping):
            expected = "a list of rows, or an Arrow table; one row is [{...}]"
            raise Refused("invalid-request", pointer="/rows", found="one row", expected=expected)
        return await self._through.write(query, self._key(options), _until(options))

    async def _by_newest(self, until: float, read: Callable[[Bound], Awaitable[T]]) -> T:
        """*read* by the newest reading of the table: begun anew where a column of it has gone."""
        while True:
            bound = await self.binding.get()
            try:
                return await read(bound)
            except Conflict as error:
                is_newer = (await self.binding.get()).reading > bound.reading
                has_time = asyncio.get_running_loop().time() < until
                if error.code != "schema-version-stale" or not is_newer or not has_time:
                    raise

    def _key(self, options: StatementOptions) -> StatementKey:
        text = options.get("statement_id") or str(uuid.uuid4())
        return StatementKey(text, options.get("sent_ms") or self._clock.wall_ms())


def _until(options: StatementOptions | ReadOptions) -> float:
    left_s = options.get("deadline_ms", DEADLINE_MS) / 1000
    return asyncio.get_running_loop().time() + left_s


def _listed(keys: Iterable[KeyLike]) -> list[KeyLike]:
    """Raises Refused for one key that stands where several are expected."""
    if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
        expected = "a list of keys; one key is [key]"
        raise Refused("invalid-request", pointer="/keys", found=repr(keys), expected=expected)
    return list(keys)
