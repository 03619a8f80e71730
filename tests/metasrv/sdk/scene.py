"""A client of the SDK between a fake metasrv and frontends that are one, over a real datanode."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from dataplane.frontend.http.app import build_app
from metasrv.sdk.client import AsyncClient
from metasrv.sdk.rows.table import AsyncTable
from metasrv_base.wire.api.tables import TableBody
from metasrv_base.wire.frontend.feed import FeedColumn, FeedConstraint
from metasrv_base.wire.frontend.rows import MIN_SCHEMA_VERSION
from metasrv_base.wire.http.client import ANSWER_WITHIN_MS
from tests.dataplane.frontend.bench import Bench, running
from tests.dataplane.frontend.tables import feed_table, index
from tests.metasrv.sdk.catalog import URL, FakeCatalog

ONE, OTHER = "http://fe-1.test", "http://fe-2.test"
Elements = Sequence[FeedColumn | FeedConstraint]
COLUMNS = [("id", "int64", False), ("a", "int64", True), ("b", "string", True)]


@dataclass
class Frontends(FakeCatalog):
    """Both are one: each keeps nothing. `faults` come before or after what is asked is done."""

    bench: Bench | None = None
    faults: list[tuple[str, httpx.RequestError]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """Hosts that were asked."""
    at_least: list[str | None] = field(default_factory=list)
    """The schema version that each had to know."""
    within_ms: list[int] = field(default_factory=list)
    """The time in which each was to answer."""
    held: asyncio.Event | None = None
    """Until then nobody hears which there are."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if str(request.url).startswith(URL):
            if self.held is not None and request.url.path == "/v1/schema-leases":
                await self.held.wait()
            return await super().handle_async_request(request)
        assert self.bench is not None
        assert request.url.host in ("fe-1.test", "fe-2.test"), "never straight to a node"
        self.told.append(request.url.host)
        self.at_least.append(request.headers.get(MIN_SCHEMA_VERSION))
        self.within_ms.append(int(request.headers[ANSWER_WITHIN_MS]))
        when, fault = self.faults.pop(0) if self.faults else ("never", None)
        if fault is not None and when == "before":
            raise fault
        app = build_app(self.bench.service)
        sent = httpx.Request(
            request.method, request.url, headers=request.headers, content=await request.aread()
        )
        answer = await httpx.ASGITransport(app=app).handle_async_request(sent)
        content = b"".join([part async for part in answer.aiter_raw()])
        if fault is not None:
            raise fault
        return httpx.Response(answer.status_code, headers=answer.headers, content=content)

    def lead(self, *addresses: str) -> None:
        """Sets who holds a schema lease from now on."""
        self.holders = [
            {
                "holder_id": address,
                "incarnation": "i",
                "address": address,
                "version": "1",
                "registered_at": "2026-01-01T00:00:00Z",
                "have": 1,
                "acknowledged_ms_ago": 1,
                "lease_left_ms": 1,
                "pinned": [],
                "statement_p99_ms": None,
            }
            for address in addresses
        ]


@asynccontextmanager
async def scene(
    *addresses: str, regions: int = 3, unique: bool = False, elements: Elements = ()
) -> AsyncIterator[tuple[Frontends, AsyncTable]]:
    feed = feed_table(index(1, 2, unique=unique), *elements, regions=regions)
    async with running(feed) as bench:
        frontends = Frontends(bench=bench, table=body(bench))
        frontends.lead(*addresses or (ONE, OTHER))
        async with AsyncClient([URL], transport=frontends, patience_ms=10_000) as client:
            client.clock = bench.clock
            yield frontends, client.table("t")


def body(bench: Bench, **changes: Any) -> TableBody:
    table = bench.table
    found = {
        "id": table.id,
        "catalog": "main",
        "schema": "public",
        "name": table.name,
        "columns": [
            {"id": place, "name": name, "type": type, "nullable": nullable, "state": "public"}
            for place, (name, type, nullable) in enumerate(COLUMNS, 1)
        ],
        "primary_key": ["id"],
        "partition": {"by": "hash", "columns": ["id"], "count": len(table.regions)},
        "indexes": [
            {"id": 1, "name": "by_2", "columns": ["a"], "unique": False, "state": "public"}
        ],
        "version": 1,
        "schema_version": 1,
        "catalog_version": 7,
        "created_at": "2026-01-01T00:00:00Z",
        "regions": [
            {"number": n, "leader": "dn-1", "epoch": 1, "address": None, **region.model_dump()}
            for n, region in enumerate(table.regions)
        ],
    }
    return TableBody.model_validate({**found, **changes})
