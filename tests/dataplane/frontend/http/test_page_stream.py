"""A scan as one body: one page ahead of its reader, never more, and over when the reader goes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pyarrow as pa
import pytest
from starlette.requests import ClientDisconnect

from dataplane.frontend.http.answers import MediaType
from dataplane.frontend.http.page_stream import PagesAfter, PageStream
from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements.scans import Place
from tests.dataplane.frontend.bench import Bench, T, running
from tests.dataplane.frontend.tables import A, B, feed_table

PAGE_ROWS = 10
ROWS = 45
Send = Callable[[Any], Awaitable[None]]


@asynccontextmanager
async def streaming(bench: Bench, form: MediaType) -> AsyncIterator[PageStream]:
    """Forty-five rows in pages of ten, the first of them read."""
    rows = [{"id": one, "a": one, "b": "x"} for one in range(ROWS)]
    await bench.service.writes.rows(T, Op.INSERT, rows, "fill")
    opened = await bench.service.scans.begin_rows(T, None)
    first, following = await bench.service.scans.page(opened, Place(), PAGE_ROWS)
    rest = PagesAfter(bench.service.scans, opened, following, PAGE_ROWS)
    yield PageStream(first, rest, form, bench.service.streams)


def asked(bench: Bench) -> asyncio.Semaphore:
    """Released at each scan that comes to the node."""
    count = asyncio.Semaphore(0)

    async def meet(request: httpx.Request) -> None:
        if request.url.path.endswith("/scan"):
            count.release()

    bench.way.meet = meet
    return count


@pytest.mark.parametrize("form", [MediaType.ARROW, MediaType.LINES])
async def test_given_a_page_on_its_way_when_not_taken_yet_then_the_next_is_asked_for(
    form: MediaType,
) -> None:
    async with running(feed_table(A, B, regions=1)) as bench, streaming(bench, form) as stream:
        count, bodies = asked(bench), list[bytes]()

        async def send(message: Any) -> None:
            if message.get("more_body") and len(bodies) < ROWS // PAGE_ROWS:
                await count.acquire()
            bodies.append(message.get("body", b""))

        async with asyncio.timeout(120):
            await stream.stream_response(send)

    whole = b"".join(bodies)
    if form is MediaType.ARROW:
        found = pa.ipc.open_stream(whole).read_all().column("id").to_pylist()
        assert sorted(found) == list(range(ROWS))
    else:
        assert whole.count(b"\n") == ROWS


@pytest.mark.parametrize("form", [MediaType.ARROW, MediaType.LINES])
@pytest.mark.parametrize("spec_version", ["2.3", "2.4"])
async def test_given_a_reader_that_is_gone_when_its_answer_begins_then_the_scan_is_over(
    form: MediaType, spec_version: str
) -> None:
    """Starlette hears of it by `receive` under the older version, by `send` under the newer."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise OSError("the connection is closed")

    scope = {"type": "http", "asgi": {"spec_version": spec_version}}
    async with running(feed_table(A, B, regions=1)) as bench, streaming(bench, form) as stream:
        assert len(bench.transactions) == 1

        with suppress(ClientDisconnect, OSError, ExceptionGroup):
            await stream(scope, receive, send)

        assert len(bench.transactions) == 0
        assert list(bench.service.scans.opened) == []


async def test_given_a_reader_that_takes_nothing_when_streamed_then_one_page_more_is_read() -> None:
    async with (
        running(feed_table(A, B, regions=1)) as bench,
        streaming(bench, MediaType.ARROW) as one,
    ):
        count, stuck = asked(bench), asyncio.Event()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                stuck.set()
                await asyncio.Event().wait()

        async with asyncio.TaskGroup() as group:
            reading = group.create_task(one.stream_response(send))
            await stuck.wait()
            await count.acquire()
            for _ in range(1_000):
                await asyncio.sleep(0)
            assert count.locked(), "no third page"
            assert len(bench.transactions) == 1
            reading.cancel()

        assert len(bench.transactions) == 0, "the scan ended with its reader"
