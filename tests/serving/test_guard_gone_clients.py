"""Clients that go away: what they asked for is done whole, or not at all."""

import asyncio

import orjson
import pytest

from serving.guard import Bounds
from tests.metasrv.api.held_up import end_of
from tests.metasrv.api.rig import TABLES, Server, leader, spec
from tests.serving.sockets import PATIENCE_S, request, serving

BODY = orjson.dumps(spec())
HEAD = (
    f"POST {TABLES} HTTP/1.1",
    "Host: 127.0.0.1",
    "Content-Type: application/json",
    "Prefer: wait=60",
    f"Content-Length: {len(BODY)}",
)


async def hang_up(port: int, sent: bytes, once: asyncio.Event | None = None) -> None:
    """Sends, and resets the connection: at once, or once *once* is set."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    await writer.drain()
    if once is not None:
        await once.wait()
    writer.transport.abort()


async def answered(one: Server, status: str) -> None:
    """Once an answer of that status has been counted."""
    while f'status="{status}"' not in (await one.client.get("/metrics")).text:
        await one.term.manager.changed(deadline_ms=20)


@pytest.mark.case("input 106")
async def test_given_a_client_that_is_gone_before_its_body_then_nothing_is_asked_for() -> None:
    async with leader() as one, serving(Bounds(), one.app) as port, asyncio.timeout(PATIENCE_S):
        await hang_up(port, request(*HEAD, body=BODY[:-9]))
        await answered(one, "408")

        assert (await one.client.get("/v1/procedures")).json()["procedures"] == []


@pytest.mark.case("input 106")
async def test_given_a_client_that_is_gone_while_it_waits_then_its_procedure_completes() -> None:
    async with leader() as one, serving(Bounds(), one.app) as port, asyncio.timeout(PATIENCE_S):
        one.nodes.gate.clear()
        await hang_up(port, request(*HEAD, body=BODY), once=one.nodes.reached)
        (running,) = (await one.client.get("/v1/procedures")).json()["procedures"]
        one.nodes.gate.set()
        ended = await end_of(one, f"/v1/procedures/{running['id']}")

        assert ended["state"] == "succeeded"
        assert (await one.client.get(f"{TABLES}/t")).status_code == 200
