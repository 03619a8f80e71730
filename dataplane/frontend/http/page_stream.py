"""All pages of a scan as one body, the next one asked for while the last one is sent."""

import asyncio
from contextlib import aclosing
from functools import partial
from itertools import chain

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from dataplane.frontend.http.answers import MediaType, arrow_parts, arrow_schema, lines
from dataplane.frontend.statements.reads import PageOf
from dataplane.frontend.statements.scanning import Scanning
from dataplane.frontend.statements.scans import OpenScan, Place
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.concurrency.reservations import Reservations
from metasrv_base.rows.arrow_parts import ArrowParts
from metasrv_base.wire.frontend.rows import SCHEMA_VERSION
from serving.timed_stream import SEND_S, SMALL_BYTES, in_pieces

PAGES = 4
"""Two pages, each as rows and as the bytes of its answer."""


class PagesAfter:
    """Every page of a scan from *cursor* on. Closing it ends the scan, also before the first page,
    where a generator would do nothing."""

    def __init__(
        self, scans: Scanning, opened: OpenScan, cursor: Place | None, rows_max: int
    ) -> None:
        self._scans, self._opened = scans, opened
        self._cursor, self._rows_max = cursor, rows_max

    def __aiter__(self) -> "PagesAfter":
        return self

    async def __anext__(self) -> PageOf:
        if self._cursor is None:
            raise StopAsyncIteration
        opened = self._scans.current(self._opened)
        page, self._cursor = await self._scans.page(opened, self._cursor, self._rows_max)
        return page

    async def aclose(self) -> None:
        self._scans.end(self._opened)


class PageStream(StreamingResponse):
    """Two pages are in memory: the one that is sent, and the one that its region answers
    meanwhile. It holds as much of *room*, by its first page, and raises Unavailable where there is
    none. *rest* is closed whatever ends the answer: a reader that does not receive a piece of
    PIECE_BYTES within `send_s` seconds ends it too. An Arrow stream that is cut lacks its end."""

    def __init__(
        self,
        first: PageOf,
        rest: PagesAfter,
        form: MediaType,
        room: Reservations,
        send_s: float = SEND_S,
    ) -> None:
        self._held = room.hold(PAGES * first.rows.nbytes + SMALL_BYTES)
        self._send_s = send_s
        headers = {SCHEMA_VERSION: str(first.schema_version)}
        super().__init__((), media_type=form, headers=headers)
        self._first = first
        self._rest = rest
        self._arrow: ArrowParts | None = None
        if form is MediaType.ARROW:
            self._arrow = ArrowParts(arrow_schema(first.columns, first.schema_version))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            try:
                await super().__call__(scope, receive, send)
            finally:
                await self._rest.aclose()

    async def stream_response(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        page: PageOf | None = self._first
        async with aclosing(self._rest):
            while page is not None:
                following = partial(anext, self._rest, None)
                page, _ = await fan_out([following, partial(self._pass_on, send, page)], at_once=2)
        end = b"" if self._arrow is None else self._arrow.end()
        async with asyncio.timeout(self._send_s):
            await send({"type": "http.response.body", "body": end, "more_body": False})

    async def _pass_on(self, send: Send, page: PageOf) -> None:
        bodies = [lines(page)] if self._arrow is None else arrow_parts(self._arrow, page)
        for piece in chain.from_iterable(map(in_pieces, bodies)):
            async with asyncio.timeout(self._send_s):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
