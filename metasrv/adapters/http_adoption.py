"""Calls by which nodes of another cluster are adopted, and by which their disks are read."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

import httpx

from metasrv_base.token import OwnToken
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.node.adoption import AdoptAnswer, AdoptRequest, Inventory

ADOPT_DEADLINE_MS = 30_000  # regions that are open close first
INVENTORY_DEADLINE_MS = 30_000


@dataclass(slots=True)
class HttpAdoption:
    """One client for each call: an adoption is rare."""

    transport: httpx.AsyncBaseTransport | None = None
    """The transport of requests; None for the network."""
    token: OwnToken | None = None
    named_by: tuple[str, ...] = ()
    """This server's own URL."""

    async def adopt(self, address: str, request: AdoptRequest) -> AdoptAnswer:
        """Raises the error that the node answers, Unavailable if it does not, Unknown."""
        async with self._client(address) as client:
            answer = await client.request(
                "POST",
                "/node/v1/adopt",
                deadline_ms=ADOPT_DEADLINE_MS,
                json=request,
                repeatable=True,
            )
        return answer.body(AdoptAnswer)

    async def inventory(self, address: str, first: int, last: int) -> Inventory:
        return await self._inventory(address, {"first": str(first), "last": str(last)})

    async def log_ends(self, address: str, region_id: int) -> Inventory:
        """The folders of one region, with the ends of their logs."""
        region = str(region_id)
        return await self._inventory(address, {"first": region, "last": region, "log_ends": "true"})

    async def _inventory(self, address: str, query: Mapping[str, str]) -> Inventory:
        async with self._client(address) as client:
            answer = await client.request(
                "GET",
                f"/node/v1/inventory?{urlencode(query)}",
                deadline_ms=INVENTORY_DEADLINE_MS,
            )
        return answer.body(Inventory)

    def _client(self, address: str) -> HttpClient:
        return HttpClient(
            [address], transport=self.transport, token=self.token, named_by=self.named_by
        )
