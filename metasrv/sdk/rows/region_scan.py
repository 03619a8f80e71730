"""Rows of whole regions, read from the nodes that lead them: for readers with one task per region.

Executors of Spark read so: rows pass no frontend and never meet. Nothing is written this way.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from metasrv.sdk.rows.binding import Binding, Bound
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable, Unknown
from metasrv_base.rng import Rng
from metasrv_base.rows.convert import to_users
from metasrv_base.rows.layout import LayoutColumn
from metasrv_base.rows.nodes import NodePools, has_more
from metasrv_base.rows.retry import REGION_BACKOFF, at_the_end, attempts, may_send_again
from metasrv_base.wire.api.tables import RegionRouteBody
from metasrv_base.wire.node.batches import ScanRows

T = TypeVar("T")
PAGE_ROWS = 25_000
"""Rows of one answer of a scan: a few MiB."""
PAGE_BYTES = 16 << 20
"""Bytes after which an answer ends: one row at least, which may exceed them."""
PAGE_S = 60.0
"""The deadline of one page, in s: longer than a failover by detection takes (30 s)."""
COPY_MS_MAX = 10_000
"""The time for which a copy is waited for before the leader is asked for a page, in ms."""
LAG = "max_lag_ms"
"""The fact by which a copy says that it is one, and only too far behind."""


@dataclass(frozen=True, slots=True)
class RegionQuery:
    """The page of a region that is read next."""

    number: int
    columns: Sequence[LayoutColumn]
    max_lag: int | None
    """The age in ms that rows may have; None: the leader answers."""
    first: str | None = None
    """The first key, in hexadecimal; None: that of the region."""


@dataclass(frozen=True, slots=True)
class RegionScan:
    binding: Binding
    nodes: NodePools
    rng: Rng
    page_s: float = PAGE_S

    async def pages(
        self,
        bound: Bound,
        number: int,
        columns: Sequence[LayoutColumn],
        max_lag: int | None = None,
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Live rows of one region in key order. Each answer has a deadline of its own. *max_lag*:
        the age in ms that its rows may have, so that a copy may answer.

        Raises Conflict `schema-version-stale` once the table has those columns no more.
        """
        query = RegionQuery(number, columns, max_lag)
        while True:
            page = await self._page(bound, query)
            for batch in page.to_batches():
                if batch.num_rows:
                    yield to_users(columns, batch)
            if page.num_rows < PAGE_ROWS and not has_more(page):
                return
            query = replace(query, first=page.column("_key")[-1].as_py().hex() + "00")

    async def _page(self, bound: Bound, query: "RegionQuery") -> pa.Table:
        until = asyncio.get_running_loop().time() + self.page_s

        async def ask(now: Bound) -> pa.Table | Conflict:
            if not now.layout.has(query.columns):
                return Conflict("schema-version-stale", found=bound.layout.schema_version)
            region = _region(now, query.number)
            request = ScanRows(
                table_id=now.layout.table_id,
                schema_version=now.layout.schema_version,
                epoch=region.epoch,
                max_lag_ms=query.max_lag,
                from_key=query.first,
                columns=[column.id for column in query.columns],
                limit=PAGE_ROWS,
                bytes_max=PAGE_BYTES,
            )
            left_ms = max(1, int((until - asyncio.get_running_loop().time()) * 1000))
            copy = None if query.max_lag is None else self._copy(region)
            if copy is not None:
                try:
                    at_most_ms = min(left_ms, COPY_MS_MAX)
                    return await self.nodes.read_rows(copy, "scan", request, at_most_ms)
                except MetaError as error:  # the leader has the rows too
                    if LAG not in error.facts:  # it may be a copy no more
                        self.binding.doubt(now)
            return await self.nodes.read_rows(region, "scan", request, left_ms)

        try:
            page = await self._until_final(bound, until, ask)
        except Unknown as error:  # a read changes nothing: a lost answer is only a late one
            raise Unavailable("not-ready", **error.facts) from error
        if isinstance(page, Conflict):
            raise page
        return page

    def _copy(self, region: RegionRouteBody) -> RegionRouteBody | None:
        """A copy in sync, drawn among all with the leader; None: the leader."""
        places = [(region.leader, region.address), *sorted(region.copy_addresses.items())]
        node, address = places[int(self.rng.random() * len(places))]
        if node == region.leader:
            return None
        return region.model_copy(update={"leader": node, "address": address})

    async def _until_final(
        self, bound: Bound, until: float, send: Callable[[Bound], Awaitable[T]]
    ) -> T:
        """*send* with the newest reading of the table until it succeeds or its error is final."""
        failed = False
        results: list[T] = []
        try:
            now = await self.binding.newest(bound)
            async for attempt in attempts(until, self.rng, REGION_BACKOFF, may_send_again):
                with attempt:
                    if failed:
                        now = await self.binding.read_again(now)
                    failed = True
                    results = [await self._sent(now, send)]
        except NotFound as error:
            raise at_the_end(error) from error
        return results[0]

    async def _sent(self, now: Bound, send: Callable[[Bound], Awaitable[T]]) -> T:
        try:
            return await send(now)
        except MetaError as error:
            if may_send_again(error) or error.code == "region-lost":
                self.binding.doubt(now)
            raise


def _region(bound: Bound, number: int) -> RegionRouteBody:
    if number not in bound.regions:
        raise NotFound("not-found", what="region", name=f"{bound.layout.name} {number}")
    return bound.regions[number]
