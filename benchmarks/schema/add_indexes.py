"""`benchmarks.schema.add_indexes`: ADD INDEX on tables without rows, from request to answer.

Many small changes are what test suites do. Tables of one region, one index each, asked for by
several clients at once, with 0 and 8 holders that follow, all of them in this process. Nothing is
read by Spark, and every state is published: each table is looked at afterwards. First over one node
that acknowledges at once, which leaves the control plane, with its round trips; then over three
real nodes, which fsync every order.
"""

import argparse
import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import httpx
import orjson

from benchmarks.load import Load, closed_loop, request_of
from benchmarks.report import ROUNDS, head, line
from benchmarks.schema.schema_waits import JSON, holding
from benchmarks.service.creates import (
    PATH,
    Place,
    cpu_ms,
    etcd_counts,
    node_counts,
    ready,
    stub_node,
)
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground

HOLDERS = (0, 8)
CLIENTS = (1, 16)
REAL_NODES = 3
STATES = 3
"""States that an index passes: delete-only, write-only, public."""
WANTED_PER_S = 20
SPEC = {
    "columns": [
        {"name": "id", "type": "int64", "nullable": False},
        {"name": "word", "type": "string", "nullable": True},
    ],
    "primary_key": ["id"],
}
INDEX = orjson.dumps({"name": "by_word", "columns": ["word"]})


@dataclass
class Found:
    """Results for one number of holders and clients, round by round."""

    loads: list[Load] = field(default_factory=list)
    counts: list[dict[str, float]] = field(default_factory=list)
    """Counters of one index each."""


async def one_round(place: Place, names: Sequence[str], clients: int, found: Found) -> None:
    """An index on each of *names*."""
    before = await counted(place)

    def make(number: int) -> bytes:
        headers = {**JSON, "prefer": "wait=30", "idempotency-key": f"index-{names[number]}"}
        return request_of("POST", f"{PATH}/{names[number]}/indexes", headers, INDEX)

    load = await closed_loop(place.metasrv, make, range(len(names)), clients=clients, status=b"201")
    after = await counted(place)
    found.loads.append(load)
    found.counts.append({name: (after[name] - before[name]) / len(names) for name in after})


async def counted(place: Place) -> dict[str, float]:
    async with httpx.AsyncClient(trust_env=False) as http:
        node = await node_counts(http, place) if place.node else {}
        etcd = await etcd_counts(http, place)
    return {**etcd, **node, "ms of metasrv's processor": cpu_ms(place.pid)}


async def made(http: httpx.AsyncClient, names: Sequence[str]) -> None:
    for name in names:
        body = {"name": name, **SPEC}
        (await http.post(PATH, json=body, headers={"prefer": "wait=30"})).raise_for_status()


async def must_be_public(http: httpx.AsyncClient, names: Sequence[str]) -> None:
    """Fails unless each table's index is public and has passed every state."""
    for name in names:
        table = (await http.get(f"{PATH}/{name}")).json()
        states = [one["state"] for one in table["indexes"]]
        assert states == ["public"], table
        assert table["schema_version"] == 1 + STATES, table


@asynccontextmanager
async def cluster(datanodes: int) -> AsyncIterator[Place]:
    """Yields a cluster with *datanodes*; with 0 of them, one with the stub node."""
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        settings = PlaygroundOptions(data_dir=Path(folder), datanodes=datanodes)
        async with Playground(settings) as up:
            server = next(one for one in up.programs if one.role == "metasrv")
            place = Place(server.url, up.etcd_urls[0], "", up.pid(server.id))
            if datanodes:
                await ready(place)
                yield place
                return
            async with stub_node(up.metasrv_urls, Path(folder)) as node:
                place = Place(server.url, up.etcd_urls[0], node, up.pid(server.id))
                await ready(place)
                yield place


async def measured(place: Place, indexes: int) -> dict[tuple[int, int], Found]:
    """Returns the results by holders and clients, without the first round, which warms up."""
    found: dict[tuple[int, int], Found] = {}
    numbers = count()
    async with httpx.AsyncClient(trust_env=False, base_url=place.metasrv, timeout=60) as http:
        for turn in range(ROUNDS + 1):
            for holders in HOLDERS:
                async with holding(place.metasrv, holders):
                    for clients in CLIENTS:
                        names = [f"t_{next(numbers)}" for _ in range(indexes)]
                        await made(http, names)
                        into = found.setdefault((holders, clients), Found())
                        await one_round(place, names, clients, into if turn else Found())
                        await must_be_public(http, names)
    return found


def show(who: str, found: dict[tuple[int, int], Found]) -> None:
    for (holders, clients), one in found.items():
        what = f"{who}, {holders} holders, {clients} client{'s' * (clients > 1)}"
        line(what, [load.per_second for load in one.loads], "/s", 1)
        middle = [sorted(load.latencies_ms)[len(load.latencies_ms) // 2] for load in one.loads]
        line("  from request to answer", middle, "ms", 1)
        for name in one.counts[0]:
            line(f"  {name} per index", [each[name] for each in one.counts], "", 1)


async def main(indexes: int) -> None:
    head(f"python -m benchmarks.schema.add_indexes --indexes {indexes}")
    async with cluster(0) as place:
        show("a node that acknowledges at once", await measured(place, indexes))
    async with cluster(REAL_NODES) as place:
        real = await measured(place, indexes)
    show("three nodes", real)
    rates = [load.per_second for load in real[HOLDERS[-1], CLIENTS[-1]].loads]
    line(
        f"rate / {WANTED_PER_S} a second (at least 1)",
        [rate / WANTED_PER_S for rate in rates],
        "",
        2,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--indexes", type=int, default=48, help="of each round")
    asyncio.run(main(parser.parse_args().indexes))
