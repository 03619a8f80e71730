"""The SDK's one implementation, asynchronous: resources of the control plane, tables of rows."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import httpx

from metasrv.sdk.control.names import TableName
from metasrv.sdk.control.operations import (
    Cluster,
    Failovers,
    NodeBook,
    Procedures,
    Regions,
    Settings,
)
from metasrv.sdk.control.service import ControlService
from metasrv.sdk.control.tables import Catalogs, Indexes, Schemas, Tables
from metasrv.sdk.rows.binding import Binding
from metasrv.sdk.rows.frontends import Frontends
from metasrv.sdk.rows.table import AsyncTable
from metasrv_base.clock import Clock, SystemClock
from metasrv_base.errors import Refused
from metasrv_base.rng import SystemRng
from metasrv_base.rows.nodes import NodePools
from metasrv_base.wire.http.client import HttpClient

PATIENCE_MS = 15_000
"""How long a request waits for a service that does not answer: an election takes less."""


class AsyncClient:
    """An async context, for one event loop. Made by `metasrv.sdk.connect_async`."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        patience_ms: int = PATIENCE_MS,
        transport: httpx.AsyncBaseTransport | None = None,
        learns: bool = False,
        token: str | None = None,
    ) -> None:
        """*learns*: entering asks for the other servers, so that one URL is enough."""
        self._learns = learns
        self._http = HttpClient(urls, transport=transport, token=token)
        self._rng = SystemRng()
        self.clock: Clock = SystemClock()
        """Says when a statement of a table made from now on was made."""
        self._service = ControlService(self._http, self._rng, patience_ms=patience_ms)
        self._nodes = NodePools(transport, token, urls)
        self._frontends = Frontends(self._service, self._rng, transport, token)
        self.tables = Tables(self._service)
        self.indexes = Indexes(self._service)
        self.catalogs = Catalogs(self._service)
        self.schemas = Schemas(self._service)
        self.procedures = Procedures(self._service)
        self.failovers = Failovers(self._service)
        self.nodes = NodeBook(self._service)
        self.regions = Regions(self._service)
        self.cluster = Cluster(self._service)
        self.settings = Settings(self._service)

    @property
    def urls(self) -> tuple[str, ...]:
        """Of the service, the one that answered last first."""
        return self._http.urls

    def table(self, name: str) -> AsyncTable:
        """A handle; asks nothing yet. Keep it: it remembers where the regions are."""
        binding = Binding(self._service, TableName.parse(name))
        return AsyncTable(binding, self._frontends, self._nodes, self._rng, self.clock)

    async def __aenter__(self) -> Self:
        if self._learns:
            await self._service.learn_servers()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._nodes.close()
        await self._frontends.close()
        await self._http.close()


def urls_of(url: str | Sequence[str]) -> tuple[str, ...]:
    """One URL, several separated by commas, or a list. Raises Refused."""
    parts = url.split(",") if isinstance(url, str) else list(url)
    found = tuple(part.strip().rstrip("/") for part in parts if part.strip())
    if not found or not all(part.startswith(("http://", "https://")) for part in found):
        raise Refused("invalid-request", found=str(url), expected="URLs, as http://127.0.0.1:4000")
    return found
