"""`python -m benchmarks.many_tables`: 100,000 tables of 4 regions against 100, side by side.

Two clusters, each of one etcd, one metasrv and one node that acknowledges at once; the tables are
filled in before, on nodes that are silent: so no heartbeat of them is part of any figure here.
Measured: start until reads and until the first create, resident memory, one read and one page of
the list from one connection, and creates of one region by 32 clients, round by round.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import httpx

from base.clock import Clock, SystemClock
from benchmarks.creates import MANY, PATH, SPEC, WARM, Place, cpu_ms, create, stub_node
from benchmarks.filled import Filling, fill, name_of
from benchmarks.load import Connection, closed_loop, connected, request_of
from benchmarks.report import ROUNDS, head, line, ratio, resident_mib
from metasrv.playground.plan import Settings
from metasrv.playground.playground import Playground

FEW = 100
QUOTA_BYTES = 8 << 30
PAGE = 100
TRIES_MAX, TRY_AGAIN_S = 2_000, 0.05
PAGES = 50
READS = 500
NODES = 4
SERVER = "m-1"


@dataclass(slots=True)
class Cluster:
    """One of the two, and what was measured of it."""

    tables: int
    servers: Playground
    place: Place
    starts_ms: list[float] = field(default_factory=list)
    start_cpu_ms: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    memory_mib: list[float] = field(default_factory=list)
    read_ms: list[float] = field(default_factory=list)
    page_ms: list[float] = field(default_factory=list)
    creates: list[float] = field(default_factory=list)
    create_cpu_ms: list[float] = field(default_factory=list)


@asynccontextmanager
async def cluster(tables: int, folder: Path) -> AsyncIterator[Cluster]:
    """Filled before its server starts; its node is there."""
    async with AsyncExitStack() as stack:
        store = Settings(data_dir=folder / "store", metasrvs=0, datanodes=0)
        etcd = (await stack.enter_async_context(Playground(store))).etcd_urls[0]
        await fill(etcd.removeprefix("http://"), Filling(tables, nodes=NODES))
        settings = Settings(data_dir=folder / "servers", datanodes=0, etcd=(etcd,))
        servers = await stack.enter_async_context(Playground(settings))
        place = Place(servers.metasrv_urls[0], etcd, "", servers.pid(SERVER))
        yield Cluster(tables, servers, place)


async def measure(tables: int, creates: int, folder: Path) -> None:
    os.environ["ETCD_QUOTA_BACKEND_BYTES"] = str(QUOTA_BYTES)
    clock = SystemClock()
    async with cluster(FEW, folder / "few") as few, cluster(tables, folder / "many") as many:
        for one in (few, many):
            for _ in range(ROUNDS):
                await start(one, folder, clock)
            async with stub_node(one.servers.metasrv_urls, folder):
                await first_create(one.place, "warm_up")
                await create(one.place, "warm", range(WARM), clients=4)
        for number in range(ROUNDS):
            for one in (few, many):
                await reads(one)
                async with stub_node(one.servers.metasrv_urls, folder):
                    await ddl(one, number, creates)
        head(f"python -m benchmarks.many_tables --tables {tables} --creates {creates}")
        show(few, many)


async def start(one: Cluster, folder: Path, clock: Clock) -> None:
    """From the start of the process until it answers reads, and until a create is done."""
    await one.servers.kill(SERVER, signal.SIGTERM)
    began = clock.mono_ms()
    await one.servers.restart(SERVER)
    one.starts_ms.append(clock.mono_ms() - began)
    one.place = Place(one.place.metasrv, one.place.etcd, "", one.servers.pid(SERVER))
    one.start_cpu_ms.append(cpu_ms(one.place.pid))
    async with stub_node(one.servers.metasrv_urls, folder):
        await first_create(one.place, f"first_{len(one.first_ms)}")
    one.first_ms.append(clock.mono_ms() - began)
    one.memory_mib.append(resident_mib(one.place.pid))


async def first_create(place: Place, name: str) -> None:
    """Asked for again until there is a leader that has heard the node."""
    async with httpx.AsyncClient(base_url=place.metasrv, trust_env=False) as http:
        for _ in range(TRIES_MAX):
            body = {"name": name, **SPEC}
            answer = await http.post(PATH, json=body, headers={"prefer": "wait=30"})
            if answer.status_code == 201:
                return
            await asyncio.sleep(TRY_AGAIN_S)
    raise AssertionError(answer.text)


async def reads(one: Cluster) -> None:
    def get(number: int) -> bytes:
        return request_of("GET", f"{PATH}/{name_of(number)}", {}, b"")

    chosen = random.Random(1).choices(range(one.tables), k=READS)
    load = await closed_loop(
        one.place.metasrv, lambda n: get(chosen[n]), range(READS), clients=1, status=b"200"
    )
    one.read_ms.append(sorted(load.latencies_ms)[READS // 2])
    async with connected(one.place.metasrv) as connection:
        one.page_ms.append(await pages(connection))


async def pages(connection: Connection) -> float:
    """Of the first pages of the list, one by one: the median, in ms."""
    loop, token, took = asyncio.get_running_loop(), None, list[float]()
    while len(took) < PAGES and (token or not took):
        query = {"page_size": PAGE, **({"page_token": token} if token else {})}
        before = loop.time()
        body = await connection.ask(
            request_of("GET", f"{PATH}?{urlencode(query)}", {}, b""), b"200"
        )
        took.append((loop.time() - before) * 1000)
        token = json.loads(body)["next_page_token"]
    return sorted(took)[len(took) // 2]


async def ddl(one: Cluster, number: int, count: int) -> None:
    await first_create(one.place, f"ready_{number}")
    before = cpu_ms(one.place.pid)
    load = await create(one.place, f"r{number}", range(count), clients=MANY)
    one.creates.append(load.per_second)
    one.create_cpu_ms.append((cpu_ms(one.place.pid) - before) / count)


def show(few: Cluster, many: Cluster) -> None:
    for one in (few, many):
        print(f"{one.tables} tables")
        line("  start until it answers reads", one.starts_ms, "ms")
        line("  the same, processor of metasrv", one.start_cpu_ms, "ms")
        line("  start until the first create is done", one.first_ms, "ms")
        line("  resident memory", one.memory_mib, "MiB")
        line("  GET T, one connection", one.read_ms, "ms", 2)
        line(f"  a page of {PAGE} of the list, one connection", one.page_ms, "ms", 2)
        line(f"  creates, {MANY} clients", one.creates, "/s")
        line("  a create, processor of metasrv", one.create_cpu_ms, "ms", 2)
    ratio(f"creates: {many.tables} tables / {few.tables} (at least 0.8)", many.creates, few.creates)
    ratio("the same by processor time", few.create_cpu_ms, many.create_cpu_ms)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--creates", type=int, default=400, help="in each round")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as root:
        asyncio.run(measure(given.tables, given.creates, Path(root)))
