"""The door that every program has: HEAD, errors, counts, and routes that are called at once."""

from collections.abc import Awaitable
from typing import Any

from fastapi import Response

from metasrv_base.clock import SystemClock
from metasrv_base.errors import Refused
from metasrv_base.wire.http.asgi import Receive, Scope, Send
from serving.middleware import MiddlewareDeps, ServingMiddleware, find_route
from tests.metasrv.api.raw import JSON, Got, Sent, send


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
