"""Other nodes over HTTP, on kept connections: the ports by which a leader appends to copies and
asks them for promises, and a copy fetches the files of its leader."""

from collections.abc import Sequence

import httpx

from metasrv_base.token import OwnToken
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.node.appends import AppendAnswer
from metasrv_base.wire.node.copy_sessions import (
    PIECE_BYTES_MAX,
    CopySession,
    CopySessionRequest,
)
from metasrv_base.wire.node.promises import PROMISES_BYTES_MAX, PromiseAnswer, PromiseRequest

APPEND = "/node/v1/copies/append"
PROMISES = "/node/v1/copies/promises"
SESSIONS = "/node/v1/copies/sessions"
FILES = "/node/v1/copies/files"
BINARY = "application/octet-stream"
APPEND_MS_MAX = 5_000
BEGIN_MS_MAX = 30_000
"""A leader may flush before a session begins."""
PIECE_MS_MAX = 10_000


class HttpPeers:
    """Implements AppendPort, PromisePeers and FilePort."""

    def __init__(
        self,
        token: OwnToken | str | None,
        named_by: Sequence[str],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Opens no connection yet. *named_by*: the servers of metasrv, which name the addresses of
        nodes. *transport* reaches them; None: by TCP."""
        self._token, self._named_by, self._transport = token, named_by, transport
        self._clients: dict[str, HttpClient] = {}

    async def append(self, address: str, body: bytes) -> AppendAnswer:
        answer = await self._client(address).request(
            "POST",
            APPEND,
            content=body,
            headers={"content-type": BINARY},
            deadline_ms=APPEND_MS_MAX,
            repeatable=True,
        )
        return answer.body(AppendAnswer)

    async def ask(self, address: str, request: PromiseRequest, deadline_ms: int) -> PromiseAnswer:
        """Asks a node for promises. A request without an answer may have been granted: the copies
        then wait for promises that nobody uses."""
        answer = await self._client(address).request(
            "POST",
            PROMISES,
            json=request,
            deadline_ms=deadline_ms,
            answer_bytes_max=PROMISES_BYTES_MAX,
        )
        return answer.body(PromiseAnswer)

    async def begin_session(self, address: str, request: CopySessionRequest) -> CopySession:
        """Has the leader keep its files for a copy. A session whose answer was lost ends by
        itself."""
        client, path = self._client(address), SESSIONS
        answer = await client.request("POST", path, json=request, deadline_ms=BEGIN_MS_MAX)
        return answer.body(CopySession)

    async def read_piece(self, address: str, session: str, file: int, offset: int) -> bytes:
        """Reads a file of a session from *offset* on, at most PIECE_BYTES_MAX."""
        answer = await self._client(address).request(
            "GET",
            FILES,
            params={"session": session, "file": file, "offset": offset},
            deadline_ms=PIECE_MS_MAX,
            answer_bytes_max=PIECE_BYTES_MAX,
        )
        return answer.content

    async def end_session(self, address: str, session: str) -> None:
        """The files may go."""
        await self._client(address).request(
            "DELETE", SESSIONS, params={"session": session}, deadline_ms=PIECE_MS_MAX
        )

    async def aclose(self) -> None:
        for client in list(self._clients.values()):
            await client.close()
        self._clients.clear()

    def _client(self, address: str) -> HttpClient:
        """Kept for the life of the process: there are as many as nodes, by their addresses."""
        if address not in self._clients:
            self._clients[address] = HttpClient(
                [address],
                token=self._token,
                transport=self._transport,
                named_by=self._named_by,
            )
        return self._clients[address]
