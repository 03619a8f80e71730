"""A stream whose reader is gone before the first piece is closed like any other."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from serving.timed_stream import CUT, Begun, TimedStream


@pytest.mark.parametrize("spec_version", ["2.3", "2.4"])
async def test_given_a_reader_that_is_gone_when_its_answer_begins_then_the_parts_are_closed(
    spec_version: str,
) -> None:
    """Starlette hears of it by `receive` under the older version, by `send` under the newer."""
    is_closed = False

    async def parts() -> AsyncGenerator[bytes]:
        nonlocal is_closed
        try:
            while True:
                yield b"piece"
        finally:
            is_closed = True

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise OSError("the connection is closed")

    begun = parts()
    first = await anext(begun)
    scope = {"type": "http", "asgi": {"spec_version": spec_version}}

    with suppress(ClientDisconnect, OSError, ExceptionGroup):
        await TimedStream(Begun(first, begun), "text/plain")(scope, receive, send)

    assert is_closed


async def test_given_a_reader_that_takes_all_then_it_has_the_first_piece_and_the_others() -> None:
    async def parts() -> AsyncGenerator[bytes]:
        for piece in (b"a", b"b", b"c"):
            yield piece

    begun = parts()
    first = await anext(begun)

    assert [piece async for piece in Begun(first, begun)] == [b"a", b"b", b"c"]


async def test_given_a_reader_that_receives_nothing_then_its_connection_is_cut() -> None:
    gone = asyncio.Event()

    async def parts() -> AsyncGenerator[bytes]:
        yield b"piece"

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    scope = {
        "type": "http",
        "asgi": {"spec_version": "2.3"},
        "extensions": {CUT: {"now": gone.set}},
    }

    await TimedStream(parts(), "text/plain", send_s=0.01)(scope, receive, send)

    assert gone.is_set()
