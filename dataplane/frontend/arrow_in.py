"""An Arrow IPC stream that is read batch by batch as it arrives, however long it is."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable

import pyarrow as pa

from base.errors import Refused, Unavailable
from base.offload import is_short_columnar, offload
from base.rows.arrow_guard import body_bytes, check_messages
from base.wire.asgi import Receive
from base.wire.limits import BATCH_BYTES_MAX

METADATA_BYTES_MAX = 1 << 20
"""Of one message: a schema of 1,024 columns takes a tenth of it."""
PADDING_BYTES_MAX = 1 << 20
"""Around the buffers of a batch."""
_PREFIX = struct.Struct("<Ii")  # a mark, and the size of the metadata; 0: the end
_MARK = 0xFFFFFFFF


class ArrowIn:
    """Raises Refused for what is no stream of plain batches, and for one that is cut."""

    def __init__(self, receive: Receive, left_s: Callable[[], float]) -> None:
        self._receive = receive
        self._left_s = left_s
        """How long the next bytes may take."""
        self._held = bytearray()
        self._is_whole = False

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        """Each fully validated, in memory of its own."""
        first = await self._message()
        if first is None:
            raise _refused("it has no schema")
        while (message := await self._message()) is not None:
            stream = first + message
            short = is_short_columnar(0, len(stream))
            for batch in await offload(short, _decoded, stream):
                yield batch

    async def _message(self) -> bytes | None:
        """One message with its frame; None: the end, as the stream itself says it."""
        prefix = await self._take(_PREFIX.size)
        mark, size = _PREFIX.unpack(prefix)
        if mark != _MARK or not 0 <= size <= METADATA_BYTES_MAX:
            raise _refused("it is none, or its metadata is too large")
        if size == 0:
            return None
        metadata = await self._take(size)
        rest = body_bytes(metadata)
        if rest > BATCH_BYTES_MAX + PADDING_BYTES_MAX:
            raise Refused("body-too-large", limit_bytes=BATCH_BYTES_MAX)
        return prefix + metadata + await self._take(rest)

    async def _take(self, count: int) -> bytes:
        while len(self._held) < count:
            await self._more()
        taken = bytes(self._held[:count])
        del self._held[:count]
        return taken

    async def _more(self) -> None:
        if self._is_whole:
            raise _refused("it is cut short")
        async with asyncio.timeout(self._left_s()):
            message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Unavailable("request-timeout", reason="the client went away")
        self._held += message.get("body", b"")
        self._is_whole = not message.get("more_body", False)


def _decoded(stream: bytes) -> list[pa.RecordBatch]:
    """Of a schema and one more message."""
    try:
        check_messages(stream)
        with pa.ipc.open_stream(pa.py_buffer(stream)) as reader:
            found = list(reader)
        for batch in found:
            batch.validate(full=True)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise _refused(str(error).partition("\n")[0]) from error
    return found


def _refused(reason: str) -> Refused:
    return Refused("invalid-request", reason=f"the body is no Arrow IPC stream: {reason}")
