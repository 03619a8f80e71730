"""HEAD, of an answer that is whole and of one that never ends."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from metasrv_base.wire.http.asgi import Message, Receive, Scope, Send
from serving.head_as_get import head_as_get

START: Message = {"type": "http.response.start", "status": 200, "headers": [(b"etag", b"x")]}
END: Message = {"type": "http.response.body", "body": b""}


async def whole(scope: Scope, receive: Receive, send: Send) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": scope["method"].encode()})


class Endless:
    """Streams until it is cancelled."""

    def __init__(self) -> None:
        self.parts = 0
        self.ended = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        try:
            while True:
                self.parts += 1
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
        finally:
            self.ended = True


async def failing(scope: Scope, receive: Receive, send: Send) -> None:
    raise TimeoutError


async def sent(app: Callable[..., Awaitable[None]], method: str) -> list[Message]:
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async def receive() -> Any:
        raise AssertionError

    await head_as_get(app, {"type": "http", "method": method}, receive, send)
    return messages


async def test_given_a_whole_answer_when_asked_with_head_then_the_head_of_get_comes_alone() -> None:
    assert await sent(whole, "HEAD") == [START, END]


async def test_given_a_stream_when_asked_with_head_then_it_ends_at_its_first_part() -> None:
    stream = Endless()

    assert await sent(stream, "HEAD") == [START, END]
    assert (stream.parts, stream.ended) == (1, True)


async def test_given_a_route_that_times_out_when_asked_with_head_then_its_error_is_kept() -> None:
    with pytest.raises(TimeoutError):
        await sent(failing, "HEAD")
