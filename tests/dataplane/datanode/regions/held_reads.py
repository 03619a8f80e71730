"""`python -m tests.dataplane.datanode.regions.held_reads READ SHAPE`: what one read reserves, and
what it takes.

Prints as JSON, in bytes: `counted`, reserved at once and kept in the block cache; `taken`, the most
that Arrow and Python had; `resident`, the growth of the process, with what its allocators keep. The
read goes through the node's desk, over a region on a real disk.
"""

import asyncio
import json
import sys
import tempfile
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from dataplane.datanode.allocator import share_arenas
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.rows import RowService
from dataplane.datanode.regions.scan_slots import ReaderKind
from dataplane.datanode.regions.store import DiskStore
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.engine.file_ingest import entry_batch
from dataplane.region.engines.engine import ServedRegion
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.place import RegionLimits
from metasrv_base.clock import SystemClock
from metasrv_base.errors import MetaError
from metasrv_base.ids import RegionId, table_of
from metasrv_base.wire.node.batches import BatchHeader, GetRows, ScanRows
from metasrv_base.wire.node.orders import CreateRegion, LeaseGrant, RegionColumn
from serving.left_out import leave_out_pandas
from tests.dataplane.region.held_memory import GIB, memory_of, peaked, settled
from tests.dataplane.region.rig import REGION_ID

INDEX = 7
WARM = REGION_ID + 1
"""A small region that is read first, so that everything that is needed once has been made."""
CACHE_BYTES = 4 << 20
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Shape:
    files: int
    columns: int
    rows: int
    """Rows of each file; each file has rows of all ranges of keys."""
    text_bytes: int = 8
    in_memory: int = 0
    """Rows that are in no file."""
    is_indexed: bool = False

    @property
    def told(self) -> list[RegionColumn]:
        kinds = ["int64", "string", *["int64"] * (self.columns - 2)]
        return [RegionColumn(id=at, type=kind, nullable=at > 1) for at, kind in enumerate(kinds, 1)]


SHAPES = {
    "one-narrow": Shape(1, 2, 100_000),
    "many-narrow": Shape(16, 2, 40_000),
    "one-wide": Shape(1, 50, 16_000),
    "eight-wide": Shape(8, 50, 8_000),
    "large-rows": Shape(4, 2, 64, 200_000),
    "in-memory": Shape(1, 10, 1_000, in_memory=40_000),
    "small": Shape(2, 2, 100),
    "indexed": Shape(4, 10, 10_000, is_indexed=True),
    "indexed-large": Shape(2, 2, 100, 200_000, is_indexed=True),
}


def key_of(number: int) -> bytes:
    """In no order, as hashes are."""
    return b"%016x" % (number * 0x9E3779B97F4A7C15 % 2**64)


@dataclass
class Desk:
    rows: RowService
    regions: NodeRegionSet
    shape: Shape
    cache: BlockCache
    counted: int = 0

    def note(self) -> None:
        self.counted = max(self.counted, self.rows.read_bytes + self.cache.bytes)

    def fill(self, region_id: int, shape: Shape) -> None:
        owner = self.regions.serving(region_id).owner
        assert owner is not None
        for number in range(shape.files):
            write(owner.region, shape, range(number * shape.rows, (number + 1) * shape.rows))
            owner.region.maintenance.flush()
        first = shape.files * shape.rows
        write(owner.region, shape, range(first, first + shape.in_memory))

    async def read(self, region_id: int, read: "Read") -> None:
        await read(self, region_id)
        self.note()


Read = Callable[[Desk, int], Awaitable[None]]


def write(region: ServedRegion, shape: Shape, numbers: range) -> None:
    for start in range(numbers.start, numbers.stop, 1_000):
        some = range(start, min(start + 1_000, numbers.stop))
        keys, count = [key_of(at) for at in some], len(some)
        columns: dict[str, pa.Array] = {
            "_key": pa.array(keys, pa.binary()),
            "_op": pa.array([0] * count, pa.uint8()),
            "c1": pa.array(some, pa.int64()),
            "c2": pa.array([f"{at}".ljust(shape.text_bytes, "x") for at in some]),
        }
        for at in range(3, shape.columns + 1):
            columns[f"c{at}"] = pa.array([one * at * 7_919 for one in some], pa.int64())
        rows = pa.RecordBatch.from_pydict(columns)
        statements = [(header(region, f"s-{start}"), rows)]
        if shape.is_indexed:
            statements.append((header(region, f"e-{start}"), entries_of(keys)))
        for answer in region.writer.apply(statements):
            assert not isinstance(answer, MetaError), answer


def entries_of(keys: Sequence[bytes]) -> pa.RecordBatch:
    """In another order than the rows."""
    return entry_batch(INDEX, [(key[::-1], key) for key in keys])


def header(region: ServedRegion, statement: str) -> BatchHeader:
    return BatchHeader(
        table_id=table_of(RegionId(region.spec.region_id)),
        schema_version=1,
        epoch=1,
        statement_id=statement,
        maintains_indexes=True,
    )


def head_of(region_id: int) -> dict[str, Any]:
    return {"table_id": table_of(RegionId(region_id)), "schema_version": 1, "epoch": 1}


async def stream(desk: Desk, region_id: int) -> None:
    wanted = ScanRows(**head_of(region_id), limit=100_000)
    async for part in desk.rows.scan_arrow(region_id, wanted):
        assert part
        desk.note()


async def page(desk: Desk, region_id: int) -> None:
    wanted = ScanRows(**head_of(region_id), limit=100_000, bytes_max=4 << 20)
    async for part in desk.rows.scan_arrow(region_id, wanted):
        assert part
        desk.note()


async def values(desk: Desk, region_id: int) -> None:
    wanted = ScanRows(**head_of(region_id), limit=100_000, bytes_max=4 << 20, values_only=True)
    async for part in desk.rows.scan_values(region_id, wanted):
        assert part
        desk.note()


async def index(desk: Desk, region_id: int) -> None:
    wanted = ScanRows(**head_of(region_id), index=INDEX, limit=100_000, bytes_max=4 << 20)
    async for part in desk.rows.scan_arrow(region_id, wanted):
        assert part
        desk.note()


async def as_json(desk: Desk, region_id: int) -> None:
    wanted = ScanRows(**head_of(region_id), limit=10_000)
    with desk.rows.scanning(region_id, wanted, ReaderKind.JSON) as held:
        found = await desk.rows.scan_json(region_id, wanted, held)
        assert found.model_dump_json().encode()
        desk.note()


def some_keys(desk: Desk) -> list[str]:
    shape = desk.shape
    count = shape.files * shape.rows + shape.in_memory
    return [key_of(at).hex() for at in range(0, count, max(count // 4_000, 1))]


async def get(desk: Desk, region_id: int) -> None:
    wanted = GetRows(**head_of(region_id), keys=some_keys(desk), bytes_max=8 << 20)
    with desk.rows.reading_keys() as held:
        assert await desk.rows.get_arrow(region_id, wanted, held)
        desk.note()


async def get_json(desk: Desk, region_id: int) -> None:
    wanted = GetRows(**head_of(region_id), keys=some_keys(desk), bytes_max=1 << 20)
    with desk.rows.reading_keys() as held:
        found = await desk.rows.get_json(region_id, wanted, held)
        assert found.model_dump_json().encode()
        desk.note()


async def first_row(desk: Desk) -> None:
    """Footers and filters are in the block cache then, which counts them."""
    wanted = GetRows(**head_of(REGION_ID), keys=[key_of(0).hex()])
    with desk.rows.reading_keys() as held:
        assert await desk.rows.get_arrow(REGION_ID, wanted, held)


READS: dict[str, Read] = {
    one.__name__: one for one in (stream, page, values, index, as_json, get, get_json)
}


@asynccontextmanager
async def desk_over(
    folder: str, shape: Shape, disk: LocalDisk | None = None
) -> AsyncIterator[Desk]:
    clock, leases = SystemClock(), RegionLeases("i1")
    leases.sent(1, clock.mono_ms())
    cache = BlockCache(CACHE_BYTES)
    store = DiskStore(disk or LocalDisk(), clock, folder, RegionLimits(), cache)
    async with asyncio.TaskGroup() as group:
        regions = NodeRegionSet(store, leases, clock, group.create_task)
        for number, region_id in enumerate((REGION_ID, WARM), 1):
            create = CreateRegion(
                number=number,
                region_id=str(region_id),
                epoch=1,
                root=f"{folder}/regions/{region_id}",
                table_id=table_of(RegionId(region_id)),
                schema_version=1,
                schema_floor=1,
                columns=shape.told,
                indexes=[INDEX],
                key_columns=[1],
                lease=LeaseGrant(incarnation="i1", heartbeat=1, lease_ms=HOUR_MS),
            )
            await regions.carry_out(create)
            regions.renew_by(create)
        yield Desk(RowService(regions, GIB, GIB), regions, shape, cache)
        await regions.close_all()


async def measured(read: Read, shape: Shape) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        async with desk_over(folder, shape) as desk:
            desk.fill(WARM, replace(shape, files=1, rows=20, in_memory=0))
            await desk.read(WARM, read)
            desk.fill(REGION_ID, shape)
            await desk.read(WARM, read)
            await first_row(desk)
            desk.counted, cached = 0, desk.cache.bytes
            settled()
            pool = pa.proxy_memory_pool(pa.default_memory_pool())
            pa.set_memory_pool(pool)
            tracemalloc.start()
            before = peaked()
            await desk.read(REGION_ID, read)
            return {
                "counted": desk.counted - cached,
                "taken": (pool.max_memory() or 0) + tracemalloc.get_traced_memory()[1],
                "resident": memory_of("VmHWM") - before,
            }


if __name__ == "__main__":
    share_arenas()
    leave_out_pandas()
    print(json.dumps(asyncio.run(measured(READS[sys.argv[1]], SHAPES[sys.argv[2]]))))
