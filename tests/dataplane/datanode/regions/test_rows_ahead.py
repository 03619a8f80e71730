"""A scan of values decodes its next part while a reader has the last one, and holds no more."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest

from dataplane.datanode.regions.scan_slots import ReaderKind
from dataplane.region.disk.local_disk import LocalDisk
from metasrv_base.rows.nodes import MORE
from metasrv_base.wire.node.batches import ScanRows
from tests.dataplane.datanode.regions.held_reads import Desk, Shape, desk_over, head_of
from tests.dataplane.region.rig import REGION_ID

SHAPE = Shape(files=1, columns=4, rows=12_000, text_bytes=200)
"""Three parts, each of one read: most of its columns are values."""
PATIENCE_S = 120


class GatedDisk(LocalDisk):
    """Counts its reads; those after `reads_max` wait for `gate`."""

    def __init__(self) -> None:
        super().__init__()
        self.reads, self.reads_max = 0, 1 << 30
        self.waiting, self.gate = Event(), Event()

    def read(self, path: str, offset: int, length: int) -> bytes:
        self.reads += 1
        if self.reads > self.reads_max:
            self.waiting.set()
            assert self.gate.wait(PATIENCE_S)
        return super().read(path, offset, length)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[tuple[Desk, GatedDisk]]:
    disk = GatedDisk()
    async with desk_over(str(tmp_path), SHAPE, disk) as desk:
        desk.fill(REGION_ID, SHAPE)
        await whole(scan(desk))  # its footer is in memory from now on
        yield desk, disk
        disk.gate.set()


def scan(desk: Desk, bytes_max: int | None = None) -> AsyncGenerator[bytes]:
    given = {**head_of(REGION_ID), "limit": 100_000, "bytes_max": bytes_max, "values_only": True}
    return desk.rows.scan_values(REGION_ID, ScanRows.model_validate(given))


async def whole(parts: AsyncGenerator[bytes]) -> pa.Table:
    return pa.ipc.open_stream(b"".join([part async for part in parts])).read_all()


async def test_given_a_part_with_its_reader_when_the_scan_goes_on_then_the_next_is_decoded(
    desk: tuple[Desk, GatedDisk],
) -> None:
    node, disk = desk
    disk.reads_max = disk.reads + 1
    parts = scan(node)

    first = await anext(parts)

    assert await asyncio.to_thread(disk.waiting.wait, PATIENCE_S)  # nobody asks for more
    assert disk.reads == disk.reads_max + 1
    disk.gate.set()
    rest = [part async for part in parts]
    assert len(rest) == 3  # two parts and the end
    assert pa.ipc.open_stream(b"".join([first, *rest])).read_all().num_rows == SHAPE.rows
    assert node.rows.read_bytes == 0


async def test_given_a_reader_that_leaves_when_a_part_is_decoded_then_its_memory_stays_held(
    desk: tuple[Desk, GatedDisk],
) -> None:
    node, disk = desk
    disk.reads_max = disk.reads + 1
    parts = scan(node, bytes_max=64 << 20)
    await anext(parts)
    assert await asyncio.to_thread(disk.waiting.wait, PATIENCE_S)
    held = node.rows.read_bytes

    await parts.aclose()

    assert node.rows.read_bytes == held > 0
    disk.gate.set()
    async with asyncio.timeout(PATIENCE_S):
        while node.rows.read_bytes:  # noqa: ASYNC110 (a thread gives it back)
            await asyncio.sleep(0)
    wanted = ScanRows.model_validate({**head_of(REGION_ID), "limit": 1})
    with node.rows.scanning(REGION_ID, wanted, ReaderKind.PAGE):  # its slot is free
        pass


async def test_given_a_page_that_is_full_when_it_ends_then_nothing_was_decoded_in_vain(
    desk: tuple[Desk, GatedDisk],
) -> None:
    node, disk = desk
    before = disk.reads

    page = [part async for part in scan(node, bytes_max=1)]

    assert disk.reads == before + 1
    with pa.ipc.open_stream(b"".join(page)) as reader:
        rows, last = reader.iter_batches_with_custom_metadata()
    assert 0 < rows.batch.num_rows < SHAPE.rows
    assert last.batch.num_rows == 0
    assert last.custom_metadata is not None
    assert MORE not in (reader.schema.metadata or {})
