"""`python -m tests.dataplane.region.held_memory HOLDER`: what one kind of holder counts, and what
it takes.

Prints both, in bytes, as JSON. In a process of its own, whose resident memory is the kernel's word:
for what stays, the growth; for what passes, the peak.
"""

import gc
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from dataplane.datanode.allocator import share_arenas
from dataplane.region.compaction.compaction import Compaction
from dataplane.region.compaction.rewrite import merge_bytes, write_compacted
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.engine.region import Region
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.files.file_reader import FileReader
from dataplane.region.files.file_writer import FileTarget, row_groups, write_rows, writing_bytes
from dataplane.region.files.footer import Footer, read_footer
from dataplane.region.format.columns import PUT, ColumnDef, RegionSpec, file_schema
from dataplane.region.format.names import Numbered
from dataplane.region.manifests.manifest import FileEntry
from dataplane.region.memory.budget import MemoryBudget
from dataplane.region.place import OpenOrder, RegionPlace
from metasrv_base.clock import SystemClock
from metasrv_base.errors import MetaError
from serving.left_out import leave_out_pandas
from tests.dataplane.region.rig import REGION_ID, header

ROWS = 40_000
WARM = 5_000
"""By then everything that is needed once has been made."""
COLUMNS = tuple(ColumnDef(id=at, type="int64", nullable=True) for at in range(1, 51))
GIB = 1 << 30
TEXT = ColumnDef(id=51, type="string", nullable=True)
LARGE_BYTES, LARGE_ROWS, LARGE_PARTS = 100_000, 100, 20
"""Rows of a file with 400 row groups of 5."""
LARGE_COLUMNS = (*COLUMNS, TEXT)
MERGED = 2
"""Files that are merged."""


def memory_of(name: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.partition(name + ":")[2].split()[0]) << 10


def settled() -> int:
    """Resident, without what was let go."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    return memory_of("VmRSS")


def peaked() -> int:
    before = settled()
    Path("/proc/self/clear_refs").write_text("5")
    return before


class Bench:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.cache, self.budget = BlockCache(GIB), MemoryBudget(GIB)
        self.place = RegionPlace(
            LocalDisk(), f"{folder}/r", SystemClock(), cache=self.cache, budget=self.budget
        )
        spec = RegionSpec(region_id=REGION_ID, columns=COLUMNS)
        self.region = Region.create(self.place, spec, 1)

    def write(self, first: int, rows: int, group: int) -> None:
        """In statements of *group* rows, 64 to a sync."""
        starts = iter(range(first, first + rows, group))
        while some := [at for _, at in zip(range(64), starts, strict=False)]:
            batches = [(header(f"s-{at}"), batch(range(at, at + group))) for at in some]
            for answer in self.region.writer.apply(batches):
                assert not isinstance(answer, MetaError), answer

    def files(self, count: int) -> None:
        """With rows of all keys in each."""
        for number in range(count):
            self.write(number * ROWS, ROWS, 1_000)
            self.region.maintenance.flush()

    def readers(self) -> Iterator[FileReader]:
        return (FileReader(self.place.files, one) for one in self.region.manifest.files)


def batch(numbers: range) -> pa.RecordBatch:
    keys = [b"%016x" % (at * 0x9E3779B97F4A7C15 % 2**64) for at in numbers]
    op = pa.array([0] * len(keys), pa.uint8())
    values = {f"c{one.id}": pa.array(numbers, pa.int64()) for one in COLUMNS}
    return pa.RecordBatch.from_pydict({"_key": pa.array(keys, pa.binary()), "_op": op, **values})


def memtable(bench: Bench) -> tuple[int, int]:
    bench.write(0, WARM, 1_000)
    counted, before = bench.budget.bytes, settled()
    bench.write(WARM, ROWS, 1_000)
    return bench.budget.bytes - counted, settled() - before


def sorted_copy(bench: Bench) -> tuple[int, int]:
    bench.write(0, WARM, 1_000)
    for _ in bench.region.reader.scan():
        pass
    bench.write(WARM, ROWS, 1_000)
    counted, before = bench.budget.bytes, settled()
    for _ in bench.region.reader.scan():
        pass
    return bench.budget.bytes - counted, settled() - before


def blocks(bench: Bench) -> tuple[int, int]:
    bench.files(2)
    before = settled()
    for at in range(0, 2 * ROWS, 200):
        assert bench.region.reader.get(
            [batch(range(at, at + 1)).column("_key")[0].as_py()]
        ).num_rows
    return bench.cache.bytes, settled() - before


def footers(bench: Bench) -> tuple[int, int]:
    bench.files(2)
    held: list[Footer] = []

    def read() -> None:
        disk = bench.place.disk
        held.extend(read_footer(disk, one.path, one.entry) for one in bench.readers())

    read()
    before = settled()
    held.clear()
    for _ in range(40):
        read()
    return sum(one.nbytes for one in held), settled() - before


def replay(bench: Bench) -> tuple[int, int]:
    bench.write(0, ROWS // 4, 1)
    bench.region.close()
    held = [0]

    class Watched(MemoryBudget):
        def _set(self, holder: int, size: int) -> None:
            super()._set(holder, size)
            held.append(self.bytes)

    place = RegionPlace(LocalDisk(), bench.place.root, SystemClock(), budget=Watched(GIB))
    before = peaked()
    region = Region.open(place, OpenOrder(REGION_ID, 1))
    assert region.stats().rows == ROWS // 4
    return max(held), memory_of("VmHWM") - before


class LargeFiles:
    """Writes files of many row groups: large rows, so that there are few of them."""

    def __init__(self, place: RegionPlace) -> None:
        self._place = place
        self._schema = file_schema(LARGE_COLUMNS)
        self._text = pa.array(["x" * LARGE_BYTES] * LARGE_ROWS)

    def write(self, name: str, parts: int, version: int = 1) -> FileEntry:
        tables = (self._part(at * LARGE_ROWS, version) for at in range(parts))
        target = FileTarget(self._place.disk, self._place.root, name, LARGE_COLUMNS)
        return write_rows(target, tables)

    def _part(self, first: int, version: int) -> pa.Table:
        numbers = range(first, first + LARGE_ROWS)
        keys, versions = pa.array([b"%016d" % at for at in numbers]), [version] * LARGE_ROWS
        values = [pa.array(numbers, pa.int64())] * len(COLUMNS)
        own = [keys, versions, [PUT] * LARGE_ROWS]
        return pa.table([*own, *values, self._text], schema=self._schema)


def written_file(bench: Bench) -> tuple[int, int]:
    files = LargeFiles(bench.place)
    files.write("warm", 2)
    before = peaked()
    entry = files.write("large", LARGE_PARTS)
    taken = memory_of("VmHWM") - before
    groups = row_groups(entry.rows, entry.rows * LARGE_BYTES)
    return writing_bytes(entry.rows, len(LARGE_COLUMNS), groups), taken


def merge(bench: Bench) -> tuple[int, int]:
    """Merges files whose rows have several times the row groups of one output."""
    large, uncached = LargeFiles(bench.place), replace(bench.place, cache=BlockCache(0))
    names = (Numbered(1, 1, at) for at in range(1, GIB))

    def merge_files(name: str, parts: int) -> tuple[int, int]:
        files = [large.write(f"{name}-{at}", parts, at) for at in range(MERGED)]
        plan = Compaction(tuple((file,) for file in files), tuple(range(MERGED)), False)
        counted, before = merge_bytes(uncached, LARGE_COLUMNS, plan), peaked()
        outputs = write_compacted(uncached, LARGE_COLUMNS, plan, lambda: next(names), lambda: None)
        assert (len(outputs) > 1) == (parts > 2)
        return counted, memory_of("VmHWM") - before

    merge_files("warm", 2)
    return merge_files("large", LARGE_PARTS // 2)


HOLDERS: dict[str, Callable[[Bench], tuple[int, int]]] = {
    one.__name__: one
    for one in (memtable, sorted_copy, blocks, footers, replay, written_file, merge)
}


if __name__ == "__main__":
    share_arenas()
    leave_out_pandas()
    with tempfile.TemporaryDirectory() as folder:
        settled()
        counted, taken = HOLDERS[sys.argv[1]](Bench(folder))
        print(json.dumps({"counted": counted, "taken": taken}))
