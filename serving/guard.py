"""The guard in front of the HTTP parser: one whole, well-formed head at a time, in bounded time and
bytes.

The parser of uvicorn waits for ever for a head, lets through what two parsers read differently, and
answers in plain text. Here each request's head is checked first; the next one is held back until
the answer to the last has left.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import orjson
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from metasrv_base.errors import MetaError, Refused, Unavailable
from metasrv_base.wire.http.asgi import new_id
from metasrv_base.wire.http.strict_json import HEADER_BYTES_MAX
from metasrv_base.wire.problem.problems import problem_of
from serving.bodies import RequestBody
from serving.heads import ENDS, body_bytes, check_growing, without_upgrade
from serving.timed_stream import CUT


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one connection."""

    hosts: Collection[str] | None = None
    """Names by which this server may be addressed; None: any."""
    head_ms: int = 4_000
    """From its first byte, or from the connection; a head comes in one packet or two."""
    leftover_ms: int = 10_000
    """For the rest of a body whose request has been answered already. It is read and dropped: most
    clients look for an answer only when they have sent all, and a closed connection would cost them
    the answer."""
    leftover_bytes: int = 256 << 20
    """The largest such rest in bytes; beyond it the connection is closed."""
    linger_ms: int = 1_000
    """After a refusal, for what is on its way: hung up on at once, its sender loses the answer."""
    connections_max: int = 4_096
    """Each costs a file descriptor and some kilobytes; more are closed at once."""


class GuardedConfig(uvicorn.Config):
    """uvicorn's settings, and the bounds of our own."""

    def __init__(self, app: Any, bounds: Bounds, **settings: Any) -> None:
        super().__init__(app, http=Guard, **settings)
        self.bounds = bounds


class Guard(HttpToolsProtocol):
    """The protocol of one connection, in front of the parser."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        assert isinstance(self.config, GuardedConfig)
        self._bounds = self.config.bounds
        self._held = b""
        """Received, and not yet of a request that the parser has."""
        self._body: RequestBody | None = None
        """The rest of the request that the parser has."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False
        """Refused: whatever still comes is dropped."""
        self._is_leaving = False
        """Answered for the last time: the rest of the body is dropped, then the connection ends."""
        self._leftover_bytes = 0
        """Bytes of the body under way that were received since its request was answered."""

    # Told by the transport ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm(self._bounds.head_ms)
        if len(self.connections) > self._bounds.connections_max:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._is_leaving:
            self._drop(data)
            return
        self._held += data
        try:
            self._go_on()
        except Refused as error:
            self._refuse(error)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.cycle.transport = _LastWords(self.transport, self.leave)
        self.scope["extensions"] = {CUT: {"now": self.transport.abort}}

    def leave(self) -> None:
        """Ends the connection behind an answer, once its sender has seen it."""
        if self._body is None or self.transport.is_closing():
            self.transport.close()
            return
        self._is_leaving = True
        self._arm(self._bounds.leftover_ms)
        self.transport.write_eof()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._body is not None:
            self._unset_keepalive_if_required()
            self._arm(self._bounds.leftover_ms)
        elif self._held:
            self.loop.call_soon(self.data_received, b"")

    def send_400_response(self, msg: str) -> None:
        """Refuses a request that passed this guard but that the parser rejects."""
        self._refuse(Refused("malformed-request", reason=msg))

    # The requests, one after the other ---------------------------------------------------------

    def _go_on(self) -> None:
        """Hands on all that may go on now. Raises Refused."""
        while self._held and not self._is_over and not self.transport.is_closing():
            part = self._head() if self._body is None else self._part(self._body)
            if not part:
                return
            super().data_received(part)

    def _head(self) -> bytes:
        """The next request's head, if it is whole and may go on. Raises Refused."""
        if self._is_answering:
            if len(self._held) > HEADER_BYTES_MAX:
                self.flow.pause_reading()
            return b""
        end = self._held.find(ENDS) + len(ENDS)
        is_whole = end >= len(ENDS)
        head = self._held[:end] if is_whole else self._held
        check_growing(head)
        if not is_whole:
            self._unset_keepalive_if_required()
            if self._timer is None:
                self._arm(self._bounds.head_ms)
            return b""
        body = RequestBody(body_bytes(head, self._bounds.hosts))
        self._leftover_bytes = 0
        self._held = self._held[end:]
        self._disarm()
        self._body = None if body.is_over else body
        return without_upgrade(head)

    def _part(self, body: RequestBody) -> bytes:
        """Returns the bytes received of the current body. Raises Refused."""
        size = body.take(self._held)
        part, self._held = self._held[:size], self._held[size:]
        if not self._is_answering:
            self._count_leftover(size)
        if body.is_over:
            self._body = None
            self._disarm()
        return part

    def _drop(self, data: bytes) -> None:
        assert self._body is not None
        try:
            self._body.take(data)
        except Refused:
            self.transport.close()
        self._count_leftover(len(data))
        if self._body.is_over:
            self.transport.close()

    def _count_leftover(self, size: int) -> None:
        self._leftover_bytes += size
        if self._leftover_bytes > self._bounds.leftover_bytes:
            self.transport.close()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # Time and refusals -------------------------------------------------------------------------

    def _arm(self, after_ms: int) -> None:
        self._disarm()
        self._timer = self.loop.call_later(after_ms / 1000, self._too_slow)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        if self._body is None and self._held and not self._is_over:
            self._refuse(Unavailable("request-timeout", limit_s=self._bounds.head_ms / 1000))
        else:
            self.transport.close()

    def _refuse(self, error: MetaError) -> None:
        """Ends the connection: where its next request would begin is not known any more."""
        self._held, self._is_over = b"", True
        if self.transport.is_closing():
            return
        if self._is_answering and self.cycle.response_started:
            self.transport.close()
            return
        self.transport.write(_answer(error))
        self.transport.write_eof()
        self._arm(self._bounds.linger_ms)


class _LastWords(asyncio.Transport):
    """The connection as the answer of one request sees it: `close` ends it in order."""

    def __init__(self, transport: asyncio.Transport, leave: Callable[[], None]) -> None:
        super().__init__()
        self._transport = transport
        self.close = leave  # type: ignore[method-assign]
        self.write = transport.write  # type: ignore[method-assign]
        self.is_closing = transport.is_closing  # type: ignore[method-assign]


def _answer(error: MetaError) -> bytes:
    """A whole answer. What was asked for is not known, so `instance` is empty."""
    request_id = new_id()
    status, headers, problem = problem_of(error, "", request_id)
    body = orjson.dumps(problem)
    headers |= {
        "x-request-id": request_id,
        "content-length": str(len(body)),
        "connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return STATUS_LINE[status] + lines.encode() + b"\r\n" + body
