"""`benchmarks.catalog.large`: a server of many tables, from its start to a check of all of them.

One etcd that is filled before (benchmarks/service/filled.py), one metasrv and the simulated nodes
that lead the tables, one region each; the snapshot is
written too. Measured on one server:
the first read, the first create, the leases of all regions, resident memory then, after a list of
every table and after `metasrv check`; a frontend; two reads of an old version. With `--changed N`
memory also while so many of the tables are altered, by batches. With `--watched` the
server runs under benchmarks/service/watched.py, which measures how long pieces of work hold the
event loop; that loop is slower, so the other figures are not those of a server.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

import httpx
import orjson

from benchmarks.catalog.filled_snapshot import write_snapshot
from benchmarks.report import resident_mib
from benchmarks.service.creates import PATH, SPEC, cpu_ms
from benchmarks.service.filled import NO_NUMBER, Filling, fill, name_of
from benchmarks.service.many_tables import QUOTA_BYTES, READY_S_MAX
from benchmarks.service.recovery import beat
from benchmarks.service.stub_node import HEAD_MAX, Stub
from benchmarks.service.watched import REPORT
from keys.commit.sequence import FIRST
from metasrv.playground.plan import PlaygroundOptions, plan
from metasrv.playground.playground import Playground
from metasrv.playground.ports import free_ports
from metasrv_base.clock import Clock, SystemClock
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import MetaError
from metasrv_base.ids import TableId, region_id
from metasrv_base.rng import SystemRng
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.node.nodes import RegionColumns, RegisterAnswer
from serving.launch import program

LOOK_S = 0.05
PAGE = 1_000
ALTERED_AT_ONCE = 1_000  # tables of one batch
ALTERED_SHOWN = 10  # times that memory is shown meanwhile
FIRST_EPOCH = 1
SHOWN = 8
TAKER = "stub-1"  # the node that takes new tables
STARTING = (202, 503, 504)
"""Statuses that are asked again: the change is under way, it was not attempted, it is perhaps done.
A change has an idempotency key, so that it is one change however often it is sent."""


def reason_of(answer: httpx.Response) -> str:
    """Status and code: details may differ each time, and would be printed each time."""
    code = answer.json().get("code", "under way")
    return f"{answer.status_code} {code}"


class Led(Stub):
    """A node that leads its share of the filled tables, and is granted leases until it has all."""

    def __init__(self, filling: Filling, number: int) -> None:
        view = filling.views[number]
        super().__init__(view.node_id, Path(view.root))
        led = range((number - NO_NUMBER) % filling.nodes, filling.tables, filling.nodes)
        ids = (TableId(FIRST["table_id"] + table) for table in led)
        names = [str(region_id(table_id, 0)) for table_id in ids]
        nothing = [0] * len(names)
        self._led = RegionColumns(
            region_id=names,
            epoch=[FIRST_EPOCH] * len(names),
            state=["open"] * len(names),
            rows=nothing,
            bytes=nothing,
            wal_bytes=nothing,
            files=nothing,
            borrowed_bytes=nothing,
            version=nothing,
            root=[None] * len(names),
        )

    async def granted(self, url: str) -> None:
        """Returns when one answer granted all its regions."""
        while True:
            with suppress(MetaError):
                async with HttpClient([url]) as client:
                    return await self._granted(client)
            await asyncio.sleep(LOOK_S)

    async def _granted(self, client: HttpClient) -> None:
        address, path = "http://127.0.0.1:1", f"/internal/v1/nodes/{self.node_id}"
        body = self._registration(address)
        answer = await client.request(
            "POST", f"{path}/register", json=body, deadline_ms=60_000, repeatable=True
        )
        joined = answer.body(RegisterAnswer)
        beats = self._heartbeat(joined, address).model_copy(update={"regions": self._led})
        while True:
            self._sequence += 1
            answer = await client.request(
                "PUT",
                f"{path}/heartbeat",
                json=beats.model_copy(update={"sequence": self._sequence}),
                deadline_ms=60_000,
            )
            if len(orjson.loads(answer.content)["grants"]) == len(self._led.region_id):
                return
            await asyncio.sleep(joined.heartbeat_ms / 1000)


@dataclass(frozen=True, slots=True)
class Rig:
    """A store that is filled, and where its servers write."""

    filling: Filling
    etcd: str
    folder: Path
    is_watched: bool
    is_checked: bool
    changed: int
    """Tables that are altered at the end."""
    clock: Clock


@dataclass(frozen=True, slots=True)
class Served:
    """A server that was started just now."""

    rig: Rig
    http: httpx.AsyncClient
    url: str
    pid: int
    began_ms: int

    def show(self, what: str) -> None:
        """Prints the time since the start, and the processor time and resident memory so far."""
        took_s = (self.rig.clock.mono_ms() - self.began_ms) / 1000
        used = f"{cpu_ms(self.pid) / 1000:9.2f} s of processor {resident_mib(self.pid):7.0f} MiB"
        print(f"{what:40}{took_s:9.2f} s {used}", flush=True)

    async def until(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        status: int,
        waits_for: Sequence[int] = STARTING,
    ) -> None:
        """Asks again until the answer has *status*, as long as it has one of *waits_for* or none,
        and prints each reason. Raises AssertionError for any other answer."""
        changes = body is not None and method == "POST"
        headers = {"prefer": "wait=30", "idempotency-key": uuid4().hex} if changes else {}
        waits = ""
        for _ in range(int(READY_S_MAX / LOOK_S)):
            try:
                answer = await self.http.request(method, path, json=body, headers=headers)
            except httpx.TransportError as error:
                reason = type(error).__name__
            else:
                if answer.status_code == status:
                    return
                assert answer.status_code in waits_for, f"{method} {path}: {answer.text[:1_000]}"
                reason = reason_of(answer)
            if reason != waits:
                print(f"  {method} {path} waits: {reason}", flush=True)
                waits = reason
            await asyncio.sleep(LOOK_S)
        raise AssertionError(f"{method} {path}: {waits}")


async def measure(filling: Filling, folder: Path, asked: argparse.Namespace) -> bool:
    """Returns whether no piece of work held the loop for long."""
    is_watched, is_checked = asked.watched, not asked.no_check
    os.environ["ETCD_QUOTA_BACKEND_BYTES"] = str(QUOTA_BYTES)
    clock = SystemClock()
    store = PlaygroundOptions(data_dir=folder / "store", metasrvs=0, datanodes=0)
    async with Playground(store) as up:
        etcd = up.etcd_urls[0]
        before = clock.mono_ms()
        then = partial(write_snapshot, filling)
        await fill(etcd.removeprefix("http://"), filling, then)
        print(f"{filling.tables} tables filled in {(clock.mono_ms() - before) / 1000:.0f} s")
        rig = Rig(filling, etcd, folder, is_watched, is_checked, asked.changed, clock)
        async with served(rig, "server") as server:
            await life(server)
        return not is_watched or longest(rig, "server")


@asynccontextmanager
async def served(rig: Rig, name: str) -> AsyncIterator[Served]:
    """A server, and a node that takes new tables."""
    settings = PlaygroundOptions(data_dir=rig.folder / name, datanodes=0, etcd=(rig.etcd,))
    (one,) = plan(settings, "", free_ports(1, SystemRng()))
    one.folder.mkdir(parents=True)
    module = "benchmarks.service.watched" if rig.is_watched else "metasrv.server.main"
    argv = [word.replace("metasrv.server.main", module) for word in one.argv]
    began = rig.clock.mono_ms()
    with (rig.folder / f"{name}.log").open("wb") as output:
        env = {**os.environ, REPORT: str(rig.folder / f"{name}.json")}
        child = await asyncio.create_subprocess_exec(*argv, env=env, stdout=output, stderr=output)
    stub = Stub(TAKER, rig.folder)
    listening = await asyncio.start_server(stub.serve, "127.0.0.1", 0, limit=HEAD_MAX)
    address = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    client = httpx.AsyncClient(base_url=one.url, trust_env=False, timeout=READY_S_MAX)
    try:
        async with client, listening, asyncio.TaskGroup() as tasks:
            beating = tasks.create_task(beat(stub, [one.url], address))
            yield Served(rig, client, one.url, child.pid, began)
            beating.cancel()
    finally:
        child.terminate()
        await child.wait()


async def life(server: Served) -> None:
    filling = server.rig.filling
    path = f"{PATH}/{name_of(filling.tables // 2)}"
    # 404: what is filled lacks the catalog `main`, which the first leader makes.
    await server.until("GET", path, status=200, waits_for=(*STARTING, 404))
    server.show("first read")
    # 404: the node that takes new tables beats until a leader is there that knows it.
    await server.until("GET", f"/v1/nodes/{TAKER}", status=200, waits_for=(*STARTING, 404))
    await server.until("POST", PATH, {"name": "first", **SPEC}, status=201)
    server.show("first create")
    off = {"enabled": True, "reason": "the nodes are simulated, and silent once they have leases"}
    await server.until("PUT", "/v1/cluster/maintenance", off, status=200)
    if filling.has_log:
        await old_reads(server)
    nodes = [Led(filling, number) for number in range(filling.nodes)]
    await fan_out([partial(node.granted, server.url) for node in nodes], at_once=len(nodes))
    server.show(f"leases of all regions, {len(nodes)} nodes")
    await list_all(server)
    server.show("list of every table")
    await frontend(server)
    if server.rig.is_checked:
        await check(server)
        server.show("metasrv check")
    await alter(server)


async def alter(server: Served) -> None:
    """Alters each table once, by batches: none of them is as the snapshot has it after that."""
    changed = server.rig.changed
    for first in range(0, changed, ALTERED_AT_ONCE):
        behind = min(first + ALTERED_AT_ONCE, changed)
        commands = {"commands": [altered(number) for number in range(first, behind)]}
        await server.until("POST", "/v1/batch", commands, status=200)
        if behind * ALTERED_SHOWN % changed < ALTERED_AT_ONCE * ALTERED_SHOWN:
            server.show(f"{behind} tables altered")
    if changed:
        await list_all(server)
        server.show("list of every table")


def altered(number: int) -> dict[str, object]:
    """The command that gives a table a comment."""
    operation = {"op": "set_options", "options": {"comment": f"altered {number}"}}
    table = {"catalog": "main", "schema": "public", "table": name_of(number)}
    return {"alter_table": {**table, "operations": [operation]}}


async def list_all(server: Served) -> None:
    token, count = None, 0
    while token or not count:
        query = {"page_size": PAGE, **({"page_token": token} if token else {})}
        answer = await server.http.get(PATH, params=query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        token, count = page["next_page_token"], count + len(page["tables"])
    assert count >= server.rig.filling.tables, count


async def old_reads(server: Served) -> None:
    """Reads a table twice as of a version that lies below the snapshot."""
    filling, clock = server.rig.filling, server.rig.clock
    path = f"{PATH}/{name_of(filling.tables // 4)}?as_of=version:{filling.tables // 2}"
    for what in ("first", "next"):
        before, used = clock.mono_ms(), cpu_ms(server.pid)
        await server.until("GET", path, status=200)
        took, used = clock.mono_ms() - before, cpu_ms(server.pid) - used
        print(f"{what} read of an old version: {took} ms, {used:.0f} of processor", flush=True)


async def frontend(server: Served) -> None:
    (port,) = free_ports(1, SystemRng())
    flags = {"frontend-id": "fe-1", "metasrv": server.url, "listen": f"127.0.0.1:{port}"}
    argv = [f"--{name}={value}" for name, value in flags.items()]
    began = server.rig.clock.mono_ms()
    child = await asyncio.create_subprocess_exec(
        *program("dataplane.frontend.main"), *argv, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        url = f"http://127.0.0.1:{port}/readyz"
        at = Served(server.rig, server.http, url, child.pid, began)
        await at.until("GET", url, status=200)
        at.show("frontend ready (its memory)")
    finally:
        child.terminate()
        await child.wait()


async def check(server: Served) -> None:
    """`metasrv check` in a process of its own, whose largest memory is printed too."""
    targets = f"--etcd={server.rig.etcd}", f"--metasrv={server.url}"
    child = await asyncio.create_subprocess_exec(*program("metasrv.cli.main"), "check", *targets)
    began, most = server.rig.clock.mono_ms(), 0.0
    async with asyncio.TaskGroup() as tasks:
        ended = tasks.create_task(child.wait())
        while not ended.done():
            with suppress(OSError, IndexError):
                most = max(most, resident_mib(child.pid))
            await asyncio.wait([ended], timeout=LOOK_S)
    took_s = (server.rig.clock.mono_ms() - began) / 1000
    print(f"check ended with {ended.result()} after {took_s:.0f} s, {most:.0f} MiB", flush=True)


def longest(rig: Rig, *servers: str) -> bool:
    ok = True
    for name in servers:
        report = json.loads((rig.folder / f"{name}.json").read_text())
        print(f"{name} server: longest of {report['pieces']} pieces {report['longest_ms']:.0f} ms")
        ms: Callable[[dict[str, float]], float] = lambda one: -one["ms"]  # noqa: E731
        for one in sorted(report["slow"], key=ms)[:SHOWN]:
            print(
                f"  {one['ms']:6.0f} ms, {one['gc_ms']:.0f} of gc, {one['at_s']} s: {one['what']}"
            )
        ok = ok and report["longest_ms"] <= 50
    return ok


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--watched", action="store_true", help="measure pieces of the event loop")
    parser.add_argument(
        "--no-check", action="store_true", help="leave out `metasrv check`, which holds all keys"
    )
    parser.add_argument(
        "--no-log", action="store_true", help="write a snapshot and no log below it: it is faster"
    )
    parser.add_argument(
        "--changed", type=int, default=0, help="tables that are altered behind the rest"
    )
    asked = parser.parse_args()
    many = Filling(asked.tables, regions=1, nodes=asked.nodes, has_log=not asked.no_log)
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as root:
        ok = asyncio.run(measure(many, Path(root), asked))
    sys.exit(0 if ok else 1)
