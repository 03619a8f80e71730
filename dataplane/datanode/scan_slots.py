"""Bounds the scans that run at once, for each kind of reader, and ends a scan whose reader is slow.

Each scan holds a part of its region's rows in memory for as long as its reader takes to receive the
answer. Kinds have slots of their own, so that no kind takes those of another; a reader that stops
receiving is cut off after `SEND_S`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from enum import StrEnum
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Send

from base.errors import Unavailable


class Reader(StrEnum):
    PAGE = "page"
    """Arrow with a bound of bytes: frontends."""
    STREAM = "stream"
    """Arrow without one: jobs, and programs that read regions directly."""
    JSON = "json"
    """Browsers and the command line."""


SLOTS: Mapping[Reader, int] = {Reader.PAGE: 16, Reader.STREAM: 8, Reader.JSON: 4}
SEND_S = 20.0
"""For one piece of an answer, a MiB and less, to leave for the reader."""


class ScanSlots:
    def __init__(self) -> None:
        self._taken: Counter[Reader] = Counter()

    @contextmanager
    def slot(self, kind: Reader) -> Iterator[None]:
        """Raises Unavailable when all slots of the kind are taken."""
        if self._taken[kind] >= SLOTS[kind]:
            reason = f"too many scans are running ({kind})"
            raise Unavailable(what="the node", reason=reason, limit=SLOTS[kind])
        self._taken[kind] += 1
        try:
            yield
        finally:
            self._taken[kind] -= 1


class TimedStream(StreamingResponse):
    """A stream that is cut when its reader does not take a piece for `send_s`: TimeoutError, which
    Starlette takes for a reader that has gone."""

    def __init__(
        self, parts: AsyncGenerator[bytes], media_type: str, send_s: float = SEND_S
    ) -> None:
        super().__init__(parts, media_type=media_type)
        self._parts = parts
        self._send_s = send_s

    async def stream_response(self, send: Send) -> None:
        async def timed(message: Any) -> None:
            async with asyncio.timeout(self._send_s):
                await send(message)

        async with aclosing(self._parts):
            await super().stream_response(timed)
