"""`benchmarks.service.recovery`: a leader dies with 1,000 procedures that are not over.

Two metasrvs, one etcd, one node. The node takes orders and answers none, so 1,000 creates stay
where they are; the leader is killed with SIGKILL, and the node answers again. From the election of
the other server: until a new create is accepted, until one is done, which queues behind all that
were there before, and until nothing is left. Then the roles are changed.
"""

import argparse
import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx

from benchmarks.report import ROUNDS, head, line
from benchmarks.service.creates import MANY, PATH, SPEC
from benchmarks.service.stub_node import HEAD_MAX, Stub
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv_base.clock import Clock, SystemClock
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import MetaError
from metasrv_base.wire.api.procedures import NO_ENDS

LOOK_S = 0.02
PATIENCE_MS = 120_000
LEADS = re.compile(r"^metasrv_leader 1", re.MULTILINE)


class HeldStub(Stub):
    """A node that can be told to take orders without an answer."""

    def __init__(self, root: Path) -> None:
        super().__init__("stub-1", root)
        self._answers = asyncio.Event()
        self._answers.set()
        self._open: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._answers.wait()
        self._open.add(writer)
        try:
            await super().serve(reader, writer)
        finally:
            self._open.discard(writer)

    def hold(self) -> None:
        self._answers.clear()
        for writer in self._open:
            writer.close()

    def go_on(self) -> None:
        self._answers.set()


@dataclass(slots=True)
class Rounds:
    """Each in ms, from the kill, or from the election."""

    elected: list[float] = field(default_factory=list)
    accepted: list[float] = field(default_factory=list)
    done: list[float] = field(default_factory=list)
    all_over: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Scene:
    up: Playground
    node: HeldStub
    clock: Clock
    unfinished: int
    rounds: Rounds = field(default_factory=Rounds)

    def url(self, server: str) -> str:
        return next(one.url for one in self.up.programs if one.id == server)

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str) -> int:
        """Waits until *holds*; returns the monotonic time at which it was seen, in ms."""
        last = self.clock.mono_ms() + PATIENCE_MS
        while self.clock.mono_ms() < last:
            with suppress(httpx.TransportError):
                if await holds():
                    return self.clock.mono_ms()
            await asyncio.sleep(LOOK_S)
        raise AssertionError(what)


@asynccontextmanager
async def node_of(up: Playground, root: Path) -> AsyncIterator[HeldStub]:
    stub = HeldStub(root)
    server = await asyncio.start_server(stub.serve, "127.0.0.1", 0, limit=HEAD_MAX)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, asyncio.TaskGroup() as tasks:
        beating = tasks.create_task(beat(stub, list(up.metasrv_urls), address))
        yield stub
        beating.cancel()
        stub.hold()


async def beat(stub: Stub, urls: list[str], address: str) -> None:
    """Sends heartbeats for ever; errors are ignored, since there may be no leader for a while."""
    while True:
        with suppress(MetaError):
            await stub.beat(urls, address)


async def measure(unfinished: int) -> None:
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        settings = PlaygroundOptions(data_dir=Path(folder), metasrvs=2, datanodes=0)
        async with Playground(settings) as up, node_of(up, Path(folder)) as node:
            scene = Scene(up, node, SystemClock(), unfinished)
            async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_MS / 1000) as http:
                for number in range(ROUNDS):
                    await one_round(scene, http, number)
        head(f"python -m benchmarks.service.recovery --unfinished {unfinished}")
        show(scene)


async def one_round(scene: Scene, http: httpx.AsyncClient, number: int) -> None:
    leader = await leading(scene, http)
    other = "m-2" if leader == "m-1" else "m-1"
    await scene.until(lambda: made(scene, http, leader, f"first_{number}"), "a first create")
    scene.node.hold()
    await submit(scene, http, leader, number)
    killed = scene.clock.mono_ms()
    await scene.up.kill(leader)
    scene.node.go_on()
    elected = await scene.until(lambda: leads(scene, http, other), "an election")
    rounds = scene.rounds
    rounds.elected.append(elected - killed)
    name = f"accepted_{number}"
    async with asyncio.TaskGroup() as tasks:
        new = tasks.create_task(
            scene.until(lambda: made(scene, http, other, f"new_{number}"), "a new create")
        )
        at = await scene.until(lambda: made(scene, http, other, name, wait_s=0), "an answer")
        rounds.accepted.append(at - elected)
    rounds.done.append(new.result() - elected)
    over = await scene.until(lambda: nothing_left(scene, http, other), "the end of all")
    rounds.all_over.append(over - elected)
    await scene.up.restart(leader)


async def leading(scene: Scene, http: httpx.AsyncClient) -> str:
    while True:
        for server in ("m-1", "m-2"):
            if await leads(scene, http, server):
                return server
        await asyncio.sleep(LOOK_S)


async def leads(scene: Scene, http: httpx.AsyncClient, server: str) -> bool:
    return LEADS.search((await http.get(scene.url(server) + "/metrics")).text) is not None


async def made(
    scene: Scene, http: httpx.AsyncClient, server: str, name: str, *, wait_s: int = 60
) -> bool:
    """Accepted, where nobody waits. Not yet: nobody leads, or the node has not been heard."""
    headers = {"prefer": f"wait={wait_s}", "idempotency-key": name}
    body = {"name": name, **SPEC}
    answer = await http.post(scene.url(server) + PATH, json=body, headers=headers)
    return answer.status_code == 201 or (wait_s == 0 and answer.status_code == 202)


async def submit(scene: Scene, http: httpx.AsyncClient, leader: str, number: int) -> None:
    async def one(name: str) -> None:
        await scene.until(lambda: made(scene, http, leader, name, wait_s=0), name)

    names = (f"left_{number}_{n}" for n in range(scene.unfinished))
    await fan_out([partial(one, name) for name in names], at_once=MANY)


async def nothing_left(scene: Scene, http: httpx.AsyncClient, server: str) -> bool:
    query: dict[str, str | int] = {"state": ",".join(NO_ENDS), "page_size": 1}
    answer = await http.get(scene.url(server) + "/v1/procedures", params=query)
    return answer.status_code == 200 and not answer.json()["procedures"]


def show(scene: Scene) -> None:
    rounds = scene.rounds
    print(f"{scene.unfinished} procedures that are not over")
    line("kill until another is elected (lease of 5 s)", rounds.elected, "ms")
    line("election until a new create is accepted", rounds.accepted, "ms")
    line("election until a new create is done", rounds.done, "ms")
    line("election until nothing is left", rounds.all_over, "ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unfinished", type=int, default=1_000)
    asyncio.run(measure(parser.parse_args().unfinished))
