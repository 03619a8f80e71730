"""`benchmarks.service.creates`: what a create over REST costs, against raw etcd transactions.

One metasrv, one etcd, one node that acknowledges at once; tables of one region. In the same run
etcd is driven raw: one unmerged transaction with the compares, puts and bytes of one create, by the
same library, in the best of three client settings. Rounds alternate; medians are printed, with
ratios and counts: absolute times are the machine's. Beside them, measured once: tables of six
regions, and three real nodes, which make files and fsync them. docs/speed.md says what bounds it.
"""

import argparse
import asyncio
import os
import platform
import re
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import orjson

from benchmarks.load import Load, closed_loop, request_of
from benchmarks.service.raw import DEADLINE_MS, SETTINGS, Shape, Work, measured
from keys.key import Range
from keys.model.records import ProcedureHistory
from keys.store.etcd import EtcdKv
from keys.store.kv import Kv
from keys.store.scan import scan
from keys.value import decode, encode
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground

ROUNDS = 5
WARM = 20
READY_TRIES_MAX = 100
MANY = 32
PATH = "/v1/catalogs/main/schemas/public/tables"
SPEC = {"columns": [{"name": "id", "type": "int64", "nullable": False}], "primary_key": ["id"]}
SPLIT = {**SPEC, "partition": {"by": "hash", "columns": ["id"], "count": 6}}
REAL_NODES = 3
COMPARES = 9  # distinct keys that submission and end compare, the fence and the version included
NUMBER = r"([\d.e+]+)$"
CALLS = r'grpc_server_handled_total\{grpc_code="OK",grpc_method="%s".*?\} ' + NUMBER
# What etcd counts of itself. Transactions without a write are linearizable reads.
COUNTED = {
    "etcd transactions": CALLS % "Txn",
    "etcd range reads": CALLS % "Range",
    "etcd write transactions": r"^etcd_server_proposals_applied_total " + NUMBER,
    "fsyncs of etcd's log": r"^etcd_disk_wal_fsync_duration_seconds_count " + NUMBER,
}


@dataclass(frozen=True, slots=True)
class Place:
    """Addresses of the parts under test."""

    metasrv: str
    etcd: str
    node: str
    pid: int
    """Process id of metasrv."""

    @property
    def endpoint(self) -> str:
        return self.etcd.removeprefix("http://")


@dataclass(slots=True)
class Rounds:
    """Results, round by round, by number of clients or by client setting."""

    creates: dict[int, list[Load]] = field(default_factory=dict)
    counts: dict[int, list[Mapping[str, float]]] = field(default_factory=dict)
    """Per create."""
    raw: dict[str, list[Load]] = field(default_factory=dict)
    alone: list[Load] = field(default_factory=list)
    """Raw, one client."""
    beside: dict[str, Mapping[int, Load]] = field(default_factory=dict)
    """Results of loads that ran once, by number of clients."""


@asynccontextmanager
async def stub_node(urls: Sequence[str], root: Path) -> AsyncIterator[str]:
    """Address of the server."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.service.stub_node", *urls, "--root", str(root)),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        yield (await child.stdout.readline()).decode().strip()
    finally:
        child.terminate()
        await child.wait()


async def measure(creates: int) -> None:
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        settings = PlaygroundOptions(data_dir=Path(folder), datanodes=0)
        async with Playground(settings) as up, stub_node(up.metasrv_urls, Path(folder)) as node:
            server = next(one for one in up.programs if one.role == "metasrv")
            place = Place(server.url, up.etcd_urls[0], node, up.pid(server.id))
            await ready(place)
            kv = await EtcdKv.connect([place.endpoint], b"metasrv/")
            await create(place, "warm", range(WARM), clients=4)
            shape = await shape_of_a_create(kv)
            await kv.close()
            rounds = Rounds()
            for number in range(ROUNDS):
                await one_round(place, shape, number, creates, rounds)
            rounds.beside["six regions"] = await both(place, "six", creates, SPLIT)
    rounds.beside |= await with_real_nodes(creates)
    show(rounds, shape, creates)


async def with_real_nodes(count: int) -> dict[str, Mapping[int, Load]]:
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        settings = PlaygroundOptions(data_dir=Path(folder), datanodes=REAL_NODES)
        async with Playground(settings) as up:
            server = next(one for one in up.programs if one.role == "metasrv")
            place = Place(server.url, up.etcd_urls[0], "", up.pid(server.id))
            await ready(place)
            return {
                "real nodes": await both(place, "one", count, SPEC),
                "real nodes, six regions": await both(place, "six", count, SPLIT),
            }


async def both(place: Place, name: str, count: int, spec: Mapping[str, object]) -> dict[int, Load]:
    """One client, then many."""
    alone = await create(place, f"{name}_1", range(count), clients=1, spec=spec)
    many = await create(place, f"{name}_{MANY}", range(8 * count), clients=MANY, spec=spec)
    return {1: alone, MANY: many}


async def ready(place: Place) -> None:
    """Waits until the leader has heard the node, so that a create can be placed."""
    body = {"name": "first", **SPEC}
    async with httpx.AsyncClient(trust_env=False) as http:
        for _ in range(READY_TRIES_MAX):
            answer = await http.post(place.metasrv + PATH, json=body, headers={"prefer": "wait=30"})
            if answer.status_code == 201:
                return
            await asyncio.sleep(0.2)
    raise AssertionError(answer.text)


async def create(
    place: Place,
    name: str,
    numbers: range,
    *,
    clients: int,
    spec: Mapping[str, object] = SPEC,
) -> Load:
    def make(number: int) -> bytes:
        headers = {
            "content-type": "application/json",
            "prefer": "wait=30",
            "idempotency-key": f"{name}-{number}",
        }
        body = orjson.dumps({"name": f"{name}_{number}", **spec})
        return request_of("POST", PATH, headers, body)

    return await closed_loop(place.metasrv, make, numbers, clients=clients, status=b"201")


async def one_round(place: Place, shape: Shape, number: int, count: int, rounds: Rounds) -> None:
    for clients in (1, MANY):
        size = count * (1 if clients == 1 else 8)
        before = await counts(place)
        load = await create(place, f"r{number}_{clients}", range(size), clients=clients)
        after = await counts(place)
        rounds.creates.setdefault(clients, []).append(load)
        each = {name: (after[name] - before[name]) / size for name in after}
        rounds.counts.setdefault(clients, []).append(each)
    alone = Work(place.endpoint, shape, f"alone{number}", 2 * count, 1)
    rounds.alone.append(await measured(alone, SETTINGS[0]))
    for setting in SETTINGS:
        name = f"{setting.name}{number}".replace(" ", "_")
        many = Work(place.endpoint, shape, name, MANY * count, MANY)
        rounds.raw.setdefault(setting.name, []).append(await measured(many, setting))


async def shape_of_a_create(kv: Kv) -> Shape:
    """The sizes of all that the last create wrote: at its end, and as a submission, whose record
    has the size of the one in its history."""
    everything, _ = await scan(kv, Range(b"__", b"__z"), deadline_ms=DEADLINE_MS)
    histories = [i for i in everything if i.key.startswith(b"__procedure_history/")]
    last = max(histories, key=lambda item: item.mod_revision)
    end = {i.key: len(i.value) for i in everything if i.mod_revision == last.mod_revision}
    kinds = {re.sub(rb"/[^/]*$", b"", key): size for key, size in end.items()}  # one of each family
    key = max(len(i.value) for i in everything if i.key.startswith(b"__idempotency/"))
    record = len(encode(decode(ProcedureHistory, last.value, key=last.key.decode()).last))
    return Shape(COMPARES, (record, key, *kinds.values()))


async def counts(place: Place) -> dict[str, float]:
    async with httpx.AsyncClient(trust_env=False) as http:
        etcd, node = await etcd_counts(http, place), await node_counts(http, place)
    return {**etcd, **node, "ms of metasrv's processor": cpu_ms(place.pid)}


async def etcd_counts(http: httpx.AsyncClient, place: Place) -> dict[str, float]:
    text = (await http.get(f"{place.etcd}/metrics")).text
    found = {name: re.search(pattern, text, re.MULTILINE) for name, pattern in COUNTED.items()}
    return {name: float(match.group(1)) if match else 0.0 for name, match in found.items()}


async def node_counts(http: httpx.AsyncClient, place: Place) -> dict[str, float]:
    """Returns the requests and orders that the stub node has counted."""
    node = (await http.get(f"{place.node}/counts")).json()
    return {"requests to the node": node["requests"], "orders to the node": node["orders"]}


def cpu_ms(pid: int) -> float:
    """Returns the processor time of a process, user and kernel, in ms (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def show(rounds: Rounds, shape: Shape, creates: int) -> None:
    raw = {name: _rate(loads) for name, loads in rounds.raw.items()}
    best = max(raw, key=raw.__getitem__)
    alone_ms = _latency(rounds.alone)
    print(f"python -m benchmarks.service.creates --creates {creates}; medians of {ROUNDS} rounds")
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"raw: {shape.compares} compares, {len(shape.values)} puts, {sum(shape.values)} bytes")
    for name, rate in raw.items():
        print(f"{f'raw, {MANY} in flight, {name}':46}{rate:9.0f} /s{'  best' * (name == best)}")
    print(f"{'raw, one in flight':46}{alone_ms:9.2f} ms")
    for clients, loads in rounds.creates.items():
        who = f"creates, {clients} client{'s' * (clients > 1)}"
        print(f"{who:46}{_rate(loads):9.0f} /s{_latency(loads):9.2f} ms")
        for name in rounds.counts[clients][0]:
            median = statistics.median(each[name] for each in rounds.counts[clients])
            print(f"{'  ' + name + ' per create':46}{median:9.2f}")
    for name, once in rounds.beside.items():
        rate, latency = once[MANY].per_second, _latency([once[1]])
        print(f"{f'{name}: {MANY} clients; one client':46}{rate:9.0f} /s{latency:9.2f} ms")
    print(
        f"{f'rate at {MANY} clients / raw (at least 0.22)':46}"
        f"{_rate(rounds.creates[MANY]) / raw[best]:9.3f}"
    )
    print(
        f"{'latency at one client / raw (at most 4)':46}"
        f"{_latency(rounds.creates[1]) / alone_ms:9.2f}"
    )


def _rate(loads: Sequence[Load]) -> float:
    return statistics.median(load.per_second for load in loads)


def _latency(loads: Sequence[Load]) -> float:
    return statistics.median(statistics.median(load.latencies_ms) for load in loads)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--creates", type=int, default=50, help="of one client in each round")
    asyncio.run(measure(parser.parse_args().creates))
