"""`benchmarks.data.copied_writes`: writes of one row with 1, 2 and 3 copies, against two peers.

A table of one region for each number of copies, on three nodes of one machine; etcd with as many
members; PostgreSQL with a synchronous standby for each further copy (`synchronous_commit=on`: the
commit waits until each has flushed it). A write is answered once it is synced everywhere; by etcd
with three members, on two. One machine syncs and computes for all copies, so the ratio of three
copies to one tells what a copy costs, and not what a cluster of machines does. Rounds alternate.
"""

import argparse
import asyncio
import base64
import json
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.load import Load, closed, closed_loop, request_of
from benchmarks.postgres import Connection, missing_postgres, with_standbys
from benchmarks.report import head, line, ratio
from metasrv.host.toolchain import checkout, read_toolchain
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.playground.ports import free_ports
from metasrv_base.rng import SystemRng

ROUNDS = 3
WRITES = 400
CLIENTS = (1, 8)
COPIES = (1, 2, 3)
VALUE = "x" * 100
TABLES = "/v1/catalogs/main/schemas/public/tables"
COLUMNS = [
    {"name": "id", "type": "int64", "nullable": False},
    {"name": "value", "type": "string", "nullable": False},
]
JSON = {"content-type": "application/json"}


@dataclass
class Rates:
    """Figures by system, copies and clients, round by round."""

    per_second: dict[tuple[str, int, int], list[float]] = field(default_factory=dict)
    p50_ms: dict[tuple[str, int, int], list[float]] = field(default_factory=dict)
    p99_ms: dict[tuple[str, int, int], list[float]] = field(default_factory=dict)

    def add(self, key: tuple[str, int, int], load: Load) -> None:
        ordered = sorted(load.latencies_ms)
        self.per_second.setdefault(key, []).append(load.per_second)
        self.p50_ms.setdefault(key, []).append(ordered[len(ordered) // 2])
        self.p99_ms.setdefault(key, []).append(ordered[len(ordered) * 99 // 100])


async def through_frontend(url: str, table: str, first: int, clients: int) -> Load:
    path = f"/v1/tables/main/public/{table}/rows"

    def post(number: int) -> bytes:
        rows = [{"id": first + number, "value": VALUE}]
        body = json.dumps({"op": "insert", "rows": rows}).encode()
        return request_of("POST", path, JSON, body)

    return await closed_loop(url, post, range(WRITES), clients=clients, status=b"200")


async def through_etcd(url: str, first: int, clients: int) -> Load:
    value = base64.b64encode(VALUE.encode()).decode()

    def put(number: int) -> bytes:
        key = base64.b64encode(f"{first + number:08}".encode()).decode()
        body = json.dumps({"key": key, "value": value}).encode()
        return request_of("POST", "/v3/kv/put", JSON, body)

    return await closed_loop(url, put, range(WRITES), clients=clients, status=b"200")


async def through_postgres(server: Path, first: int, clients: int) -> Load:
    @asynccontextmanager
    async def connected() -> AsyncIterator[Callable[[int], Awaitable[None]]]:
        connection = Connection(server)

        async def insert(number: int) -> None:
            row = f"INSERT INTO copied VALUES ({first + number}, '{VALUE}')"
            await asyncio.to_thread(connection.run, row)

        yield insert
        connection.close()

    return await closed(connected, range(WRITES), clients=clients)


@contextmanager
def etcd_cluster(folder: Path, members: int) -> Iterator[str]:
    """Yields the URL of one of *members* servers, which all must sync a write where two are."""
    chosen = read_toolchain(checkout())
    assert chosen is not None
    assert chosen.etcd is not None
    ports = free_ports(2 * members, SystemRng())
    clients = [f"http://127.0.0.1:{port}" for port in ports[:members]]
    peers = [f"http://127.0.0.1:{port}" for port in ports[members:]]
    initial = ",".join(f"m{number}={url}" for number, url in enumerate(peers))
    with ExitStack() as running:
        for number, (client, peer) in enumerate(zip(clients, peers, strict=True)):
            flags = {
                "name": f"m{number}",
                "data-dir": folder / f"m{number}",
                "listen-client-urls": client,
                "advertise-client-urls": client,
                "listen-peer-urls": peer,
                "initial-advertise-peer-urls": peer,
                "initial-cluster": initial,
            }
            argv = [chosen.etcd.path, *(f"--{name}={value}" for name, value in flags.items())]
            quiet = subprocess.DEVNULL
            process = subprocess.Popen(argv, stdout=quiet, stderr=quiet)
            running.callback(process.wait)
            running.callback(process.terminate)
        with httpx.Client(transport=httpx.HTTPTransport(retries=20), trust_env=False) as http:
            while http.get(clients[0] + "/health").status_code != httpx.codes.OK:
                pass
        yield clients[0]


async def made(metasrv: str) -> Sequence[int]:
    """Creates the tables; returns the numbers of copies that this service allows."""
    allowed = list[int]()
    async with httpx.AsyncClient(trust_env=False, base_url=metasrv, timeout=90) as http:
        for copies in COPIES:
            spec = {"name": f"copied_{copies}", "columns": COLUMNS, "primary_key": ["id"]}
            spec["replicas"] = copies  # type: ignore[assignment]
            answer = await http.post(TABLES, json=spec, headers={"prefer": "wait=60"})
            if answer.status_code == httpx.codes.CREATED:
                allowed.append(copies)
            else:
                print(f"{copies} copies are refused: {answer.json().get('code')}")
    return allowed


def measured(folder: Path) -> Rates:
    rates = Rates()
    with ExitStack() as peers:
        servers: Mapping[int, Path] = {
            copies: peers.enter_context(with_standbys(folder / f"postgres-{copies}", copies - 1))
            for copies in COPIES
        }
        stores = {
            copies: peers.enter_context(etcd_cluster(folder / f"etcd-{copies}", copies))
            for copies in COPIES
        }
        for server in servers.values():
            connection = Connection(server)
            connection.run("CREATE TABLE copied (id bigint PRIMARY KEY, value text NOT NULL)")
            connection.close()
        asyncio.run(_ours(folder, rates, servers, stores))
    return rates


async def _ours(
    folder: Path, rates: Rates, servers: Mapping[int, Path], stores: Mapping[int, str]
) -> None:
    settings = PlaygroundOptions(data_dir=folder / "playground", datanodes=3, frontends=1, zones=3)
    async with Playground(settings) as up:
        frontend = next(iter(up.frontend_urls.values()))
        allowed = await made(up.metasrv_urls[0])
        for number in range(ROUNDS):
            for copies in COPIES:
                for clients in CLIENTS:
                    first = (number * 10 + clients) * WRITES
                    if copies in allowed:
                        load = await through_frontend(frontend, f"copied_{copies}", first, clients)
                        rates.add(("metasrv", copies, clients), load)
                    load = await through_etcd(stores[copies], first, clients)
                    rates.add(("etcd", copies, clients), load)
                    load = await through_postgres(servers[copies], first, clients)
                    rates.add(("PostgreSQL", copies, clients), load)


def show(rates: Rates) -> None:
    for key in sorted(rates.per_second):
        system, copies, clients = key
        what = f"{system}, {copies} copies, {clients} clients"
        line(what, rates.per_second[key], "a second")
        line(f"{what}, p50", rates.p50_ms[key], "ms", 1)
        line(f"{what}, p99", rates.p99_ms[key], "ms", 1)
    for system, copies, clients in sorted(rates.per_second):
        own = rates.per_second[system, copies, clients]
        if copies > 1:
            what = f"{system}, {copies} copies to 1, {clients} clients"
            ratio(what, own, rates.per_second[system, 1, clients])
        if system == "metasrv":
            for peer in ("etcd", "PostgreSQL"):
                what = f"metasrv to {peer}, {copies} copies, {clients} clients"
                ratio(what, own, rates.per_second[peer, copies, clients])


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    if (missing := missing_postgres()) is not None:
        print(missing)
        return 1
    head("benchmarks.data.copied_writes", ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user
        show(measured(Path(folder)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
