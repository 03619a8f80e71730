"""One HTTP/1.1 connection of a client: a request, its whole answer, then the next (RFC 9112)."""

import asyncio
import re
from collections.abc import Sequence

import httpx
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

HEAD_BYTES_MAX = 64 << 10  # of one answer; ours have a few hundred
ANSWER_BYTES_MAX = 64 << 20  # of one body, unless the request says otherwise
CHUNK_FRAMING_BYTES = 16  # around a chunk of one byte
LIMIT = "answer_bytes_max"
"""Extension of a request: bytes of the answer's body that are read at most."""
_LENGTHS = frozenset({b"content-length", b"transfer-encoding"})
_BREAKS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class AnswerTooLongError(httpx.RemoteProtocolError):
    """The rest of the answer was not read."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"the answer is longer than {limit_bytes} bytes")
        self.limit_bytes = limit_bytes


class WholeResponse(httpx.Response):
    """An answer whose body has been read. httpx copies a body part by part through its decoders,
    which took a sixth of a frontend's time for a batch; our servers never encode one."""

    def __init__(
        self, status: int, headers: list[tuple[bytes, bytes]], body: bytes, request: httpx.Request
    ) -> None:
        super().__init__(status, headers=headers, stream=httpx.ByteStream(body), request=request)
        self._whole = body
        self.is_stream_consumed = self.is_closed = True

    @property
    def content(self) -> bytes:
        return self._whole

    def read(self) -> bytes:
        return self._whole

    async def aread(self) -> bytes:
        return self._whole


class Exchange(asyncio.Protocol):
    """Raises only what httpx says it raises. Cancelled while it asks, it is never open again."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._request: httpx.Request | None = None
        """The request in flight."""
        self._answer: asyncio.Future[httpx.Response] = self._loop.create_future()
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._limit_bytes = ANSWER_BYTES_MAX
        self._body_bytes = 0
        self._framing_bytes = 0
        """Since the last part of a body: of a head, of chunk sizes, of trailers."""
        self._is_in_body = False
        self.idle_since = 0.0
        """The time since which nothing was asked, by the loop's clock."""

    @property
    def is_open(self) -> bool:
        """Whether it takes a request, as far as we know."""
        transport = self._transport
        return transport is not None and not transport.is_closing() and self._request is None

    async def ask(self, request: httpx.Request, body: bytes) -> httpx.Response:
        """The answer, its body read."""
        head = _head(request)
        if not self.is_open:
            raise httpx.ReadError("closed before it was asked", request=request)
        assert self._transport is not None
        self._request, self._answer = request, self._loop.create_future()
        self._limit_bytes = int(request.extensions.get(LIMIT, ANSWER_BYTES_MAX))
        self._begin()
        self._transport.write(head + body)
        return await self._answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # Told by the transport -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._request is None:  # an answer that nobody asked for
            self.close()
            return
        before = self._body_bytes
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._fail(httpx.RemoteProtocolError(str(error)))
            return
        of_body = self._body_bytes - before
        around = max(0, len(data) - of_body * (1 + CHUNK_FRAMING_BYTES))
        self._framing_bytes = around if of_body else self._framing_bytes + around
        if self._framing_bytes > HEAD_BYTES_MAX and self._request is not None:
            message = f"its head or trailers are longer than {HEAD_BYTES_MAX} bytes"
            self._fail(httpx.RemoteProtocolError(message))

    def connection_lost(self, exc: Exception | None) -> None:
        ends_here = self._is_in_body and not any(name in _LENGTHS for name, _ in self._headers)
        if ends_here and exc is None:
            self._succeed()
        self._fail(httpx.ReadError(str(exc or "closed before its answer was whole")))

    # Told by the parser --------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._request is None:  # a second answer, in one packet with the first
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._is_in_body = True
        lengths = (value for name, value in self._headers if name == b"content-length")
        if any(len(value) > 18 or int(value) > self._limit_bytes for value in lengths):
            self._fail(AnswerTooLongError(self._limit_bytes))

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self._limit_bytes:
            self._body.clear()
            self._fail(AnswerTooLongError(self._limit_bytes))
        elif self._request is not None:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:  # the answer is still to come
            self._begin()
            return
        if not self._parser.should_keep_alive():
            self.close()
        self._succeed()

    def _begin(self) -> None:
        self._headers, self._body, self._body_bytes = [], [], 0
        self._framing_bytes, self._is_in_body = 0, False

    def _succeed(self) -> None:
        status, body = self._parser.get_status_code(), b"".join(self._body)
        request, self._request = self._request, None
        self.idle_since = self._loop.time()
        if request is not None and not self._answer.done():
            self._answer.set_result(WholeResponse(status, self._headers, body, request))

    def _fail(self, error: httpx.TransportError) -> None:
        self.close()
        if self._request is not None and not self._answer.done():
            error.request, self._request = self._request, None
            self._answer.set_exception(error)


def _head(request: httpx.Request) -> bytes:
    """Raises LocalProtocolError for a header that would end its own line."""
    pairs: Sequence[tuple[bytes, bytes]] = request.headers.raw
    lines = [b"%b %b HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [b"%b: %b" % pair for pair in pairs]
    if any(_BREAKS.search(line) for line in lines):
        raise httpx.LocalProtocolError("a control character in a header", request=request)
    return b"\r\n".join((*lines, b"", b""))
