"""`benchmarks.data.copied_writes`: writes of one row with 1, 2 and 3 copies, against two peers.

A table of one region for each number of copies, on three nodes of one machine; etcd with as many
members; PostgreSQL with a synchronous standby for each further copy (`synchronous_commit=on`: the
commit waits until each has flushed it). A write is answered once it is synced everywhere; by etcd
with three members, on two. Every write goes to the member, server or node that leads. One machine
syncs and computes for all copies, so the ratio of three copies to one tells what a copy costs, and
not what a cluster of machines does. Rounds alternate; the first counts for nothing, and nor do the
first writes of each load, by which every client has a connection that is warm.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.etcd import EtcdCluster, etcd_cluster, puts
from benchmarks.load import Ask, Connect, Load, MakeRequest, closed, over_http, request_of
from benchmarks.postgres import Connection, missing_postgres, with_standbys
from benchmarks.report import head, line, ratio
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground

ROUNDS = 3
WRITES = 400
WARM = 80
"""Writes of a load before its clock starts, of all its clients together."""
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


def inserts(table: str, first: int) -> MakeRequest:
    """Makes requests to a frontend, each for a row of its own from number *first* on."""
    path = f"/v1/tables/main/public/{table}/rows"

    def post(number: int) -> bytes:
        rows = [{"id": first + number, "value": VALUE}]
        body = json.dumps({"op": "insert", "rows": rows}).encode()
        return request_of("POST", path, JSON, body)

    return post


def by_postgres(server: Path, first: int) -> Connect:
    """Opens connections that insert a row each time, as those of `over_http`."""

    @asynccontextmanager
    async def connected() -> AsyncIterator[Ask]:
        connection = Connection(server)

        async def insert(number: int) -> None:
            row = f"INSERT INTO copied VALUES ({first + number}, '{VALUE}')"
            await asyncio.to_thread(connection.run, row)

        try:
            yield insert
        finally:
            connection.close()

    return connected


async def load_of(connect: Connect, clients: int) -> Load:
    return await closed(connect, range(WARM + WRITES), clients=clients, warm=WARM)


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
    folder: Path, rates: Rates, servers: Mapping[int, Path], stores: Mapping[int, EtcdCluster]
) -> None:
    settings = PlaygroundOptions(data_dir=folder / "playground", datanodes=3, frontends=1, zones=3)
    async with Playground(settings) as up:
        frontend = next(iter(up.frontend_urls.values()))
        allowed = await made(up.metasrv_urls[0])
        for number in range(ROUNDS + 1):
            counted = rates if number > 0 else Rates()  # the first is cold
            for copies in COPIES:
                for clients in CLIENTS:
                    first = (number * 10 + clients) * (WARM + WRITES)
                    rows = inserts(f"copied_{copies}", first)
                    ways = {
                        "metasrv": over_http(frontend, rows, b"200"),
                        "etcd": over_http(stores[copies].leader(), puts(first, VALUE), b"200"),
                        "PostgreSQL": by_postgres(servers[copies], first),
                    }
                    if copies not in allowed:
                        del ways["metasrv"]
                    for system, connect in ways.items():
                        load = await load_of(connect, clients)
                        counted.add((system, copies, clients), load)


def show(rates: Rates) -> None:
    for key in sorted(rates.per_second):
        system, copies, clients = key
        what = f"{system}, {copies} copies, {clients} clients"
        line(what, rates.per_second[key], "/s")
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
    head("python -m benchmarks.data.copied_writes", ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user
        show(measured(Path(folder)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
