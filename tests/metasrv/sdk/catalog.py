"""metasrv as the SDK sees it, in memory: one table whose route is moved by tests."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

from metasrv_base.errors import MetaError, NotFound
from metasrv_base.wire.api.table_rules import validate_spec
from metasrv_base.wire.api.tables import RegionRouteBody, TableBody, TableSpec
from metasrv_base.wire.problem.problems import problem_of

URL = "http://metasrv.test"
TABLE_ID = 1024
Answer = Callable[[httpx.Request], httpx.Response]


@dataclass
class FakeCatalog(httpx.AsyncBaseTransport):
    """Requests to `URL` are answered here; others go to `nodes`, by default over the network."""

    table: TableBody | None = None
    nodes: Answer | None = None
    script: list[httpx.Response | MetaError] = field(default_factory=list)
    """Answers given before any other, one for each request."""
    holders: list[dict[str, Any]] | None = field(default_factory=list)
    """Holders of schema leases, as metasrv shows them: frontends. None: there is no leader, which
    alone knows them."""
    looked: Callable[[], None] = lambda: None
    """Called at each read of the holders, before its answer."""
    asked: list[httpx.Request] = field(default_factory=list)
    network: httpx.AsyncHTTPTransport = field(
        default_factory=lambda: httpx.AsyncHTTPTransport(verify=False)
    )
    """Without TLS: to load the certificates of the system takes longer than a test."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not str(request.url).startswith(URL):
            if self.nodes is None:
                return await self.network.handle_async_request(request)
            return self.nodes(request)
        if request.url.path == "/v1/schema-leases":
            self.looked()
            if self.holders is None:
                return httpx.Response(503)
            return answer(200, {"holders": self.holders, "catalog_version": 7})
        self.asked.append(request)
        try:
            return self._answer(request)
        except MetaError as error:
            status, headers, body = problem_of(error, request.url.path, "test")
            return httpx.Response(status, headers=headers, content=orjson.dumps(body))

    async def aclose(self) -> None:
        await self.network.aclose()

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if self.script:
            said = self.script.pop(0)
            if isinstance(said, MetaError):
                raise said
            return said
        table = self.table
        by_id = f"/v1/tables/{TABLE_ID if table is None else table.id}"
        by_name = "/v1/catalogs/main/schemas/public/tables/t"
        if table is None or request.url.path not in (by_id, by_name):
            raise NotFound("table-not-found", name=request.url.path)
        if request.url.path == by_name and table.dropped_at is not None:
            raise NotFound("table-not-found", name="t")
        return answer(200, table.model_dump(mode="json"))

    def make(self, spec: TableSpec, regions: list[RegionRouteBody]) -> None:
        assert not validate_spec(spec)
        self.table = TableBody.model_validate(
            {
                **spec.model_dump(exclude={"if_not_exists", "columns"}, exclude_none=True),
                "columns": [
                    {**column.model_dump(), "id": place, "state": "public"}
                    for place, column in enumerate(spec.columns, 1)
                ],
                "id": TABLE_ID,
                "catalog": "main",
                "schema": "public",
                "version": 1,
                "schema_version": 1,
                "catalog_version": 7,
                "created_at": "2026-01-01T00:00:00Z",
                "regions": regions,
            }
        )

    def change(self, **changes: Any) -> None:
        assert self.table is not None
        self.table = self.table.model_copy(update=changes)

    def move(self, number: int, **changes: Any) -> None:
        """Another leader, epoch, address or state of one region."""
        assert self.table is not None
        regions = [
            one.model_copy(update=changes) if one.number == number else one
            for one in self.table.regions
        ]
        self.change(regions=tuple(regions))


def region(number: int, address: str | None, epoch: int = 1) -> RegionRouteBody:
    return RegionRouteBody(
        region_id=str(TABLE_ID << 32 | number),
        number=number,
        leader="dn-1",
        epoch=epoch,
        state="open",
        address=address,
    )


def answer(status: int, body: object, **headers: str) -> httpx.Response:
    return httpx.Response(status, headers=headers, content=orjson.dumps(body))
