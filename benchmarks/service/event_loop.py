"""`benchmarks.service.event_loop LOAD...`: how long pieces of work hold a leader's event loop.

A real server and a real etcd under one load after the other, each at a part of its size and at it.
Printed for each: the longest piece of the event loop in processor time of its thread, garbage
collections included (at most 50 ms are asked); what the longest ones were; resident memory; and the
bytes that the server sent to etcd, for each of what the load has, at both sizes: whether they grow
linearly.

- queued: creates that wait for a node that answers nothing, until it answers
- waiters: changes of one table, which run one after the other
- cascade: a schema of many tables is dropped
- batch: the same by a batch, so that all of them are hidden in one version
- keys: idempotency keys that lead to nothing, through two sweeps
- views: pages of the information schema, and filters that take none of all rows
- dead: a node that leads many tables is dead, and their regions are opened elsewhere
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import httpx

from benchmarks.report import resident_mib
from benchmarks.service.creates import MANY, PATH, SPEC
from benchmarks.service.filled import Filling, fill
from benchmarks.service.raw import DEADLINE_MS
from benchmarks.service.recovery import HeldStub, beat
from benchmarks.service.stub_node import HEAD_MAX
from benchmarks.service.watched import REPORT
from keys.model.records import Idempotency, IdempotencyKey
from keys.store.etcd import EtcdKv
from keys.store.kv import Put, Request
from keys.value import encode
from metasrv.playground.plan import KEY_PREFIX, PlaygroundOptions, Program, plan
from metasrv.playground.playground import Playground
from metasrv.playground.ports import free_ports
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.ids import uuid7
from metasrv_base.rng import SystemRng
from metasrv_base.wire.api.procedures import NO_ENDS

QUOTA_BYTES = 8 << 30
ENDS = re.compile(r'^metasrv_procedures_total\{kind="(\w+)",outcome="(\w+)"\} (\S+)$', re.M)
SENT = re.compile(r"^etcd_network_client_grpc_received_bytes_total (\S+)$", re.MULTILINE)
LOOK_S = 1.0
KEYS_S = 150  # two sweeps
PATIENCE_S = 3_600
PUTS = 120
SHOWN = 5
LIMIT_MS = 50.0


@dataclass
class Scene:
    """One cluster under one load."""

    http: httpx.AsyncClient
    node: HeldStub
    size: int

    async def post(self, path: str, body: object, *, wait_s: int = 0) -> httpx.Response:
        headers = {"prefer": f"wait={wait_s}"}
        return await self.http.post(path, json=body, headers=headers)

    async def ends(self) -> Mapping[str, int]:
        """Procedures that ended so far, by kind and outcome."""
        found = ENDS.findall((await self.http.get("/metrics")).text)
        return Counter({f"{kind} {outcome}": int(float(count)) for kind, outcome, count in found})

    async def over(self) -> None:
        """Waits until no procedure is left."""
        query: dict[str, str | int] = {"state": ",".join(NO_ENDS), "page_size": 1}
        for _ in range(PATIENCE_S):
            answer = await self.http.get("/v1/procedures", params=query)
            if answer.status_code == 200 and not answer.json()["procedures"]:
                return
            await asyncio.sleep(LOOK_S)
        raise AssertionError("procedures are left")

    async def until_up(self) -> None:
        """Waits until a create succeeds."""
        for _ in range(PATIENCE_S):
            with suppress(httpx.TransportError):
                answer = await self.post(PATH, {"name": "first", **SPEC}, wait_s=10)
                if answer.status_code in (201, 409):
                    return
            await asyncio.sleep(LOOK_S)
        raise AssertionError("no create is done")


async def queued(scene: Scene) -> None:
    scene.node.hold()
    names = (f"queued_{number}" for number in range(scene.size))
    await fan_out(
        [partial(_asked, scene, PATH, {"name": one, **SPEC}) for one in names], at_once=MANY
    )
    scene.node.go_on()
    await scene.over()


async def waiters(scene: Scene) -> None:
    body = {"operations": [{"op": "set_options", "options": {"comment": "seen"}}]}
    path = f"{PATH}/first/alter"
    asked = [partial(_asked, scene, path, body) for _ in range(scene.size)]
    await fan_out(asked, at_once=MANY)
    await scene.over()


async def _asked(scene: Scene, path: str, body: object) -> None:
    answer = await scene.post(path, body)
    assert answer.status_code in (200, 201, 202), answer.text


async def cascade(scene: Scene) -> None:
    answer = await scene.http.delete(PATH.removesuffix("/tables") + "?cascade=true")
    assert answer.status_code in (200, 202), answer.text
    await scene.over()


async def batch(scene: Scene) -> None:
    drop = {"catalog": "main", "schema": "public", "cascade": True}
    answer = await scene.post("/v1/batch", {"commands": [{"drop_schema": drop}]})
    assert answer.status_code in (200, 202), answer.text
    await scene.over()


async def keys(scene: Scene) -> None:
    await asyncio.sleep(KEYS_S)


async def dead(scene: Scene) -> None:
    """Waits until the dead node leads no table and every failover is over."""
    for _ in range(PATIENCE_S):
        answer = await scene.http.get("/v1/nodes")
        if answer.status_code == 200:
            nodes = {one["id"]: one for one in answer.json()["nodes"]}
            if not nodes["filled-1"]["leads"]:
                return await scene.over()
        await asyncio.sleep(LOOK_S)
    raise AssertionError("the dead node leads tables")


VIEWS = (
    ("tables", "", 1),
    ("tables", "table_name = 'absent'", PATIENCE_S),
    ("columns", "", 1),
    ("columns", "data_type = 'absent'", PATIENCE_S),
    ("regions", "region_number > 99", PATIENCE_S),
)
"""View, filter, and the most pages that are read of it."""


async def views(scene: Scene) -> None:
    clock = asyncio.get_running_loop()
    for view, where, most in VIEWS:
        params: dict[str, str | int] = {"page_size": 1_000, **({"where": where} if where else {})}
        began, pages, rows, late = clock.time(), 0, 0, 0
        while pages < most:
            answer = await scene.http.get(f"/v1/information-schema/{view}", params=params)
            if answer.status_code == 503 and clock.time() < began + PATIENCE_S:
                late += 1  # the version of the first page is made again: regions fail over
                await asyncio.sleep(LOOK_S)
                continue
            assert answer.status_code == 200, answer.text
            page = answer.json()
            pages, rows = pages + 1, rows + len(page["rows"])
            if page["next_page_token"] is None:
                break
            params["page_token"] = page["next_page_token"]
        took_ms = (clock.time() - began) * 1000
        said = f"{view} {f'where {where}' if where else ''}"
        print(
            f"  {said}: {rows} rows, {pages} pages, {late} of them late, {took_ms:,.0f} ms",
            flush=True,
        )


@dataclass(frozen=True)
class Load:
    """One load. `tables` and `keys`: whether so many are written before the server starts."""

    run: Callable[[Scene], Awaitable[None]]
    size: int
    tables: bool = False
    keys: bool = False


LOADS = {
    "queued": Load(queued, 10_000),
    "waiters": Load(waiters, 10_000),
    "cascade": Load(cascade, 100_000, tables=True),
    "batch": Load(batch, 9_900, tables=True),
    "keys": Load(keys, 5_000_000, keys=True),
    "views": Load(views, 100_000, tables=True),
    "dead": Load(dead, 50_000, tables=True),
}


@dataclass(frozen=True)
class Found:
    """The figures of one load at one size."""

    report: dict[str, Any]
    sent: float
    """Bytes to etcd."""
    memory_mib: tuple[float, float]
    """Resident memory before and after the load, in MiB."""
    ends: Mapping[str, int]
    """Procedures of the load, by kind and outcome."""


async def measured(load: Load, size: int, folder: Path) -> Found:
    store = PlaygroundOptions(data_dir=folder / "store", metasrvs=0, datanodes=0)
    async with Playground(store) as up:
        endpoint = up.etcd_urls[0].removeprefix("http://")
        if load.tables or load.keys:  # a prefix that holds keys of no cluster has no leader
            await fill(endpoint, Filling(size if load.tables else 0, regions=1, nodes=1))
        if load.keys:
            await write_keys(endpoint, size)
        report = folder / "report.json"
        async with AsyncExitStack() as stack:
            serving = server(up.etcd_urls[0], folder / "server", report)
            url, pid = await stack.enter_async_context(serving)
            node = await stack.enter_async_context(node_of(url, folder))
            limits = httpx.Limits(keepalive_expiry=2)  # before the server ends them, after five
            client = httpx.AsyncClient(base_url=url, trust_env=False, timeout=120, limits=limits)
            scene = Scene(await stack.enter_async_context(client), node, size)
            await scene.until_up()
            sent, memory = await sent_to(up.etcd_urls[0]), resident_mib(pid)
            before = await scene.ends()
            await load.run(scene)
            sent = await sent_to(up.etcd_urls[0]) - sent
            after, ends = resident_mib(pid), Counter(await scene.ends()) - Counter(before)
        return Found(json.loads(report.read_text()), sent, (memory, after), ends)


@asynccontextmanager
async def server(etcd: str, folder: Path, report: Path) -> AsyncIterator[tuple[str, int]]:
    """URL and process id of a server that is watched."""
    settings = PlaygroundOptions(data_dir=folder, datanodes=0, etcd=(etcd,))
    (one,) = plan(settings, "", free_ports(1, SystemRng()))
    one.folder.mkdir(parents=True)
    child = await asyncio.create_subprocess_exec(
        *_watched(one),
        env={**os.environ, REPORT: str(report)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield one.url, child.pid
    finally:
        child.terminate()
        await child.wait()


def _watched(one: Program) -> list[str]:
    return [word.replace("metasrv.server.main", "benchmarks.service.watched") for word in one.argv]


@asynccontextmanager
async def node_of(url: str, root: Path) -> AsyncIterator[HeldStub]:
    stub = HeldStub(root)
    listening = await asyncio.start_server(stub.serve, "127.0.0.1", 0, limit=HEAD_MAX)
    address = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening, asyncio.TaskGroup() as tasks:
        beating = tasks.create_task(beat(stub, [url], address))
        yield stub
        beating.cancel()
        stub.hold()


async def write_keys(endpoint: str, count: int) -> None:
    """Two days old; their procedures are in no store."""
    kv = await EtcdKv.connect([endpoint], KEY_PREFIX.encode())
    puts = _keys(count)

    async def put(part: tuple[Put, ...]) -> None:
        await kv.txn(Request(writes=part), deadline_ms=DEADLINE_MS)

    while some := list(islice(puts, 8 * PUTS)):
        parts = [tuple(some[at : at + PUTS]) for at in range(0, len(some), PUTS)]
        await fan_out([partial(put, part) for part in parts], at_once=8)
    await kv.close()


def _keys(count: int) -> Iterator[Put]:
    rng, at_ms = Random(1), 1_700_000_000_000
    for _ in range(count):
        known = Idempotency(
            procedure=uuid7(at_ms, rng.randbytes(10)),
            fingerprint=rng.randbytes(32).hex(),
            at_ms=at_ms,
        )
        yield Put(bytes(IdempotencyKey(rng.randbytes(32).hex())), encode(known))


async def sent_to(etcd: str) -> float:
    async with httpx.AsyncClient(trust_env=False) as http:
        found = SENT.search((await http.get(f"{etcd}/metrics")).text)
    assert found is not None
    return float(found[1])


async def measure(names: list[str], share: float, against: float) -> bool:
    """Whether every piece was short enough."""
    os.environ["ETCD_QUOTA_BACKEND_BYTES"] = str(QUOTA_BYTES)
    ok = True
    for name in names:
        load, sent = LOADS[name], list[float]()
        for part in (against, 1.0):
            size = int(load.size * share * part)
            with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
                found = await measured(load, size, Path(folder))
            sent.append(found.sent / size)
            ok = ok and found.report["longest_ms"] <= LIMIT_MS
            show(name, size, found)
        ratio = f"{sent[1]:,.0f} after {sent[0]:,.0f}, {sent[1] / sent[0]:.2f} times as many"
        print(f"  bytes to etcd for each: {ratio}", flush=True)
    return ok


def show(name: str, size: int, found: Found) -> None:
    report, (before, after) = found.report, found.memory_mib
    ends = ", ".join(f"{count} {end}" for end, count in sorted(found.ends.items()))
    print(f"{name}, {size}: {ends or 'no procedures'}", flush=True)
    print(f"  longest of {report['pieces']} pieces: {report['longest_ms']:.0f} ms (at most 50)")
    for one in sorted(report["slow"], key=lambda one: -one["ms"])[:SHOWN]:
        passes = f"{one['gc_ms']:.0f} of gc {one['generations']}"
        print(f"    {one['ms']:6.0f} ms, {passes}, at {one['at_s']} s: {one['what']}")
    print(
        f"  bytes to etcd: {found.sent:,.0f}; resident: {before:.0f} MiB before, {after:.0f} after"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loads", nargs="*", choices=[*LOADS, []], help="default: all")
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes")
    parser.add_argument("--against", type=float, default=0.5, help="the part of a size run before")
    given = parser.parse_args()
    work = measure(given.loads or list(LOADS), given.share, given.against)
    sys.exit(0 if asyncio.run(work) else 1)
