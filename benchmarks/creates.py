"""`python -m benchmarks.creates`: what a create over REST costs, against raw etcd transactions.

One client, one metasrv, one real datanode, tables of one region. The raw side sends, through the
same library to the same etcd in the same run, the two transactions that a create consists of: as
many compares, puts and bytes. Ratios and counts are printed: absolute times are the machine's.
"""

import argparse
import asyncio
import re
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx

from keys.etcd import EtcdKv
from keys.key import Range
from keys.kv import Compare, Kv, Put, Request
from keys.scan import scan
from metasrv.playground.plan import Settings
from metasrv.playground.playground import Playground
from metasrv.sdk.client import AsyncClient
from metasrv.sdk.connect import connect_async

DEADLINE_MS = 10_000
ROUNDS = 5
WARM = 10
SPEC = {
    "columns": [{"name": "id", "type": "int64", "nullable": False}],
    "primary_key": ["id"],
}
NUMBER = r"([\d.e+]+)$"
CALLS = r'grpc_server_handled_total\{grpc_code="OK",grpc_method="%s".*?\} ' + NUMBER
# What etcd counts of itself. Transactions without a write are linearizable reads.
COUNTED = {
    "transactions": CALLS % "Txn",
    "range reads": CALLS % "Range",
    "proposals (writes)": r"^etcd_server_proposals_applied_total " + NUMBER,
    "fsyncs of etcd's log": r"^etcd_disk_wal_fsync_duration_seconds_count " + NUMBER,
}
COMPARES = (4, 8)  # of a submission with a key, and of the end of a create of one region


@dataclass(frozen=True, slots=True)
class Shape:
    """One transaction: how many compares, and the size of each value it puts."""

    compares: int
    values: tuple[int, ...]


async def measure(creates: int) -> None:
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        settings = Settings(data_dir=Path(folder), datanodes=1)
        async with Playground(settings) as up, connect_async(up.metasrv_urls) as client:
            endpoint = up.etcd_urls[0].removeprefix("http://")
            kv, raw = [await EtcdKv.connect([endpoint], p) for p in (b"metasrv/", b"bench/")]
            for number in range(WARM):
                await _create(client, f"warm{number}")
            shapes = await _shapes(kv)
            before = await _counts(up.etcd_urls[0])
            rest = [
                await _timed(creates, partial(_create_in_round, client, round_))
                for round_ in range(ROUNDS)
            ]
            after = await _counts(up.etcd_urls[0])
            plain = [
                await _timed(creates, partial(_pair, raw, shapes, round_))
                for round_ in range(ROUNDS)
            ]
            show(rest, plain, {k: (after[k] - before[k]) / (ROUNDS * creates) for k in after})
            await kv.close()
            await raw.close()


async def _create(client: AsyncClient, name: str) -> None:
    await client.tables.create({"name": name, **SPEC})


async def _create_in_round(client: AsyncClient, round_: int, number: int) -> None:
    await _create(client, f"t{round_}_{number}")


async def _timed(count: int, call: Callable[[int], Awaitable[None]]) -> list[float]:
    """Milliseconds of each call."""
    loop, took = asyncio.get_running_loop(), []
    for number in range(count):
        before = loop.time()
        await call(number)
        took.append((loop.time() - before) * 1000)
    return took


async def _shapes(kv: Kv) -> tuple[Shape, Shape]:
    """What the last create wrote: its submission's values are about as large as its history."""
    everything, _ = await scan(kv, Range(b"__", b"__z"), deadline_ms=DEADLINE_MS)
    last = max(item.mod_revision for item in everything)
    end = tuple(len(item.value) for item in everything if item.mod_revision == last)
    record = max(len(i.value) for i in everything if i.key.startswith(b"__procedure_history/"))
    key = max(len(i.value) for i in everything if i.key.startswith(b"__idempotency/"))
    return Shape(COMPARES[0], (record, key)), Shape(COMPARES[1], end)


async def _pair(kv: Kv, shapes: Sequence[Shape], round_: int, creation: int) -> None:
    name = f"{round_}/{creation}"
    for number, shape in enumerate(shapes):
        puts = [
            Put(f"{name}/{number}/{place}".encode(), b"x" * size)
            for place, size in enumerate(shape.values)
        ]
        absent = [
            Compare(f"{name}/{number}/{place}".encode(), 0) for place in range(shape.compares)
        ]
        answer = await kv.txn(
            Request(compares=tuple(absent), writes=tuple(puts)), deadline_ms=DEADLINE_MS
        )
        assert answer.succeeded


async def _counts(etcd: str) -> dict[str, float]:
    async with httpx.AsyncClient(trust_env=False) as http:
        text = (await http.get(f"{etcd}/metrics")).text
    found = {name: re.search(pattern, text, re.MULTILINE) for name, pattern in COUNTED.items()}
    return {name: float(match.group(1)) if match else 0.0 for name, match in found.items()}


def show(
    rest: Sequence[Sequence[float]], plain: Sequence[Sequence[float]], per: Mapping[str, float]
) -> None:
    ours = statistics.median(statistics.median(one) for one in rest)
    theirs = statistics.median(statistics.median(one) for one in plain)
    print(f"create over REST, one region, one client   {ours:8.2f} ms (median of {ROUNDS} medians)")
    print(f"the same two transactions, raw             {theirs:8.2f} ms")
    print(f"ratio of latencies                         {ours / theirs:8.2f}")
    for name, count in per.items():
        print(f"{name + ' per create':42} {count:8.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--creates", type=int, default=50, help="in each of the rounds")
    asyncio.run(measure(parser.parse_args().creates))
