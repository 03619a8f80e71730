"""The door that every program has: HEAD, errors, counts, and routes that are called at once."""

from collections.abc import Awaitable
from typing import Any

import pytest
from fastapi import Response
from structlog.testing import capture_logs

from metasrv_base.clock import SystemClock
from metasrv_base.errors import Conflict, Corrupt, Refused
from metasrv_base.wire.http.asgi import Receive, Scope, Send
from serving.guard import Bounds
from serving.middleware import MiddlewareDeps, ServingMiddleware, find_route
from tests.metasrv.api.raw import JSON, Got, Sent, send
from tests.serving.sockets import Heard, request, serving, talk


async def framework(scope: Scope, receive: Receive, send: Send) -> None:
    """Says the method, and the body that it reads."""
    body = (await receive())["body"]
    answer = Response(scope["method"].encode() + b" " + body)
    await answer(scope, receive, send)


class Door:
    """One request through a door, and what was counted."""

    def __init__(self, **deps: Any) -> None:
        self.counted: list[tuple[str, int]] = []
        self._app = ServingMiddleware(framework, MiddlewareDeps(SystemClock(), self.count, **deps))

    def count(self, scope: Scope, status: int, seconds: float) -> None:
        self.counted.append((scope["method"], status))

    async def ask(self, method: str, body: bytes = b"") -> Got:
        return await send(self._app, Sent(method, "/", JSON, [body]))


async def test_given_a_method_when_asked_then_only_head_is_answered_as_another() -> None:
    door = Door()

    answers = [await door.ask(method) for method in ("GET", "HEAD", "POST")]

    assert [answer.body for answer in answers] == [b"GET ", b"", b"POST "]
    assert answers[1].headers["content-length"] == answers[0].headers["content-length"]
    assert door.counted == [("GET", 200), ("GET", 200), ("POST", 200)]


async def test_given_a_route_that_is_called_at_once_when_it_has_no_answer_then_the_framework() -> (
    None
):
    async def judged(scope: Scope, receive: Receive) -> Response | None:
        return None if scope["method"] == "PUT" else Response(b"at once")

    def called(scope: Scope, receive: Receive) -> Awaitable[Response | None] | None:
        return find_route(scope, receive) if scope["method"] == "GET" else judged(scope, receive)

    door = Door(direct=called)

    answers = [await door.ask(method, b"{}") for method in ("POST", "PUT", "GET")]

    assert [answer.body for answer in answers] == [b"at once", b"PUT {}", b"GET {}"]


async def test_given_a_refusal_when_a_route_raises_it_then_the_clients_see_what_they_may() -> None:
    async def refuse(scope: Scope, receive: Receive) -> Response:
        raise Refused("method-not-allowed", method="PUT", allowed="GET, HEAD")

    def shown(error: Exception, path: str) -> Refused:
        return Refused("bad-path", found=path)

    plain = await Door(direct=refuse).ask("PUT")
    hidden = await Door(direct=refuse, shown=shown).ask("PUT")

    assert (plain.status, plain.headers["allow"]) == (405, "GET, HEAD")
    assert (hidden.status, hidden.json["code"]) == (400, "bad-path")


class Broken:
    """Begins an answer, and fails after its first piece."""

    def __init__(self, error: Exception, cause: Exception | None = None) -> None:
        self._error, self._cause = error, cause

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"piece", "more_body": True})
        raise self._error from self._cause

    async def lines(self, caplog: pytest.LogCaptureFixture) -> tuple[Heard, list[Any]]:
        """The answer on a socket, and the lines that were logged, also by uvicorn."""
        door = ServingMiddleware(self, MiddlewareDeps(SystemClock(), lambda *counted: None))
        with capture_logs() as logged:
            async with serving(Bounds(), door) as port:
                heard = await talk(port, request("GET /scan HTTP/1.1", "host: 127.0.0.1"))
        return heard, [*logged, *(record.levelname for record in caplog.records)]


TOO_OLD = Conflict("transaction-too-old", limit_s=10)
"""A scan that its reader takes too long to read."""


@pytest.mark.parametrize(
    "broken", [Broken(TOO_OLD), Broken(RuntimeError("response already started"), TOO_OLD)]
)
async def test_given_an_answer_that_has_begun_when_it_is_refused_then_it_is_cut_and_no_fault(
    broken: Broken, caplog: pytest.LogCaptureFixture
) -> None:
    heard, logged = await broken.lines(caplog)

    assert not heard.raw.endswith(b"0\r\n\r\n")
    assert logged == [
        {
            "event": "answer_cut",
            "log_level": "info",
            "path": "/scan",
            "code": "transaction-too-old",
        }
    ]


@pytest.mark.parametrize(
    "error", [Corrupt("internal"), RuntimeError("a fault"), AssertionError("a fault")]
)
async def test_given_an_answer_that_has_begun_when_the_program_is_at_fault_then_it_is_an_error(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    heard, (line, *_) = await Broken(error).lines(caplog)

    assert not heard.raw.endswith(b"0\r\n\r\n")
    assert (line["event"], line["log_level"]) == ("request_failed", "error")
    assert line["exc_info"] is error
