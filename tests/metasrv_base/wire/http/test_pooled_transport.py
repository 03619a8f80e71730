"""Kept connections against real sockets: every way an answer ends, and what is never reused."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from metasrv_base.wire.http.http1_connection import HEAD_BYTES_MAX, LIMIT, AnswerTooLongError
from metasrv_base.wire.http.pooled_transport import CONNECTIONS_MAX, KeptTransport
from tests.metasrv_base.wire.http.http_server import SILENCE, Reply, serving

LIMIT_S = 120
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n"
EARLY = b"HTTP/1.1 100 Continue\r\n\r\n"
TO_THE_END = b"HTTP/1.1 200 OK\r\n\r\nok"
LAST = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass
class Raw:
    """A server that answers each request with bytes, then hangs up if it was told to."""

    answers: Sequence[bytes]
    hangs_up: bool = False
    url: str = ""
    connections: int = 0
    asked: list[bytes] = field(default_factory=list)
    gone: int = 0
    """Connections that the client has ended."""
    held: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Nothing is answered while somebody has it."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.asked.append(await reader.readuntil(b"\r\n\r\n"))
                async with self.held:
                    pass
                writer.write(self.answers[min(len(self.asked), len(self.answers)) - 1])
                await writer.drain()
                if self.hangs_up:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.gone += 1
        finally:
            writer.close()


@asynccontextmanager
async def answering(*answers: bytes, hangs_up: bool = False) -> AsyncIterator[Raw]:
    raw = Raw(answers, hangs_up)
    listening = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    raw.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield raw
    finally:
        listening.close()


@asynccontextmanager
async def transport() -> AsyncIterator[KeptTransport]:
    kept = KeptTransport()
    try:
        yield kept
    finally:
        await kept.aclose()


async def until(seen: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while True:
            if seen():
                return
            await asyncio.sleep(0)


def get(url: str, **headers: str) -> httpx.Request:
    return httpx.Request("GET", url + "/x", headers=headers)


@pytest.mark.parametrize("answer", [WHOLE, CHUNKED, EARLY + WHOLE], ids=["length", "chunks", "1xx"])
async def test_given_a_whole_answer_when_asked_again_then_its_connection_is_used(
    answer: bytes,
) -> None:
    async with answering(answer) as raw, transport() as kept:
        first = await kept.handle_async_request(get(raw.url))
        second = await kept.handle_async_request(get(raw.url))

    assert (first.status_code, first.content, second.content) == (200, b"ok", b"ok")
    assert (raw.connections, len(raw.asked)) == (1, 2)


async def test_given_no_body_when_answered_then_the_next_answer_is_not_taken_for_it() -> None:
    async with answering(EMPTY, WHOLE) as raw, transport() as kept:
        first = await kept.handle_async_request(get(raw.url))
        second = await kept.handle_async_request(get(raw.url))

    assert (first.status_code, first.content) == (204, b"")
    assert (second.status_code, second.content) == (200, b"ok")


@pytest.mark.parametrize("answer", [TO_THE_END, LAST], ids=["until it hangs up", "close"])
async def test_given_a_last_answer_when_asked_again_then_by_another_connection(
    answer: bytes,
) -> None:
    async with answering(answer, hangs_up=True) as raw, transport() as kept:
        answers = [await kept.handle_async_request(get(raw.url)) for _ in range(2)]

    assert [one.content for one in answers] == [b"ok", b"ok"]
    assert raw.connections == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (WHOLE[:-1], httpx.ReadError),
        (CHUNKED[:-2], httpx.ReadError),
        (WHOLE[:20], httpx.ReadError),
        (b"", httpx.ReadError),
        (b"SSH-2.0-x\r\n\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 2 * HEAD_BYTES_MAX, httpx.RemoteProtocolError),
        (b"HTTP/1.1 101 Y\r\nupgrade: y\r\nconnection: upgrade\r\n\r\n", httpx.RemoteProtocolError),
    ],
    ids=["body", "chunks", "head", "nothing", "no HTTP", "endless head", "upgrade"],
)
async def test_given_a_broken_answer_when_asked_then_it_is_an_error_and_not_kept(
    answer: bytes, error: type[httpx.TransportError]
) -> None:
    async with answering(answer, hangs_up=True) as raw, transport() as kept:
        for _ in range(2):
            with pytest.raises(error):
                await kept.handle_async_request(get(raw.url))

    assert raw.connections == 2


ENDLESS = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + 64 * (
    b"20\r\n%b\r\n" % (b"x" * 32)
)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 1025\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999999999999\r\n\r\n",
        ENDLESS,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1025,
    ],
    ids=["said", "said, beyond 64 bits", "chunks", "until it hangs up"],
)
async def test_given_an_answer_beyond_the_limit_when_read_then_the_error_names_the_limit(
    answer: bytes,
) -> None:
    async with answering(answer) as raw, transport() as kept:
        request = get(raw.url)
        request.extensions[LIMIT] = 1024
        with pytest.raises(AnswerTooLongError, match="1024 bytes") as refused:
            await kept.handle_async_request(request)

    assert refused.value.limit_bytes == 1024


async def test_given_an_answer_at_the_limit_when_read_then_it_is_whole() -> None:
    async with answering(WHOLE) as raw, transport() as kept:
        request = get(raw.url)
        request.extensions[LIMIT] = 2

        assert (await kept.handle_async_request(request)).content == b"ok"


async def test_given_endless_trailers_when_read_then_they_are_not_kept() -> None:
    answer = CHUNKED[:-2] + b"x: " + b"x" * 2 * HEAD_BYTES_MAX
    async with answering(answer) as raw, transport() as kept:
        with pytest.raises(httpx.RemoteProtocolError, match=str(HEAD_BYTES_MAX)):
            await kept.handle_async_request(get(raw.url))


async def test_given_bytes_that_nobody_asked_for_when_asked_again_then_they_are_no_answer() -> None:
    async with answering(WHOLE + WHOLE.replace(b"ok", b"no"), WHOLE) as raw, transport() as kept:
        first = await kept.handle_async_request(get(raw.url))
        second = await kept.handle_async_request(get(raw.url))

    assert (first.content, second.content) == (b"ok", b"ok")
    assert raw.connections == 2


async def test_given_a_server_that_hung_up_when_asked_again_then_by_another_connection() -> None:
    async with answering(WHOLE, hangs_up=True) as raw, transport() as kept:
        await kept.handle_async_request(get(raw.url))
        (idle,) = kept.idle.values()
        await until(lambda: not idle[0].is_open)
        again = await kept.handle_async_request(get(raw.url))

    assert again.content == b"ok"


async def test_given_a_caller_that_gives_up_when_it_waits_then_its_connection_is_closed() -> None:
    async with serving(SILENCE, Reply(200, "ok")) as one, transport() as kept:
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(kept.handle_async_request(get(one.url)))
            await until(lambda: len(one.asked) == 1)
            asking.cancel()
        after = await kept.handle_async_request(get(one.url))

    assert after.json() == "ok"


async def test_given_a_break_in_a_header_when_asked_then_nothing_is_sent() -> None:
    async with answering(WHOLE) as raw, transport() as kept:
        with pytest.raises(httpx.LocalProtocolError):
            await kept.handle_async_request(get(raw.url, key="a\r\nx: y"))

    assert raw.asked == []


async def test_given_all_connections_busy_when_asked_then_it_was_not_sent() -> None:
    async with serving(SILENCE) as one, transport() as kept, asyncio.TaskGroup() as tasks:
        busy = [
            tasks.create_task(kept.handle_async_request(get(one.url)))
            for _ in range(CONNECTIONS_MAX)
        ]
        await until(lambda: len(one.asked) == CONNECTIONS_MAX)
        late = get(one.url)
        late.extensions["timeout"] = {"pool": 0.01}

        with pytest.raises(httpx.PoolTimeout):
            await kept.handle_async_request(late)

        for task in busy:
            task.cancel()


async def test_given_a_closed_transport_when_asked_then_connections_are_gone() -> None:
    async with answering(WHOLE) as raw:
        async with transport() as kept:
            await kept.handle_async_request(get(raw.url))
        await until(lambda: raw.gone == 1)

    assert kept.idle == {}


async def test_given_a_request_under_way_when_closed_then_it_is_answered_and_nothing_is_kept() -> (
    None
):
    async with answering(WHOLE) as raw, transport() as kept:
        async with raw.held, asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(kept.handle_async_request(get(raw.url)))
            await until(lambda: len(raw.asked) == 1)
            await kept.aclose()
            raw.held.release()
            answer = await asking
            await raw.held.acquire()
        await until(lambda: raw.gone == 1)

    assert answer.content == b"ok"
