"""`benchmarks.data.recopies`: a copy of a region is made on a node that has none of its rows.

One etcd, one metasrv, three datanodes, one region with two copies, of rows that do not compress. A
copy is added on the third node, without a limit of its rate, and removed again: the time is that
from the submission until the new copy has all rows and is in the set. Beside it, on the files of
the leader: `cp -r` with an fsync of every file and folder, and a rewrite of every Parquet file by
pyarrow, synced too.
"""

import argparse
import asyncio
import random
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks.data.file_peers import MIB, baselines, everything, linked_files
from benchmarks.report import ROUNDS, head, line, ratio
from keys.model.tables import CopyRole
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.sdk.client import AsyncClient
from metasrv.sdk.connections import connect_async
from metasrv.sdk.control.procedure import fault_of
from metasrv_base.clock import Clock, SystemClock
from metasrv_base.wire.api.procedures import ProcedureBody
from metasrv_base.wire.api.tables import ColumnSpec, RegionRouteBody, TableSpec

NAME = "main.public.recopied"
SPEC = TableSpec(
    name="recopied",
    columns=(
        ColumnSpec(name="id", type="int64", nullable=False),
        ColumnSpec(name="noise", type="binary"),
    ),
    primary_key=("id",),
    replicas=2,
)
ROW_BYTES = 8_192
STATEMENT_ROWS = 512
PATIENCE_MS = 120_000
END_S = 120
COPY_MS_MAX = 900_000
"""The longest that a copy may take: one of a gigabyte takes 7 s on a quiet machine."""
LOOK_MS = 20
FETCH = "a copy, until it is in the set"
COPY, REWRITE = "cp -r and fsync", "pyarrow rewrite and fsync"


async def measure(mib: int) -> None:
    rates: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        async with Playground(PlaygroundOptions(data_dir=Path(folder), frontends=1)) as up:
            urls = list(up.metasrv_urls)
            async with connect_async(urls, patience_ms=PATIENCE_MS) as client:
                await client.settings.put("fetch_bytes_per_s", 0)
                await client.tables.create(SPEC, "main.public")
                await write(client, mib)
                await client.cluster.set_maintenance(True, "benchmark")  # nobody else removes it
                for _ in range(ROUNDS):
                    for way, rate in (await one_round(up, client, Path(folder))).items():
                        rates.setdefault(way, []).append(rate)
    head(f"python -m benchmarks.data.recopies --mib {mib}")
    for way, values in rates.items():
        line(way, values, "MiB/s", 1)
    for way in (COPY, REWRITE):
        ratio(f"{FETCH} / {way}", rates[FETCH], rates[way])


async def write(client: AsyncClient, mib: int) -> None:
    table = client.table(NAME)
    for first in range(0, mib * MIB // ROW_BYTES, STATEMENT_ROWS):
        noise = random.Random(first)
        values = [noise.randbytes(ROW_BYTES) for _ in range(STATEMENT_ROWS)]
        ids = pa.array(range(first, first + STATEMENT_ROWS), pa.int64())
        await table.insert(pa.table({"id": ids, "noise": pa.array(values, pa.binary())}))


async def one_round(up: Playground, client: AsyncClient, folder: Path) -> dict[str, float]:
    """Adds a copy and removes it. Returns the rate of each way, in MiB/s of the leader's files."""
    region = await region_of(client)
    assert region.leader is not None
    files = up.datanode_roots[region.leader] / "regions" / f"{region.region_id}-{region.epoch}"
    linked = linked_files(files, folder / "linked")
    size = sum(path.stat().st_size for path in everything(linked) if path.is_file())
    found = await asyncio.to_thread(baselines, linked, folder, False)
    shutil.rmtree(linked)
    clock = SystemClock()
    began = clock.mono_ms()
    started = await client.regions.add_copy(region.region_id, "benchmark")

    async def look() -> Look:
        return Look(await region_of(client), await client.procedures.get(started.id))

    await until_in_sync(look, clock)
    found[FETCH] = size / MIB * 1000 / (clock.mono_ms() - began)
    added = await client.procedures.wait(started.id, wait_s=END_S)
    node = str((added.result or {})["node"])
    removed = await client.regions.remove_copy(region.region_id, node, "benchmark", force=True)
    ended = await client.procedures.wait(removed.id, wait_s=END_S)
    assert ended.state == "succeeded", ended.error
    return found


@dataclass(frozen=True, slots=True)
class Look:
    """The region that gets a copy, and then the procedure that adds it."""

    region: RegionRouteBody
    procedure: ProcedureBody


async def until_in_sync(look: Callable[[], Awaitable[Look]], clock: Clock) -> None:
    """Looks until the copy is in the set. Raises the error with which its procedure ended, or
    AssertionError behind COPY_MS_MAX."""
    deadline_ms = clock.mono_ms() + COPY_MS_MAX
    while not are_in_sync((seen := await look()).region):
        if (fault := fault_of(seen.procedure)) is not None:
            raise fault
        assert clock.mono_ms() < deadline_ms, f"no copy, the procedure is at {seen.procedure.step}"
        await clock.sleep_ms(LOOK_MS)


def are_in_sync(region: RegionRouteBody) -> bool:
    """Whether the region has a third copy, and no learner."""
    return [copy.role for copy in region.copies] == [CopyRole.IN_SYNC] * 2


async def region_of(client: AsyncClient) -> RegionRouteBody:
    return (await client.tables.route(NAME)).regions[0]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=512, help="of rows in the region")
    asyncio.run(measure(parser.parse_args().mib))
