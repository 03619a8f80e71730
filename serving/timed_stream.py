"""Answers that are sent piece by piece, to readers that must receive each piece in time."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any, Protocol

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

SEND_S = 20.0
"""Seconds in which a reader must receive one piece, a MiB or less."""
PIECE_BYTES = 1 << 20
CUT = "metasrv.cut"
"""Extension of a request's scope: `now()` ends its connection, with whatever is not sent."""
SMALL_BYTES = 64 << 10
"""Response bytes up to which no reader is waited for: a connection buffers as much."""


class ClosableParts(Protocol):
    """Pieces of a body, as an async generator has them."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class Begun:
    """The pieces of a generator of which the first was taken. A generator around it would not close
    it before its own first piece."""

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes]) -> None:
        self._first: bytes | None = first
        self._rest = rest

    def __aiter__(self) -> "Begun":
        return self

    async def __anext__(self) -> bytes:
        if self._first is None:
            return await anext(self._rest)
        first, self._first = self._first, None
        return first

    async def aclose(self) -> None:
        await self._rest.aclose()


class TimedStream(StreamingResponse):
    """A stream that is cut when its reader does not receive a piece for `send_s` seconds: the
    connection ends, or TimeoutError is raised where the server cannot end it.

    `ended` is called once, when all was sent or the stream was cut: the connection has at most
    `SMALL_BYTES` of the answer then.
    """

    def __init__(
        self,
        parts: ClosableParts,
        media_type: str,
        send_s: float = SEND_S,
        headers: dict[str, str] | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(parts, media_type=media_type, headers=headers)
        self._parts = parts
        self._send_s = send_s
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except TimeoutError:
            if not await end_connection(scope, receive, self.was_cut):
                raise
        finally:
            self._ended()

    def was_cut(self) -> None:
        """Called when the reader's connection was ended because it received nothing."""

    async def stream_response(self, send: Send) -> None:
        async def timed(message: Any) -> None:
            async with asyncio.timeout(self._send_s):
                await send(message)

        async with aclosing(self._parts):
            await super().stream_response(timed)


async def end_connection(
    scope: Scope, receive: Receive, ended: Callable[[], None] = lambda: None
) -> bool:
    """Ends the connection of a request whose answer has begun, and calls `ended`. Returns after the
    server has noticed it; False: the server cannot end a connection."""
    cut = scope.get("extensions", {}).get(CUT, {}).get("now")
    if cut is None:
        return False
    cut()
    ended()
    while (await receive())["type"] != "http.disconnect":
        pass
    return True


def whole_answer(
    body: bytes,
    media_type: str,
    ended: Callable[[], None],
    headers: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    """An answer that is ready. A large one is sent in pieces, each of which the reader must receive
    in time; `ended` is called when it has left, or when its reader was cut off."""
    if len(body) <= SMALL_BYTES:
        ended()
        return Response(body, status, media_type=media_type, headers=headers)
    whole = {"content-length": str(len(body))} | (headers or {})
    stream = TimedStream(_pieces(body), media_type, headers=whole, ended=ended)
    stream.status_code = status
    return stream


def in_pieces(body: bytes) -> Iterator[bytes]:
    """A body of one piece is not copied."""
    for start in range(0, len(body), PIECE_BYTES):
        yield body[start : start + PIECE_BYTES]


async def _pieces(body: bytes) -> AsyncGenerator[bytes]:
    for piece in in_pieces(body):
        yield piece
