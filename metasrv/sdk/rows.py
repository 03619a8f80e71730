"""The rows of one table: statements split over its regions, reads gathered from them."""

import asyncio
import uuid
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass
from functools import partial
from typing import TypedDict, TypeVar, Unpack

import pyarrow as pa

from base.errors import Conflict, MetaError, Refused
from base.fanout import fan_out
from base.rng import Rng
from base.rows.convert import Rows, array_of, to_batch, to_dicts, to_users
from base.rows.layout import Column, KeyLike, Layout
from base.rows.nodes import Nodes
from base.rows.outcome import RegionOutcome, WriteResult, settle
from base.rows.split import Op, Part, split
from base.wire.batches import ChecksumRequest, ChecksumResult, GetRows, ReadHeader, ScanRows
from base.wire.tables import RegionRouteBody
from metasrv.sdk.binding import Binding, Bound
from metasrv.sdk.statement import Statement

T = TypeVar("T")
PAGE_ROWS = 25_000
"""Rows of one answer of a scan: a few MiB."""
REGIONS_AT_ONCE = 16
"""Requests of one statement under way at a time."""
DEADLINE_MS = 60_000
"""Of a statement: longer than a failover by detection takes (30 s)."""


class StatementOptions(TypedDict, total=False):
    """Keyword arguments of every statement."""

    deadline_ms: int
    """Default 60,000."""
    statement_id: str
    """Of writes: the same id again is answered by what it did the first time, for ten minutes."""


@dataclass(frozen=True, slots=True)
class TableChecksum:
    """Equal for equal rows, wherever they lie."""

    rows: int
    checksum: str
    """16 hexadecimal digits: the sum over the regions, mod 2^64."""
    regions: tuple[ChecksumResult, ...]


class AsyncRows:
    """`client.table("main.public.flights")`: insert, upsert, delete, get, scan and more."""

    def __init__(self, binding: Binding, nodes: Nodes, rng: Rng) -> None:
        self.binding = binding
        self._nodes = nodes
        self._rng = rng

    @property
    def name(self) -> str:
        return str(self.binding.name)

    async def schema(self) -> pa.Schema:
        """Columns in declared order, in Arrow's types."""
        return (await self.binding.get()).layout.arrow

    async def regions(self) -> list[int]:
        """Numbers of the table's regions."""
        return sorted((await self.binding.get()).regions)

    async def insert(self, rows: Rows, **options: Unpack[StatementOptions]) -> WriteResult:
        """New rows. Conflict `already-exists` with `keys` if one is there: its region took none.

        Rows of one region are taken together or not at all; whenever less than all were applied
        the error has `regions`, with what each did (base/rows/outcome.py).
        """
        return await self._put(rows, "insert", options)

    async def upsert(self, rows: Rows, **options: Unpack[StatementOptions]) -> WriteResult:
        """Rows, new or in the place of those with their keys."""
        return await self._put(rows, "upsert", options)

    async def delete(
        self, keys: Iterable[KeyLike], **options: Unpack[StatementOptions]
    ) -> WriteResult:
        """By primary key; a key without a row is fine."""

        def rows_of(layout: Layout) -> pa.RecordBatch:
            distinct = {layout.key_bytes(key): layout.key_values(key) for key in wanted}
            columns = zip(*distinct.values(), strict=True) if distinct else [()] * len(layout.key)
            arrays = [array_of(*pair) for pair in zip(layout.key, columns, strict=True)]
            return pa.RecordBatch.from_arrays(arrays, names=[one.field for one in layout.key])

        wanted = list(keys)
        return await self._write(rows_of, "delete", options)

    async def get(
        self, key: KeyLike, **options: Unpack[StatementOptions]
    ) -> dict[str, object] | None:
        """One row by primary key; None: there is none."""
        found = await self.get_many([key], **options)
        return found[0] if found else None

    async def get_many(
        self, keys: Iterable[KeyLike], **options: Unpack[StatementOptions]
    ) -> list[dict[str, object]]:
        """The rows that are there, by region."""
        statement, wanted = self._statement(options), list(keys)

        async def read_all(bound: Bound) -> list[dict[str, object]]:
            layout, by_number = bound.layout, dict[int, list[str]]()
            for key in wanted:
                values = layout.key_values(key)
                number = layout.number_of(values)
                by_number.setdefault(number, []).append(layout.key_bytes(values).hex())

            def read(number: int) -> Awaitable[pa.Table]:
                ids = [column.id for column in layout.columns]

                def send(region: RegionRouteBody, header: ReadHeader) -> Awaitable[pa.Table]:
                    asked = GetRows(**header.model_dump(), keys=by_number[number], columns=ids)
                    return self._nodes.read_rows(region, "get", asked, statement.left_ms)

                return statement.read(bound, number, send, layout.columns)

            calls = [partial(read, number) for number in sorted(by_number)]
            tables = await fan_out(calls, at_once=REGIONS_AT_ONCE)
            batches = [batch for table in tables for batch in table.to_batches()]
            return [row for batch in batches for row in to_dicts(layout.columns, batch)]

        return await self._by_newest(statement, read_all)

    async def scan(
        self,
        columns: Sequence[str] | None = None,
        from_: KeyLike | None = None,
        to: KeyLike | None = None,
        regions: Sequence[int] | None = None,
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Live rows, region by region, in key order within each. `from_` is inclusive, `to` is
        not; both may be the first values of a key only. Each answer has a deadline of its own."""
        bound = await self.binding.get()
        chosen = bound.layout.chosen(columns)
        keys = [None if one is None else bound.layout.bound_bytes(one).hex() for one in (from_, to)]
        for number in sorted(bound.regions) if regions is None else regions:
            if number not in bound.regions:
                raise Refused("invalid-request", pointer="/regions", found=number)
            async for page in self._pages(bound, number, chosen, (keys[0], keys[1])):
                yield page

    async def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All live rows, regions read at the same time."""

        async def read_all(bound: Bound) -> pa.Table:
            chosen = bound.layout.chosen(columns)

            async def read(number: int) -> list[pa.RecordBatch]:
                return [page async for page in self._pages(bound, number, chosen, (None, None))]

            calls = [partial(read, number) for number in sorted(bound.regions)]
            found = await fan_out(calls, at_once=REGIONS_AT_ONCE)
            pages = [page for some in found for page in some]
            return pa.Table.from_batches(pages, Layout.arrow_of(chosen))

        return await self._by_newest(self._statement({}), read_all)

    async def count(self, **options: Unpack[StatementOptions]) -> int:
        """Live rows, counted by the regions."""
        return (await self.checksum(**options)).rows

    async def checksum(self, **options: Unpack[StatementOptions]) -> TableChecksum:
        """Computed by the regions at the same time, over all live rows."""
        statement, bound = self._statement(options), await self.binding.get()

        def send(region: RegionRouteBody, header: ReadHeader) -> Awaitable[ChecksumResult]:
            wanted = ChecksumRequest(**header.model_dump())
            left_ms = statement.left_ms
            return self._nodes.read(region, "checksum", wanted, left_ms, ChecksumResult)

        calls = [partial(statement.read, bound, number, send) for number in sorted(bound.regions)]
        found = await fan_out(calls, at_once=REGIONS_AT_ONCE)
        total = sum(int(one.checksum, 16) for one in found) % (1 << 64)
        return TableChecksum(sum(one.rows for one in found), f"{total:016x}", tuple(found))

    # -- inside

    async def _put(self, rows: Rows, op: Op, options: StatementOptions) -> WriteResult:
        return await self._write(lambda layout: to_batch(layout, rows), op, options)

    async def _write(
        self, rows_of: Callable[[Layout], pa.RecordBatch], op: Op, options: StatementOptions
    ) -> WriteResult:
        statement = self._statement(options)
        statement_id = options.get("statement_id") or str(uuid.uuid4())
        bound = await self.binding.get()
        try:
            batch = await asyncio.to_thread(rows_of, bound.layout)
        except Refused:
            # Perhaps a column was renamed since the table was read: judged again once.
            now = await self.binding.read_again(bound)
            if now is bound or now.body.version == bound.body.version:
                raise
            bound = now
            batch = await asyncio.to_thread(rows_of, bound.layout)
        outcomes = await self._send(
            statement, bound, await split_all(bound, batch, op), statement_id
        )
        while (stale := stale_regions(outcomes)) and statement.has_time:
            # Other columns than those it was encoded for: finished under the new ones.
            now = await self.binding.get()
            if now.reading <= bound.reading:
                break
            bound = now
            try:
                batch = await asyncio.to_thread(rows_of, bound.layout)
            except Refused:
                if stale == outcomes.keys():
                    raise
                break
            parts = [part for part in await split_all(bound, batch, op) if part.number in stale]
            outcomes |= await self._send(statement, bound, parts, statement_id)
        try:
            return settle([outcomes[number] for number in sorted(outcomes)])
        except Conflict as error:
            raise with_keys_shown(error, bound.layout) from error

    async def _send(
        self, statement: Statement, bound: Bound, parts: Sequence[Part], statement_id: str
    ) -> dict[int, RegionOutcome]:
        """By number of the region."""
        calls = [partial(statement.write, bound, part, statement_id) for part in parts]
        outcomes = await fan_out(calls, at_once=REGIONS_AT_ONCE)
        return {part.number: outcome for part, outcome in zip(parts, outcomes, strict=True)}

    async def _pages(
        self,
        bound: Bound,
        number: int,
        columns: Sequence[Column],
        keys: tuple[str | None, str | None],
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        first, end = keys
        while True:
            page = await self._page(bound, number, columns, (first, end))
            for batch in page.to_batches():
                yield to_users(columns, batch)
            if page.num_rows < PAGE_ROWS:
                return
            first = page.column("_key")[-1].as_py().hex() + "00"

    async def _page(
        self,
        bound: Bound,
        number: int,
        columns: Sequence[Column],
        keys: tuple[str | None, str | None],
    ) -> pa.Table:
        statement = self._statement({})
        ids = [column.id for column in columns]

        def send(region: RegionRouteBody, header: ReadHeader) -> Awaitable[pa.Table]:
            wanted = ScanRows(
                **header.model_dump(),
                from_key=keys[0],
                to_key=keys[1],
                columns=ids,
                limit=PAGE_ROWS,
            )
            return self._nodes.read_rows(region, "scan", wanted, statement.left_ms)

        return await statement.read(bound, number, send, columns)

    async def _by_newest(self, statement: Statement, read: Callable[[Bound], Awaitable[T]]) -> T:
        """*read* by the newest reading of the table: begun anew where a column of it has gone."""
        while True:
            bound = await self.binding.get()
            try:
                return await read(bound)
            except Conflict as error:
                is_newer = (await self.binding.get()).reading > bound.reading
                if error.code != "schema-version-stale" or not is_newer or not statement.has_time:
                    raise

    def _statement(self, options: StatementOptions) -> Statement:
        left_s = options.get("deadline_ms", DEADLINE_MS) / 1000
        until = asyncio.get_running_loop().time() + left_s
        return Statement(self.binding, self._nodes, self._rng, until)


async def split_all(bound: Bound, batch: pa.RecordBatch, op: Op) -> list[Part]:
    return await asyncio.to_thread(split, bound.layout, batch, op)


def stale_regions(outcomes: Mapping[int, RegionOutcome]) -> Set[int]:
    """Numbers of those that took nothing, because the schema version was older than their floor."""
    return {
        number
        for number, one in outcomes.items()
        if one.outcome == "not-applied"
        and one.error is not None
        and one.error.code == "schema-version-stale"
    }


def with_keys_shown(error: MetaError, layout: Layout) -> MetaError:
    """Keys by column name where a region has named encoded ones."""
    keys = error.facts.get("keys")
    if not isinstance(keys, list):
        return error
    shown = [layout.key_shown(bytes.fromhex(key)) for key in keys]
    return type(error)(error.code, **{**error.facts, "keys": shown})
