"""Raw etcd transactions by our own adapter: what one create compares and puts, in one, unmerged.

As a program it is one of several processes that share the work: it prints when it began and ended.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from itertools import cycle

from benchmarks.load import Load
from keys.store.etcd import EtcdKv
from keys.store.kv import Compare, Kv, Put, Request

DEADLINE_MS = 10_000
PREFIX = b"bench/"


@dataclass(frozen=True, slots=True)
class Shape:
    """One transaction: how many compares, and the size of each value it puts."""

    compares: int
    values: tuple[int, ...]

    def request(self, name: str) -> Request:
        """All of its keys are new."""
        keys = [f"{name}/{place}".encode() for place in range(max(self.compares, len(self.values)))]
        puts = [Put(key, b"x" * size) for key, size in zip(keys, self.values, strict=False)]
        return Request(tuple(Compare(key, 0) for key in keys[: self.compares]), tuple(puts))


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to drive etcd from Python."""

    name: str
    channels: int = 1
    processes: int = 1


SETTINGS = (
    Setting("one channel"),
    Setting("four channels", channels=4),
    Setting("two processes", processes=2),
)


@dataclass(frozen=True, slots=True)
class Work:
    """A load of transactions of one shape, by several clients in one process."""

    endpoint: str
    shape: Shape
    name: str
    count: int
    clients: int


async def drive(work: Work, *, channels: int) -> tuple[Load, float]:
    """The load, and the loop's time when it began."""
    loop = asyncio.get_running_loop()
    waiting, latencies = iter(range(work.count)), []

    async def client(kv: Kv) -> None:
        for number in waiting:
            before = loop.time()
            request = work.shape.request(f"{work.name}/{number}")
            assert (await kv.txn(request, deadline_ms=DEADLINE_MS)).succeeded
            latencies.append((loop.time() - before) * 1000)

    async with AsyncExitStack() as stack:
        kvs = [await EtcdKv.connect([work.endpoint], PREFIX) for _ in range(channels)]
        for place, kv in enumerate(kvs):
            stack.push_async_callback(kv.close)
            warm = work.shape.request(f"{work.name}/warm{place}")
            await kv.txn(warm, deadline_ms=DEADLINE_MS)
        began = loop.time()
        async with asyncio.TaskGroup() as tasks:
            for _, kv in zip(range(work.clients), cycle(kvs), strict=False):
                tasks.create_task(client(kv))
        return Load(loop.time() - began, latencies), began


async def measured(work: Work, setting: Setting) -> Load:
    """Latencies only where one process does it all."""
    if setting.processes == 1:
        load, _ = await drive(work, channels=setting.channels)
        return load
    share = replace(
        work,
        count=work.count // setting.processes,
        clients=work.clients // setting.processes,
    )
    spans = await asyncio.gather(
        *(_elsewhere(replace(share, name=f"{work.name}.{n}")) for n in range(setting.processes))
    )
    seconds = max(end for _, end in spans) - min(began for began, _ in spans)
    return Load(seconds, [0.0] * (share.count * setting.processes))


async def _elsewhere(work: Work) -> tuple[float, float]:
    values = ",".join(map(str, work.shape.values))
    numbers = [str(number) for number in (work.shape.compares, work.count, work.clients)]
    child = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "benchmarks.service.raw",
            work.endpoint,
            work.name,
            values,
            *numbers,
        ),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await child.communicate()
    began, end = out.split()
    return float(began), float(end)


async def main(argv: Sequence[str]) -> None:
    endpoint, name, values, compares, count, clients = argv
    shape = Shape(int(compares), tuple(map(int, values.split(","))))
    load, began = await drive(Work(endpoint, shape, name, int(count), int(clients)), channels=1)
    print(began, began + load.seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("argv", nargs=6, help="endpoint name values compares count clients")
    asyncio.run(main(parser.parse_args().argv))
