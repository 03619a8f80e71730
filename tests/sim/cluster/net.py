"""HTTP between the programs of one process: the real ASGI apps, and a network that loses things."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import unquote

import httpx

from metasrv_base.wire.frontend.feed import MEDIA_TYPE
from metasrv_base.wire.http import sse
from serving.timed_stream import CUT
from tests.sim.cluster.flow import Flow
from tests.sim.cluster.message_fates import Fate, Weather, host_of
from tests.sim.loop import SimLoop, current_node, in_world

Message = MutableMapping[str, Any]
App = Callable[
    [Any, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

ORDERS = "/node/v1/orders"
UNHEARD = "orders of which a node took none"
SLOW_ANSWERS = 0.02
HEARD = 0.7
"""The chance of a connection's other end to hear of a death."""
ENDLESS = (MEDIA_TYPE.encode(), sse.MEDIA_TYPE.encode())
"""Media types of answers that are read while they come."""


@dataclass(eq=False)
class Program:
    """A process that listens. `node`: of the loop, what is killed."""

    node: str
    app: App
    under_way: "dict[asyncio.Future[Reply], None]" = field(default_factory=dict)


@dataclass
class Reply:
    """An answer while it is made."""

    stream: "Callable[[Reply], Flow]"
    """Called with the first piece of an answer that has no end."""
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    flow: Flow | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], message["headers"]
            return
        body, goes_on = message.get("body", b""), message.get("more_body", False)
        if self.flow is None and goes_on and self._is_endless():
            self.flow = self.stream(self)
        if self.flow is None:
            self.body += body
        elif body or not goes_on:
            self.flow.put(body if goes_on else None)

    def reset(self) -> None:
        """Its reader gets no whole answer."""
        self.status = 0
        if self.flow is not None:
            self.flow.fail()
            self.flow.close()

    def _is_endless(self) -> bool:
        return any(value.startswith(ENDLESS) for value in dict(self.headers).values())


@dataclass(eq=False)
class Exchange:
    """One request on its way, and where its sender waits."""

    request: httpx.Request
    body: bytes
    source: str
    target: str
    answer: "asyncio.Future[Reply]"
    node: str
    """The process that asks."""


class Whole(httpx.AsyncByteStream):
    """A body that is there."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body


@dataclass
class Network:
    loop: SimLoop
    weather: Weather
    programs: dict[str, Program] = field(default_factory=dict)
    """By host and port."""
    flows: dict[Flow, None] = field(default_factory=dict)
    wrong: Callable[[str], None] = lambda text: None
    """Told of answers that nobody may give."""

    def listen(self, url: str, node: str, app: App) -> None:
        self.programs[url.removeprefix("http://")] = Program(node, app)

    def died(self, node: str) -> None:
        """Its connections are reset, those of which the other end hears."""
        for flow in [one for one in self.flows if node in (one.source, one.target)]:
            del self.flows[flow]
            if flow.source == node:
                flow.close()
            elif self.weather.random.random() < HEARD:
                self._later(Fate.FINE, flow.fail)
        for place, program in list(self.programs.items()):
            if program.node == node:
                del self.programs[place]
                for answer in program.under_way:
                    if self.weather.random.random() < HEARD:
                        self._later(Fate.FINE, _fail, answer, httpx.ReadError("reset"))

    def send(self, exchange: Exchange) -> None:
        if exchange.target in self.weather.deaf and exchange.request.url.path == ORDERS:
            self.weather.sometimes[UNHEARD] += 1
            return
        fate = self.weather.fate(exchange.source, exchange.target)
        if fate is Fate.LOST:
            return
        if fate is Fate.REFUSED or self._place(exchange) not in self.programs:
            self._later(Fate.FINE, _fail, exchange.answer, httpx.ConnectError("refused"))
            return
        self._later(fate, self._arrive, exchange, fate)

    def _arrive(self, exchange: Exchange, fate: Fate) -> None:
        program = self.programs.get(self._place(exchange))
        if program is None or self.loop.is_dead(program.node):
            self._later(Fate.FINE, _fail, exchange.answer, httpx.ReadError("reset"))
            return
        if fate is not Fate.UNANSWERED:
            program.under_way[exchange.answer] = None
        self.loop.spawn(program.node, self._serve(program, exchange, fate))

    async def _serve(self, program: Program, exchange: Exchange, fate: Fate) -> None:
        gone = self.loop.create_future()
        reply = Reply(partial(self._flowing, program, exchange, fate, gone))
        exchange.answer.add_done_callback(partial(_hang_up, gone))
        sent = iter([{"type": "http.request", "body": exchange.body, "more_body": False}])

        async def receive() -> Message:
            message = next(sent, None)
            if message is None:
                await gone
                return {"type": "http.disconnect"}
            return message

        def cut() -> None:
            reply.reset()
            if not gone.done():
                gone.set_result(None)

        scope = {**_scope(exchange), "extensions": {CUT: {"now": cut}}}
        try:
            await program.app(scope, receive, reply.send)
        finally:
            program.under_way.pop(exchange.answer, None)
            if reply.status >= 500 and reply.status not in (503, 504, 507):
                self.wrong(f"{exchange.request.method} {exchange.request.url}: {reply.body!r}")
            if fate is not Fate.UNANSWERED and reply.flow is None:
                self._reply(exchange, reply, fate)

    def _flowing(
        self,
        program: Program,
        exchange: Exchange,
        fate: Fate,
        gone: "asyncio.Future[None]",
        reply: Reply,
    ) -> Flow:
        """The head of an answer goes ahead of its pieces."""

        def hang_up() -> None:
            self.flows.pop(flow, None)
            if not gone.done():
                gone.set_result(None)

        hosts = (exchange.target, exchange.source)
        flow = Flow(self.loop, self.weather, exchange.node, program.node, hosts, hang_up)
        self.flows[flow] = None
        program.under_way.pop(exchange.answer, None)
        if fate is not Fate.UNANSWERED and not self.weather.is_cut(*hosts):
            self._later(Fate.FINE, _answer, exchange.answer, reply)
        return flow

    def _reply(self, exchange: Exchange, reply: Reply, fate: Fate) -> None:
        if not self.weather.is_cut(exchange.target, exchange.source):
            is_slow = self.weather.random.random() < SLOW_ANSWERS
            back = Fate.SLOW if is_slow else Fate.FINE
            self._later(back, _answer, exchange.answer, reply)
        if fate is Fate.TWICE and 200 <= reply.status < 300 and _is_repeatable(exchange.request):
            # Not of a refusal, which would no longer say that nothing was done.
            self.weather.sometimes[f"twice: {exchange.request.url.path.split('/')[1]}"] += 1
            self._later(Fate.LATE, self._arrive, exchange, Fate.UNANSWERED)

    def _place(self, exchange: Exchange) -> str:
        return exchange.request.url.netloc.decode()

    def _later(self, fate: Fate, act: Callable[..., None], *args: Any) -> None:
        in_world(self.loop, self.weather.way_ms(fate), act, *args)


class Wire(httpx.AsyncBaseTransport):
    """The transport that clients of the network hold. It honours the timeouts of a request."""

    def __init__(self, network: Network) -> None:
        self._network = network

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        loop = self._network.loop
        node, target = current_node(), request.url.host
        exchange = Exchange(request, body, host_of(node), target, loop.create_future(), node)
        self._network.send(exchange)
        timeout = request.extensions.get("timeout", {})
        try:
            async with asyncio.timeout(timeout.get("read")):
                reply = await exchange.answer
        except TimeoutError as error:
            raise httpx.ReadTimeout("silence", request=request) from error
        finally:
            exchange.answer.cancel()
        stream = reply.flow or Whole(reply.body)
        return httpx.Response(reply.status, headers=reply.headers, stream=stream, request=request)


def _is_repeatable(request: httpx.Request) -> bool:
    """Whether clients mark the request as repeatable: all but a change of metadata without a
    key."""
    is_change = request.url.path.startswith("/v1/") and request.method not in ("GET", "PUT")
    return not is_change or "idempotency-key" in request.headers


def _scope(exchange: Exchange) -> dict[str, Any]:
    url = exchange.request.url
    raw = url.raw_path.partition(b"?")[0]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": exchange.request.method,
        "scheme": url.scheme,
        "path": unquote(raw.decode("ascii")),
        "raw_path": raw,
        "query_string": url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in exchange.request.headers.raw],
        "server": (url.host, url.port),
        "client": (exchange.source, 1),
        "state": {},
    }


def _answer(answer: "asyncio.Future[Reply]", reply: Reply) -> None:
    if answer.done():
        if reply.flow is not None:
            reply.flow.close()
        return
    if reply.status:
        answer.set_result(reply)
    else:
        answer.set_exception(httpx.ReadError("no answer"))


def _fail(answer: "asyncio.Future[Reply]", error: httpx.RequestError) -> None:
    if not answer.done():
        answer.set_exception(error)


def _hang_up(gone: "asyncio.Future[None]", answer: "asyncio.Future[Reply]") -> None:
    """Once it is answered, or nobody waits for it any more."""
    failed = answer.cancelled() or answer.exception() is not None  # seen: its sender may be dead
    if not gone.done() and (failed or answer.result().flow is None):
        gone.set_result(None)
