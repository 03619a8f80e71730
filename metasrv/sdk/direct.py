"""Rows straight at the nodes: statements split over the regions that the route names.

For clusters without a frontend, and for who asks for it. Tables with indexes need a frontend: only
it knows what each of them asks for.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from base.errors import Conflict, Refused, Unavailable
from base.fanout import fan_out
from base.rng import Rng
from base.rows.convert import to_batch, to_dicts, to_users
from base.rows.layout import Column, KeyLike, Layout
from base.rows.nodes import Nodes
from base.rows.outcome import RegionOutcome, WriteResult, settle
from base.rows.places import PLACE, numbered, placed
from base.rows.split import Op as StoredOp
from base.rows.split import Part, by_region, split, with_keys
from base.rows.statement_ids import id_of_batch, id_of_key, id_of_part
from base.wire.batches import ChecksumRequest, ChecksumResult, GetRows, ReadHeader, ScanRows
from base.wire.tables import RegionRouteBody
from metasrv.sdk.binding import Binding, Bound
from metasrv.sdk.statement import Statement
from metasrv.sdk.way import Ends, Op, Wanted, with_keys_shown

T = TypeVar("T")
PAGE_ROWS = 25_000
"""Rows of one answer of a scan: a few MiB."""
REGIONS_AT_ONCE = 16
"""Requests of one statement under way at a time."""
PAGE_S = 60.0
"""For one page, or one batch of a load: longer than a failover by detection takes (30 s)."""


@dataclass(frozen=True, slots=True)
class Direct:
    binding: Binding
    nodes: Nodes
    rng: Rng

    async def write(self, wanted: Wanted, key: str, until: float) -> WriteResult:
        op = _stored_op(wanted.op)
        statement, statement_id = self._statement(until), id_of_batch(id_of_key(key), 0)
        bound = await self.binding.get()
        try:
            batch = await asyncio.to_thread(wanted.stored, bound.layout)
        except Refused:
            # Perhaps a column was renamed since the table was read: judged again once.
            now = await self.binding.read_again(bound)
            if now is bound or now.body.version == bound.body.version:
                raise
            bound = now
            batch = await asyncio.to_thread(wanted.stored, bound.layout)
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
                batch = await asyncio.to_thread(wanted.stored, bound.layout)
                parts = [part for part in await split_all(bound, batch, op) if part.number in stale]
            except (Refused, Unavailable):
                if stale == outcomes.keys():
                    raise
                break
            outcomes |= await self._send(statement, bound, parts, statement_id)
        try:
            return settle([outcomes[number] for number in sorted(outcomes)])
        except Conflict as error:
            raise with_keys_shown(error, bound.layout) from error

    async def get(self, keys: Sequence[KeyLike], until: float) -> list[dict[str, object]]:
        statement = self._statement(until)

        async def read_all(bound: Bound) -> list[dict[str, object]]:
            layout, by_number = bound.layout, dict[int, list[str]]()
            for key in keys:
                values = layout.key_values(key)
                number = layout.number_of(values)
                by_number.setdefault(number, []).append(layout.key_bytes(values).hex())

            def read(number: int) -> Awaitable[pa.Table]:
                ids = [column.id for column in layout.columns]

                def send(region: RegionRouteBody, header: ReadHeader) -> Awaitable[pa.Table]:
                    asked = GetRows(**header.model_dump(), keys=by_number[number], columns=ids)
                    return self.nodes.read_rows(region, "get", asked, statement.left_ms)

                return statement.read(bound, number, send, layout.columns)

            calls = [partial(read, number) for number in sorted(by_number)]
            tables = await fan_out(calls, at_once=REGIONS_AT_ONCE)
            batches = [batch for table in tables for batch in table.to_batches()]
            return [row for batch in batches for row in to_dicts(layout.columns, batch)]

        return await by_newest(self.binding, until, read_all)

    async def pages(
        self, bound: Bound, number: int, columns: Sequence[Column], ends: Ends
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        first, end = (None if one is None else bound.layout.bound_bytes(one).hex() for one in ends)
        while True:
            page = await self._page(bound, number, columns, (first, end))
            for batch in page.to_batches():
                yield to_users(columns, batch)
            if page.num_rows < PAGE_ROWS:
                return
            first = page.column("_key")[-1].as_py().hex() + "00"

    async def checksum(self, bound: Bound, number: int, until: float) -> ChecksumResult:
        statement = self._statement(until)

        def send(region: RegionRouteBody, header: ReadHeader) -> Awaitable[ChecksumResult]:
            wanted = ChecksumRequest(**header.model_dump())
            left_ms = statement.left_ms
            return self.nodes.read(region, "checksum", wanted, left_ms, ChecksumResult)

        return await statement.read(bound, number, send)

    def parts(self, layout: Layout, rows: pa.RecordBatch, op: Op, first: int) -> list[Part]:
        stored = to_batch(layout, rows)
        keyed = numbered(with_keys(layout, stored, _stored_op(op)), first)
        return by_region(layout, stored, keyed)

    async def put(self, bound: Bound, part: Part, op: Op, key: str) -> RegionOutcome:
        until = asyncio.get_running_loop().time() + PAGE_S
        sent = replace(part, rows=part.rows.drop_columns([PLACE]))
        done = await self._statement(until).write(bound, sent, id_of_key(key))
        if done.error is None:
            return done
        told = placed(done.error, part.rows.column(PLACE))
        return replace(done, error=with_keys_shown(told, bound.layout))

    # -- inside

    async def _send(
        self, statement: Statement, bound: Bound, parts: Sequence[Part], statement_id: str
    ) -> dict[int, RegionOutcome]:
        """By number of the region."""
        calls = [
            partial(statement.write, bound, part, id_of_part(statement_id, part.number))
            for part in parts
        ]
        outcomes = await fan_out(calls, at_once=REGIONS_AT_ONCE)
        return {part.number: outcome for part, outcome in zip(parts, outcomes, strict=True)}

    async def _page(
        self,
        bound: Bound,
        number: int,
        columns: Sequence[Column],
        keys: tuple[str | None, str | None],
    ) -> pa.Table:
        statement = self._statement(asyncio.get_running_loop().time() + PAGE_S)
        ids = [column.id for column in columns]

        def send(region: RegionRouteBody, header: ReadHeader) -> Awaitable[pa.Table]:
            wanted = ScanRows(
                **header.model_dump(),
                from_key=keys[0],
                to_key=keys[1],
                columns=ids,
                limit=PAGE_ROWS,
            )
            return self.nodes.read_rows(region, "scan", wanted, statement.left_ms)

        return await statement.read(bound, number, send, columns)

    def _statement(self, until: float) -> Statement:
        return Statement(self.binding, self.nodes, self.rng, until)


async def by_newest(binding: Binding, until: float, read: Callable[[Bound], Awaitable[T]]) -> T:
    """*read* by the newest reading of the table: begun anew where a column of it has gone."""
    while True:
        bound = await binding.get()
        try:
            return await read(bound)
        except Conflict as error:
            is_newer = (await binding.get()).reading > bound.reading
            has_time = asyncio.get_running_loop().time() < until
            if error.code != "schema-version-stale" or not is_newer or not has_time:
                raise


async def split_all(bound: Bound, batch: pa.RecordBatch, op: StoredOp) -> list[Part]:
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


def _stored_op(op: Op) -> StoredOp:
    assert op != "update", "it takes reading first"
    return op
