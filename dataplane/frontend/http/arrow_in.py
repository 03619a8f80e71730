"""An Arrow IPC stream that is read batch by batch as it arrives, however long it is."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pyarrow as pa

from metasrv_base.concurrency.run_in_thread import is_short_columnar, run_in_thread
from metasrv_base.errors import Refused, Unavailable
from metasrv_base.rows.arrow_guard import CONTINUES, PREFIX, body_bytes, check_messages
from metasrv_base.wire.http.asgi import Receive
from metasrv_base.wire.limits import BATCH_BYTES_MAX

METADATA_BYTES_MAX = 1 << 20
"""The most bytes of metadata of one message: a schema of 1,024 columns takes a tenth of it."""
PADDING_BYTES_MAX = 1 << 20
"""The most bytes of padding around the buffers of a batch."""


class ArrowIn:
    """Reads a body as an Arrow IPC stream. Raises Refused for one that is not a stream of plain
    batches, or is cut short."""

    def __init__(self, receive: Receive, left_s: Callable[[], float]) -> None:
        self._receive = receive
        self._left_s = left_s
        """Seconds that the next bytes may take."""
        self._held = b""
        self._at = 0
        """The number of bytes of `_held` that were taken."""
        self._is_whole = False

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        """Yields each batch fully validated, in memory of its own. Keeps none of it while the next
        one is on its way, which may take long."""
        first = await self._message()
        if first is None:
            raise _refused("it has no schema")
        schema = bytes(first)
        del first  # it holds all that came with it
        while (message := await self._message()) is not None:
            stream = b"".join((schema, message))
            del message
            short = is_short_columnar(0, len(stream))
            batches = await run_in_thread(short, decoded, stream)
            del stream
            while batches:
                yield batches.pop(0)

    async def _message(self) -> memoryview | None:
        """One message with its frame; None: the end, as the stream itself says it."""
        mark, size = PREFIX.unpack(await self._next(PREFIX.size))
        if mark != CONTINUES or not 0 <= size <= METADATA_BYTES_MAX:
            raise _refused("a message begins wrongly, or its metadata is too large")
        size += PREFIX.size
        if size == PREFIX.size:
            return None
        rest = body_bytes((await self._next(size))[PREFIX.size :])
        if rest > BATCH_BYTES_MAX + PADDING_BYTES_MAX:
            raise Refused("body-too-large", limit_bytes=BATCH_BYTES_MAX)
        message = await self._next(size + rest)
        self._at += len(message)
        return message

    async def _next(self, count: int) -> memoryview:
        """The first *count* bytes that were not taken. What has come is joined once, so that a
        message is copied once however many pieces it comes in."""
        held = len(self._held) - self._at
        if held < count:
            pieces = [self._held[self._at :]]
            self._held, self._at = b"", 0  # what was taken of it is not kept
            while held < count:
                pieces.append(await self._more())
                held += len(pieces[-1])
            self._held, self._at = b"".join(pieces), 0
        return memoryview(self._held)[self._at : self._at + count]

    async def _more(self) -> bytes:
        if self._is_whole:
            raise _refused("it is cut short")
        async with asyncio.timeout(self._left_s()):
            message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Unavailable("request-timeout", reason="the client went away")
        self._is_whole = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body


def decoded(stream: bytes) -> list[pa.RecordBatch]:
    """Decodes a schema message and one more message. Raises Refused `invalid-request`."""
    try:
        check_messages(stream)
        with pa.ipc.open_stream(pa.py_buffer(stream)) as reader:
            batches = list(reader)
        for batch in batches:
            batch.validate(full=True)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise _refused(str(error).partition("\n")[0]) from error
    return batches


def _refused(reason: str) -> Refused:
    return Refused("invalid-request", reason=f"the body is no Arrow IPC stream: {reason}")
