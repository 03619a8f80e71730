"""Procedures as server-sent events: from where one is, to its end or the server's."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
import pytest

from keys.model.cluster import LeaderRecord
from metasrv.service.procedures import procedures
from metasrv.service.procedures.events import events
from metasrv.service.state.stream_places import STREAMS_MAX
from metasrv_base.wire.http import sse
from serving.guard import Bounds
from tests.metasrv.api.rig import TABLES, Server, leader, spec, state_of
from tests.serving.sockets import serving

PATIENCE_S = 120.0


@dataclass
class Stream:
    """One client that listens. `events`: name, id and data of each, in order."""

    status: int = 0
    kind: str = ""
    events: list[tuple[str, str, Any]] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.events]

    async def until(self, name: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while name not in self.names:
                self.heard.clear()
                await self.heard.wait()


@asynccontextmanager
async def following(one: Server, procedure: str, last: str | None = None) -> AsyncIterator[Stream]:
    """As ASGI: httpx's transport would give the stream only when it is over."""
    found = Stream()
    headers = [] if last is None else [(b"last-event-id", last.encode())]
    path = f"/v1/procedures/{procedure}/events"
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
    }

    asked = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if asked:
            return asked.pop()
        await found.over.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            found.status = message["status"]
            found.kind = dict(message["headers"]).get(b"content-type", b"").decode()
        else:
            found.events += events_in(message.get("body", b""))
        found.heard.set()

    async def run() -> None:
        await one.app(scope, receive, send)
        found.over.set()

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(run())
        async with asyncio.timeout(PATIENCE_S):
            await found.heard.wait()
        yield found
        task.cancel()


def events_in(body: bytes) -> list[tuple[str, str, Any]]:
    """Whole events; comments are none."""
    found = []
    for text in body.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)
        if "event" in lines:
            found.append((lines["event"], lines.get("id", ""), orjson.loads(lines["data"])))
    return found


@asynccontextmanager
async def passing_on(one: Server) -> AsyncIterator[Server]:
    """A follower that reaches *one* by TCP: in process, an answer is passed on only when whole."""
    async with serving(Bounds(), one.app) as port, httpx.AsyncHTTPTransport() as transport:
        state = state_of("ms-2", one.kv, one.clock)
        state.heard(LeaderRecord(server="ms-1", url=f"http://127.0.0.1:{port}", lease="1"))
        yield Server(state, one.kv, one.clock, transport=transport)


async def begun(one: Server) -> str:
    """The id of a create that cannot go on: its node does not answer."""
    one.nodes.gate.clear()
    answer = await one.client.post(TABLES, json=spec())
    assert answer.status_code == 202
    await one.nodes.reached.wait()
    procedure: str = answer.json()["id"]
    return procedure


async def test_given_a_procedure_when_followed_then_every_move_to_its_end_is_told() -> None:
    async with leader() as one:
        procedure = await begun(one)

        async with following(one, procedure) as stream:
            one.nodes.gate.set()
            await stream.over.wait()

        assert (stream.status, stream.kind) == (200, "text/event-stream; charset=utf-8")
        assert stream.names[0] == "procedure"
        assert stream.names[-1] == "end"
        _, _, last = stream.events[-1]
        assert (last["id"], last["state"], last["done"]) == (procedure, "succeeded", True)


async def test_given_the_last_id_when_resumed_then_nothing_is_told_twice() -> None:
    async with leader() as one:
        procedure = await begun(one)
        async with following(one, procedure) as first:
            await first.until("procedure")
        _, seen, _ = first.events[-1]

        async with following(one, procedure, seen) as second:
            one.nodes.gate.set()
            await second.over.wait()
        _, end, _ = second.events[-1]
        async with following(one, procedure, end) as third:
            pass

        assert seen not in [event_id for _, event_id, _ in second.events]
        assert second.names[-1] == "end"
        assert (third.status, third.events) == (204, [])


@pytest.mark.case("input 65")
async def test_given_an_id_that_was_never_ours_then_reset_and_how_it_stands() -> None:
    async with leader() as one:
        procedure = await begun(one)

        async with following(one, procedure, "of another server!") as stream:
            await stream.until("procedure")
        one.nodes.gate.set()

        assert stream.names == ["reset", "procedure"]


async def test_given_open_streams_when_the_server_stops_then_goaway_ends_them() -> None:
    async with leader() as one, passing_on(one) as other:
        procedure = await begun(one)

        async with following(one, procedure) as direct, following(other, procedure) as forwarded:
            for stream in (direct, forwarded):
                await stream.until("procedure")
            one.state.stop()
            for stream in (direct, forwarded):
                async with asyncio.timeout(PATIENCE_S):
                    await stream.over.wait()

        for stream in (direct, forwarded):
            assert stream.names[-1] == "goaway"
        assert one.state.streams.open == 0
        one.nodes.gate.set()


async def test_given_a_server_that_stops_when_a_reader_never_waits_then_few_events_end_it() -> None:
    async with leader() as one:
        procedure = await begun(one)
        first = await procedures.get(one.state, procedure)
        stream = events(one.state, procedure, first, None)
        told = [await anext(stream)]

        one.state.stop()
        while told[-1] != sse.GOAWAY and len(told) < 10:  # none of these may need the loop to turn
            told.append(await anext(stream))

        assert told[-1] == sse.GOAWAY
        one.nodes.gate.set()


async def test_given_a_stream_of_the_leader_when_the_follower_stops_then_goaway() -> None:
    async with leader() as one, passing_on(one) as other:
        procedure = await begun(one)

        async with following(other, procedure) as stream:
            await stream.until("procedure")
            other.state.stop()
            async with asyncio.timeout(PATIENCE_S):
                await stream.over.wait()

        assert stream.names[-1] == "goaway"
        one.nodes.gate.set()


async def test_given_a_client_that_waits_when_the_server_stops_then_202_at_once() -> None:
    async with leader() as one, asyncio.TaskGroup() as tasks:
        one.nodes.gate.clear()
        asked = one.client.post(TABLES, json=spec(), headers={"Prefer": "wait=60"})
        asking = tasks.create_task(asked)
        await one.nodes.reached.wait()

        one.state.stop()
        async with asyncio.timeout(PATIENCE_S):
            answer = await asking

        assert (answer.status_code, answer.json()["done"]) == (202, False)
        one.nodes.gate.set()


@pytest.mark.case("input 66")
async def test_given_no_such_procedure_or_no_room_then_a_problem_and_no_stream() -> None:
    async with leader() as one:
        unknown = await one.client.get("/v1/procedures/no-uuid/events")
        one.state.streams.open = STREAMS_MAX
        full = await one.client.get("/v1/procedures/no-uuid/events")

        assert (unknown.status_code, unknown.json()["code"]) == (404, "procedure-not-found")
        assert (full.status_code, full.json()["code"]) == (503, "not-ready")
