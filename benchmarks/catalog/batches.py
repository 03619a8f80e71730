"""`benchmarks.catalog.batches`: thousands of tables in one batch, against as many single creates.

One metasrv, one etcd, three real datanodes, each of which may open 1,000 files and no more; tables
of one region. In one run: one batch of all tables, single creates by 1 client and by 32. Beside
each, one client alters a table of another schema again and again: the longest of these changes
says for how long a batch keeps others waiting, which it does while its keys are written.
"""

import argparse
import asyncio
import resource
import statistics
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from benchmarks.load import connected, request_of
from benchmarks.report import head
from benchmarks.service.creates import MANY, PATH, SPEC, Place, cpu_ms, create, ready
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground

NODES = 3
FILES_MAX = 1_000
"""Files that a datanode may have open, by the kernel's limit of its process."""
LOOK_S = 0.02  # between two looks at the open files
PAUSE_S = 0.01  # between two changes of the other client
WAIT = {"content-type": "application/json", "prefer": "wait=300"}


@dataclass(slots=True)
class Beside:
    """Observations while tables are made."""

    waits_ms: list[float] = field(default_factory=list)
    """The latency of each change of the other client."""
    files: int = 0
    """The most files that one datanode had open."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way of making the tables."""

    what: str
    seconds: float
    processor_s: float
    """Processor time of metasrv."""
    beside: Beside


async def measure(tables: int) -> None:
    head(f"python -m benchmarks.catalog.batches --tables {tables}", rounds=1)
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        options = PlaygroundOptions(data_dir=Path(folder), datanodes=NODES)
        async with Playground(options) as up:
            nodes = {program.id for program in up.programs if program.role == "datanode"}
            pids = [up.pid(node) for node in nodes]
            for pid in pids:
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (FILES_MAX, FILES_MAX))
            server = next(one for one in up.programs if one.role == "metasrv")
            place = Place(server.url, up.etcd_urls[0], "", up.pid(server.id))
            await ready(place)
            await made_schema(place, "made")
            ways: Mapping[str, Callable[[], Awaitable[object]]] = {
                "one batch": lambda: made_by_batch(place, tables),
                "1 client": lambda: create(place, "alone", range(tables), clients=1),
                f"{MANY} clients": lambda: create(place, "many", range(tables), clients=MANY),
            }
            show(tables, [await one_way(place, pids, what, make) for what, make in ways.items()])


async def one_way(
    place: Place, pids: Sequence[int], what: str, make: Callable[[], Awaitable[object]]
) -> Outcome:
    loop = asyncio.get_running_loop()
    async with observed(place, pids) as beside:
        before_ms, began = cpu_ms(place.pid), loop.time()
        await make()
        seconds, after_ms = loop.time() - began, cpu_ms(place.pid)
    return Outcome(what, seconds, (after_ms - before_ms) / 1000, beside)


async def made_schema(place: Place, name: str) -> None:
    body = orjson.dumps({"name": name})
    async with connected(place.metasrv) as http:
        await http.ask(request_of("POST", "/v1/catalogs/main/schemas", WAIT, body), b"201")


async def made_by_batch(place: Place, tables: int) -> None:
    """Makes the tables in a schema of their own: a large batch locks the schema."""
    where = {"catalog": "main", "schema": "made"}
    commands = [
        {"create_table": {**where, "table": {"name": f"t_{number}", **SPEC}}}
        for number in range(tables)
    ]
    body = orjson.dumps({"commands": commands})
    async with connected(place.metasrv) as http:
        await http.ask(request_of("POST", "/v1/batch", WAIT, body), b"200")


@asynccontextmanager
async def observed(place: Place, pids: Sequence[int]) -> AsyncIterator[Beside]:
    beside = Beside()
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(change_for_ever(place, beside)),
            tasks.create_task(count_files(pids, beside)),
        ]
        yield beside
        for task in running:
            task.cancel()


async def change_for_ever(place: Place, beside: Beside) -> None:
    loop, number = asyncio.get_running_loop(), 0
    async with connected(place.metasrv) as http:
        while True:
            operations = [{"op": "set_options", "options": {"comment": f"change {number}"}}]
            body = orjson.dumps({"operations": operations})
            began = loop.time()
            await http.ask(request_of("POST", f"{PATH}/first/alter", WAIT, body), b"200")
            beside.waits_ms.append((loop.time() - began) * 1000)
            number += 1
            await asyncio.sleep(PAUSE_S)


async def count_files(pids: Sequence[int], beside: Beside) -> None:
    while True:
        beside.files = max(beside.files, *map(open_files, pids))
        await asyncio.sleep(LOOK_S)


def open_files(pid: int) -> int:
    """Returns the number of file descriptors of a process (proc(5))."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def show(tables: int, outcomes: Sequence[Outcome]) -> None:
    print(f"{tables} tables of one region, {NODES} datanodes of {FILES_MAX} open files at most")
    print(
        f"{'tables made by':16}{'s':>8}{'tables/s':>10}{'metasrv s':>11}{'files':>7}"
        f"{'others: median ms':>19}{'longest ms':>12}"
    )
    for one in outcomes:
        waits = one.beside.waits_ms
        print(
            f"{one.what:16}{one.seconds:8.1f}{tables / one.seconds:10.0f}{one.processor_s:11.1f}"
            f"{one.beside.files:7}{statistics.median(waits):19.0f}{max(waits):12.0f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=3_000)
    asyncio.run(measure(parser.parse_args().tables))
