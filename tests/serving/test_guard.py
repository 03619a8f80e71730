"""Rows 25 to 29 of the bad requests, on real sockets: what no parser should have to see."""

import asyncio
from contextlib import suppress

import pytest

from metasrv_base.wire.http.asgi import Receive, Scope, Send
from metasrv_base.wire.problem.problems import Problem
from serving.guard import Bounds
from tests.serving.sockets import PATIENCE_S, Heard, echo, request, serving, talk

pytestmark = pytest.mark.badinput
BOUNDS = Bounds(hosts=frozenset({"127.0.0.1"}))
IMPATIENT = Bounds(head_ms=40, leftover_ms=40, linger_ms=40)
HOST = "Host: 127.0.0.1"
LAST = request("GET /last HTTP/1.1", HOST)


def refused(heard: Heard) -> str:
    """The code of its only answer, which is whole and of our making."""
    (status,) = heard.statuses
    problem = Problem.model_validate(heard.json)
    assert problem.status == status
    assert f"x-request-id: {problem.request_id}".encode() in heard.raw
    assert b"connection: close" in heard.raw
    return problem.code


@pytest.mark.case("input 26")
async def test_given_half_a_head_and_silence_then_it_is_answered_and_closed() -> None:
    async with serving(IMPATIENT) as port:
        half = await talk(port, b"GET / HTTP/1.1\r\nHo")
        nothing = await talk(port, b"")

        assert refused(half) == "request-timeout"
        assert nothing.raw == b""


@pytest.mark.case("input 26")
async def test_given_a_head_byte_by_byte_for_ever_then_its_time_is_from_the_first() -> None:
    async with serving(IMPATIENT) as port, asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nx: ")
        heard = b""
        while not heard:
            writer.write(b"y")
            with suppress(TimeoutError):
                heard = await asyncio.wait_for(reader.read(4_096), 0.005)

        assert refused(Heard(heard)) == "request-timeout"
        writer.close()


@pytest.mark.case("input 27")
async def test_given_200_kb_of_headers_then_they_are_refused_before_they_end() -> None:
    async with serving(BOUNDS) as port:
        heard = await talk(port, b"GET / HTTP/1.1\r\nx: " + b"y" * 200_000)

        assert (heard.statuses, refused(heard)) == ([431], "headers-too-large")


@pytest.mark.parametrize(
    "sent",
    [
        request("POST / HTTP/1.1", HOST, "Content-Length: 5", "Transfer-Encoding: chunked"),
        request("POST / HTTP/1.1", HOST, "Content-Length: 5", "Content-Length: 6"),
        request("GET / HTTP/1.1"),
        request("GET / HTTP/1.1", "Host: metasrv.example"),
        b"GET / HTTP/1.1\nHost: 127.0.0.1\n\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\n\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
        b"\x00\xff\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        request("ABCDEFG / HTTP/1.1", HOST),
    ],
)
@pytest.mark.case("input 28-29")
async def test_given_no_single_request_then_400_and_closed(sent: bytes) -> None:
    """Rows 28 and 29, and other protocols."""
    async with serving(BOUNDS) as port:
        heard = await talk(port, sent)

        assert (heard.statuses, refused(heard)) == ([400], "malformed-request")


async def test_given_requests_in_one_packet_then_each_is_answered_in_its_order() -> None:
    sent = (
        request("POST /a HTTP/1.1", HOST, "Content-Length: 3", body=b"abc"),
        request("POST /b HTTP/1.1", HOST, "Transfer-Encoding: chunked", body=b"4\r\nabcd\r\n"),
        b"0\r\n\r\n",
        LAST,
    )
    async with serving(BOUNDS) as port:
        together = await talk(port, b"".join(sent))
        apart = await talk(port, *(bytes([byte]) for part in sent for byte in part))

        for heard in (together, apart):
            assert heard.statuses == [200, 200, 200]
            bodies = [part[:1] for part in heard.raw.split(b"\r\n\r\n")[1:]]
            assert bodies == [b"3", b"4", b"0"]


async def test_given_a_wrong_request_behind_a_right_one_then_both_are_answered() -> None:
    async with serving(BOUNDS) as port:
        heard = await talk(port, request("GET / HTTP/1.1", HOST) + b"nonsense\r\n\r\n" + LAST)

        assert heard.statuses == [200, 400]
        assert heard.json["code"] == "malformed-request"


async def test_given_wrong_chunks_while_the_body_is_awaited_then_400_and_closed() -> None:
    async with serving(BOUNDS) as port:
        head = request("POST / HTTP/1.1", HOST, "Transfer-Encoding: chunked")

        heard = await talk(port, head, b"3\r\nabc\r\n", b"zz\r\n")

        assert refused(heard) == "malformed-request"


async def test_given_a_body_that_nobody_reads_then_it_is_not_awaited_for_ever() -> None:
    async with serving(IMPATIENT) as port:
        head = request("POST /unread HTTP/1.1", HOST, "Content-Length: 100")

        heard = await talk(port, head, b"abc")

        assert heard.statuses == [200]


async def test_given_an_offer_to_upgrade_then_the_answer_is_plain_http() -> None:
    upgrade = ("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABk")
    async with serving(BOUNDS) as port:
        sent = request("POST / HTTP/1.1", HOST, *upgrade, "Content-Length: 2", body=b"ab")

        heard = await talk(port, sent + LAST)

        assert heard.statuses == [200, 200]


async def test_given_too_many_connections_then_the_last_is_closed() -> None:
    async with serving(Bounds(connections_max=1)) as port, asyncio.timeout(PATIENCE_S):
        _, first = await asyncio.open_connection("127.0.0.1", port)
        reader, second = await asyncio.open_connection("127.0.0.1", port)

        with suppress(ConnectionResetError):
            assert await reader.read(1) == b""

        for writer in (first, second):
            writer.close()


async def test_given_many_requests_behind_a_slow_answer_then_they_wait_in_bounds() -> None:
    go, begun = asyncio.Event(), asyncio.Event()
    seen = 0

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal seen
        seen += 1
        begun.set()
        await go.wait()
        await echo(scope, receive, send)

    async with serving(BOUNDS, slow) as port, asyncio.TaskGroup() as tasks:
        sent = request("GET / HTTP/1.1", HOST) * 99 + LAST
        talking = tasks.create_task(talk(port, sent))
        await begun.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert seen == 1
        go.set()

        assert (await talking).statuses == [200] * 100
