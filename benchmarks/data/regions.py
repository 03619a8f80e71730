"""`benchmarks.data.regions`: opening, reading and scanning a region, by its number of rows.

Rows of 124 bytes that do not compress, in random order of key; memtable 8 MiB, block cache 4 MiB,
merged as a node does. Each measurement is a process of its own; open times are medians of five
openings, the first of them cold for the process and warm for the file system. Opening looks at
manifest and file sizes, and replays what was not flushed: here nothing, then one memtable.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.engine.region import Region
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.format.columns import ColumnDef, RegionSpec
from dataplane.region.place import OpenOrder, RegionLimits, RegionPlace
from metasrv_base.clock import SystemClock
from metasrv_base.wire.node.batches import BatchHeader

REGION_ID = 1024 << 32
SPEC = RegionSpec(region_id=REGION_ID, columns=(ColumnDef(id=1, type="binary", nullable=False),))
LIMITS = RegionLimits(memtable_bytes=8 << 20)
CACHE_BYTES = 4 << 20
BATCH_ROWS = 1_000
OPENINGS = 5
POINTS = 200


class CountingDisk(LocalDisk):
    """A local disk that counts its reads and the bytes read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.bytes_read = 0

    def read(self, path: str, offset: int, length: int) -> bytes:
        data = super().read(path, offset, length)
        self.reads += 1
        self.bytes_read += len(data)
        return data


def place(root: str, disk: LocalDisk | None = None) -> RegionPlace:
    disk = disk or LocalDisk()
    return RegionPlace(disk, root, SystemClock(), LIMITS, BlockCache(CACHE_BYTES))


def key(number: int) -> bytes:
    return b"%016x" % (number * 0x9E3779B97F4A7C15 % 2**64)


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    noise = random.Random(1)
    for start in range(0, rows, BATCH_ROWS):
        numbers = range(start, min(start + BATCH_ROWS, rows))
        yield pa.RecordBatch.from_pydict(
            {
                "_key": pa.array(map(key, numbers), pa.binary()),
                "_op": pa.array([0] * len(numbers), pa.uint8()),
                "c1": pa.array([noise.randbytes(100) for _ in numbers], pa.binary()),
            }
        )


def load(root: str, rows: int) -> dict[str, float]:
    clock, region = SystemClock(), Region.create(place(root), SPEC, 1)
    begun, merged_ms = clock.mono_ms(), 0
    for number, batch in enumerate(batches(rows)):
        header = BatchHeader(table_id=1024, schema_version=1, epoch=1, statement_id=f"s-{number}")
        region.writer.apply([(header, batch)])
        if region.maintenance.needs_flush():
            region.maintenance.flush()
            at = clock.mono_ms()
            while region.maintenance.compact():
                pass
            merged_ms += clock.mono_ms() - at
    region.close()
    return {"load_s": (clock.mono_ms() - begun) / 1000, "merged_s": merged_ms / 1000}


def read(root: str, rows: int) -> dict[str, float]:
    clock, base, disk = SystemClock(), resident_mib(), CountingDisk()
    opened: list[int] = []
    for _ in range(OPENINGS):
        begun = clock.mono_ms()
        region = Region.open(place(root, disk), OpenOrder(REGION_ID, 1))
        opened.append(clock.mono_ms() - begun)
    begun, disk.reads, disk.bytes_read = clock.mono_ms(), 0, 0
    step = max(rows // POINTS, 1)
    found = sum(region.reader.get([key(at)]).num_rows for at in range(0, rows, step))
    points_ms = (clock.mono_ms() - begun) / found
    point_reads, point_kib = disk.reads / found, disk.bytes_read / found / 1024
    begun = clock.mono_ms()
    scanned = sum(part.num_rows for part in region.reader.scan())
    assert scanned == rows
    return {
        "open_ms": statistics.median(opened),
        "point_ms": points_ms,
        "point_reads": point_reads,
        "point_kib": point_kib,
        "scan_rows_per_s": scanned / max((clock.mono_ms() - begun) / 1000, 0.001),
        "files": region.stats().files,
        "mib": region.stats().bytes / (1 << 20),
        "resident_growth_mib": resident_mib() - base,
    }


def resident_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_a_process(work: str, root: Path, rows: int) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.data.regions",
        "--work",
        work,
        str(root),
        str(rows),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    said: dict[str, float] = json.loads(done.stdout)
    return said


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        for rows in (10_000, 100_000, 1_000_000):
            root = Path(folder) / str(rows)
            facts = in_a_process("load", root, rows) | in_a_process("read", root, rows)
            print(f"{rows:>9,} rows: " + ", ".join(f"{k} {v:,.1f}" for k, v in facts.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", nargs=3, metavar=("WHAT", "ROOT", "ROWS"))
    asked = parser.parse_args().work
    if asked is None:
        main()
    else:
        print(json.dumps({"load": load, "read": read}[asked[0]](asked[1], int(asked[2]))))
