"""Rows of whole regions, read from the nodes that lead them: for readers with one task per region.

Executors of Spark read so: rows pass no frontend and never meet. Nothing is written this way.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class RegionScan:
    binding: Binding
    nodes: NodePools
    rng: Rng
    page_s: float = PAGE_S

    async def pages(
        self, bound: Bound, number: int, columns: Sequence[LayoutColumn]
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Live rows of one region in key order. Each answer has a deadline of its own.

        Raises Conflict `schema-version-stale` once the table has those columns no more.
        """
        first: str | None = None
        while True:
            page = await self._page(bound, number, columns, first)
            for batch in page.to_batches():
                if batch.num_rows:
                    yield to_users(columns, batch)
            if page.num_rows < PAGE_ROWS and not has_more(page):
                return
            first = page.column("_key")[-1].as_py().hex() + "00"

    async def _page(
        self, bound: Bound, number: int, columns: Sequence[LayoutColumn], first: str | None
    ) -> pa.Table:
        until = asyncio.get_running_loop().time() + self.page_s

        async def ask(now: Bound) -> pa.Table | Conflict:
            if not now.layout.has(columns):
                return Conflict("schema-version-stale", found=bound.layout.schema_version)
            region = _region(now, number)
            request = ScanRows(
                table_id=now.layout.table_id,
                schema_version=now.layout.schema_version,
                epoch=region.epoch,
                from_key=first,
                columns=[column.id for column in columns],
                limit=PAGE_ROWS,
                bytes_max=PAGE_BYTES,
            )
            left_ms = max(1, int((until - asyncio.get_running_loop().time()) * 1000))
            return await self.nodes.read_rows(region, "scan", request, left_ms)

        try:
            page = await self._until_final(bound, until, ask)
        except Unknown as error:  # a read changes nothing: a lost answer is only a late one
            raise Unavailable("not-ready", **error.facts) from error
        if isinstance(page, Conflict):
            raise page
        return page

    async def _until_final(
        self, bound: Bound, until: float, send: Callable[[Bound], Awaitable[T]]
    ) -> T:
        """*send* with the newest binding until it succeeds or its error is final."""
        now = bound
        failed = False
        results: list[T] = []
        try:
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
