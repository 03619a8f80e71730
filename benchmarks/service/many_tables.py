"""`benchmarks.service.many_tables`: 100,000 tables of 4 regions against 100, side by side.

Two clusters, each of one etcd, one metasrv and one node that acknowledges at once; the tables are
filled in before, on nodes that are silent: so no heartbeat of them is part of any figure here.
Measured: start until reads and until the first create, resident memory, one read and one page of
the list from one connection, creates of one region by 32 clients and added columns by as many,
round by round; then a frontend, from its start until it has the catalog.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlencode

import httpx

from benchmarks.load import Connection, Load, closed_loop, connected, request_of
from benchmarks.report import ROUNDS, head, line, ratio, resident_mib
from benchmarks.service.creates import MANY, PATH, SPEC, WARM, Place, cpu_ms, create, stub_node
from benchmarks.service.filled import Filling, fill, name_of
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.playground.ports import free_ports
from metasrv_base.clock import Clock, SystemClock
from metasrv_base.rng import SystemRng
from serving.launch import program

FEW = 100
QUOTA_BYTES = 8 << 30
PAGE = 100
TRIES_MAX, TRY_AGAIN_S = 2_000, 0.05
PAGES = 50
READS = 500
NODES = 4
SERVER = "m-1"
READY_S_MAX = 900.0  # of a server, or a frontend, of a million tables


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
    alters: list[float] = field(default_factory=list)
    frontend_ms: list[float] = field(default_factory=list)
    frontend_mib: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Plan:
    """The arguments of the program."""

    tables: int
    regions: int
    creates: int
    rounds: int
    etcd: str | None
    """Endpoint of a store that holds the tables already; None: one is filled."""

    def of_few(self) -> "Plan":
        return replace(self, tables=FEW, etcd=None)


@asynccontextmanager
async def cluster(asked: Plan, folder: Path) -> AsyncIterator[Cluster]:
    """Filled before its server starts; its node is there."""
    async with AsyncExitStack() as stack:
        etcd, tables = asked.etcd, asked.tables
        if etcd is None:
            store = PlaygroundOptions(data_dir=folder / "store", metasrvs=0, datanodes=0)
            etcd = (await stack.enter_async_context(Playground(store))).etcd_urls[0]
            await fill(etcd.removeprefix("http://"), Filling(tables, asked.regions, NODES))
        settings = PlaygroundOptions(data_dir=folder / "servers", datanodes=0, etcd=(etcd,))
        made = Playground(settings, ready_s_max=READY_S_MAX)
        servers = await stack.enter_async_context(made)
        place = Place(servers.metasrv_urls[0], etcd, "", servers.pid(SERVER))
        yield Cluster(tables, servers, place)


async def measure(asked: Plan, folder: Path) -> None:
    os.environ["ETCD_QUOTA_BACKEND_BYTES"] = str(QUOTA_BYTES)
    clock = SystemClock()
    async with cluster(asked.of_few(), folder / "few") as few, cluster(asked, folder / "n") as many:
        for one in (few, many):
            for _ in range(asked.rounds):
                await start(one, folder, clock)
            async with stub_node(one.servers.metasrv_urls, folder):
                await first_create(one.place, "warm_up")
                await create(one.place, "warm", range(WARM), clients=4)
        for number in range(asked.rounds):
            for one in (few, many):
                await reads(one)
                async with stub_node(one.servers.metasrv_urls, folder):
                    await ddl(one, number, asked.creates)
        for one in (few, many):
            await frontend(one, clock)
        given = f"--tables {asked.tables} --regions {asked.regions} --creates {asked.creates}"
        head(
            f"python -m benchmarks.service.many_tables {given} --rounds {asked.rounds}",
            asked.rounds,
        )
        show(few, many)


async def start(one: Cluster, folder: Path, clock: Clock) -> None:
    """Measures a restart: from the start of the process until it answers reads, and until a
    create is done."""
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
    """Returns the median latency of the first pages of the list, read one by one, in ms."""
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
    one.alters.append((await alter(one, number, count)).per_second)


async def alter(one: Cluster, number: int, count: int) -> Load:
    """An optional column for each of the tables that were just made: three versions of a schema."""
    operation = {"op": "add_column", "column": {"name": "more", "type": "string"}}
    body = json.dumps({"operations": [operation]}).encode()
    headers = {"content-type": "application/json", "prefer": "wait=30"}

    def make(which: int) -> bytes:
        return request_of("POST", f"{PATH}/r{number}_{which}/alter", headers, body)

    return await closed_loop(one.place.metasrv, make, range(count), clients=MANY, status=b"200")


async def frontend(one: Cluster, clock: Clock) -> None:
    """Measures the start of a frontend: from the start of the process until it is ready."""
    (port,) = free_ports(1, SystemRng())
    began, where = clock.mono_ms(), f"127.0.0.1:{port}"
    flags = {"frontend-id": "fe-1", "metasrv": one.place.metasrv, "listen": where}
    argv = [f"--{name}={value}" for name, value in flags.items()]
    child = await asyncio.create_subprocess_exec(*program("dataplane.frontend.main"), *argv)
    try:
        await _serves(f"http://{where}/readyz")
        one.frontend_ms.append(clock.mono_ms() - began)
        one.frontend_mib.append(resident_mib(child.pid))
    finally:
        child.terminate()
        await child.wait()


async def _serves(url: str) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=READY_S_MAX) as http:
        for _ in range(int(READY_S_MAX / TRY_AGAIN_S)):
            with suppress(httpx.TransportError):
                if (await http.get(url)).status_code == 200:
                    return
            await asyncio.sleep(TRY_AGAIN_S)
    raise AssertionError(url)


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
        line(f"  columns added, {MANY} clients", one.alters, "/s")
        line("  start of a frontend until it is ready", one.frontend_ms, "ms")
        line("  resident memory of the frontend", one.frontend_mib, "MiB")
    ratio(f"creates: {many.tables} tables / {few.tables} (at least 0.8)", many.creates, few.creates)
    ratio("the same by processor time", few.create_cpu_ms, many.create_cpu_ms)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--regions", type=int, default=4, help="of each of them")
    parser.add_argument("--creates", type=int, default=400, help="in each round")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--etcd", help="URL of a store that benchmarks.service.filled filled")
    asked = Plan(**vars(parser.parse_args()))
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as root:
        asyncio.run(measure(asked, Path(root)))
