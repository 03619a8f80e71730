"""All pages of a scan as one body, the next one asked for while the last one is sent."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from starlette.responses import StreamingResponse
from starlette.types import Send

from base.fanout import fan_out
from base.rows.arrow_parts import ArrowParts
from base.wire.rows import SCHEMA_VERSION
from dataplane.frontend.answers import Form, arrow_part, arrow_schema, lines
from dataplane.frontend.reads import PageOf
from dataplane.frontend.scanning import Scanning
from dataplane.frontend.scans import OpenScan, Place


async def pages_after(
    scans: Scanning, opened: OpenScan, at: Place | None, rows_max: int
) -> AsyncGenerator[PageOf, None]:
    """Every page from *at* on; whoever stops listening ends the scan."""
    try:
        while at is not None:
            page, at = await scans.page(scans.current(opened), at, rows_max)
            yield page
    finally:
        scans.end(opened)


class PageStream(StreamingResponse):
    """Two pages are in memory: the one that is sent, and the one that its region answers
    meanwhile. *rest* is closed whatever ends the answer. An Arrow stream that is cut lacks its
    end."""

    def __init__(self, first: PageOf, rest: AsyncGenerator[PageOf], form: Form) -> None:
        headers = {SCHEMA_VERSION: str(first.schema_version)}
        super().__init__((), media_type=form, headers=headers)
        self._first = first
        self._rest = rest
        self._arrow: ArrowParts | None = None
        if form is Form.ARROW:
            self._arrow = ArrowParts(arrow_schema(first.columns, first.schema_version))

    async def stream_response(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        page: PageOf | None = self._first
        async with aclosing(self._rest):
            while page is not None:
                following = partial(anext, self._rest, None)
                page, _ = await fan_out([following, partial(self._pass_on, send, page)], at_once=2)
        end = b"" if self._arrow is None else self._arrow.end()
        await send({"type": "http.response.body", "body": end, "more_body": False})

    async def _pass_on(self, send: Send, page: PageOf) -> None:
        body = lines(page) if self._arrow is None else arrow_part(self._arrow, page)
        await send({"type": "http.response.body", "body": body, "more_body": True})
