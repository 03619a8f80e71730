"""Calls by which a leader that is reported as silent is looked at, to it and to another copy."""

from dataclasses import dataclass
from urllib.parse import urlencode

import httpx

from metasrv_base.token import OwnToken
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.node.silences import LeaderHeard


@dataclass(slots=True)
class HttpSilenceProbe:
    """One client for each call: a look is rare, and asks on a connection of its own."""

    transport: httpx.AsyncBaseTransport | None = None
    """The way to nodes; the network if it is None."""
    token: OwnToken | None = None
    named_by: tuple[str, ...] = ()
    """This server's own URL."""

    async def silence_at(self, address: str, leader: str, deadline_ms: int) -> LeaderHeard:
        """Raises Unavailable for a node that does not answer in time, and what it answers."""
        client = HttpClient(
            [address], transport=self.transport, token=self.token, named_by=self.named_by
        )
        async with client:
            query = urlencode({"leader": leader})
            path = f"/node/v1/copies/heard?{query}"
            answer = await client.request("GET", path, deadline_ms=deadline_ms)
        return answer.body(LeaderHeard)
