"""A region ten times what memory may hold is written, opened, read and scanned within bounds.

In a process of its own, whose resident memory is read from the kernel. Open times are printed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
MEMTABLE_BYTES = 8 << 20
CACHE_BYTES = 4 << 20
GROWTH_BYTES_MAX = 160 << 20
"""Memtables, cache, about 2 MiB for each of 40 files, and Arrow itself."""
AT_ONCE = {"MIMALLOC_PURGE_DELAY": "0"}
"""Freed memory goes back at once: otherwise it counts for longer the faster the machine is."""
PROGRAM = """
import json, random, resource, sys
from metasrv_base.clock import SystemClock
from metasrv_base.errors import MetaError
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.place import RegionLimits, RegionPlace
from dataplane.region.engine.region import Region
from tests.dataplane.region.rig import REGION_ID, SPEC, batch, header, order

root, rows, work = sys.argv[1], int(sys.argv[2]), sys.argv[3]
clock, noise = SystemClock(), random.Random(1)
limits = RegionLimits(memtable_bytes=int(sys.argv[4]))
place = RegionPlace(LocalDisk(), root, clock, limits, BlockCache(int(sys.argv[5])))

def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def key(number):
    return b"%016x" % (number * 0x9E3779B97F4A7C15 % 2**64)

def load(region):
    for start in range(0, rows, 1000):
        numbers = range(start, min(start + 1000, rows))
        part = {key(at): (at, noise.randbytes(100).decode("latin-1")) for at in numbers}
        for answer in region.writer.apply([(header(f"s-{start}"), batch(part))]):
            assert not isinstance(answer, MetaError), answer
        if region.maintenance.needs_flush():
            region.maintenance.flush()
    region.maintenance.flush()

def read(region):
    for at in range(0, rows, max(rows // 200, 1)):
        assert region.reader.get([key(at)]).num_rows == 1
    assert region.reader.digest().rows == rows

base = resident()
begun = clock.mono_ms()
region = Region.create(place, SPEC, 1) if work == "load" else Region.open(place, order(1))
open_ms = clock.mono_ms() - begun
(load if work == "load" else read)(region)
print(json.dumps({"growth": resident() - base, "bytes": region.stats().bytes, "open_ms": open_ms}))
"""


def run(root: Path, rows: int, work: str) -> dict[str, int]:
    arguments = [str(root), str(rows), work, str(MEMTABLE_BYTES), str(CACHE_BYTES)]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    environment = {**os.environ, **AT_ONCE}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_given_a_region_ten_times_its_memory_when_used_then_resident_memory_is_bounded(
    tmp_path: Path,
) -> None:
    opened = {}
    for rows in (10_000, 100_000, 1_000_000):
        root = tmp_path / str(rows)
        loaded = run(root, rows, "load")
        read = run(root, rows, "read")
        opened[rows] = read["open_ms"]
        print(f"{rows} rows: loaded {loaded}, read {read}")
        assert loaded["growth"] < GROWTH_BYTES_MAX
        assert read["growth"] < GROWTH_BYTES_MAX

    assert loaded["bytes"] > 10 * (MEMTABLE_BYTES + CACHE_BYTES)
    assert opened[1_000_000] < 2_000, "opening does not read the rows"
