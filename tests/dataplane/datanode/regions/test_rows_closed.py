"""A scan that ends before its rows do gives its files back at once, also while its error is kept.

Else the garbage collector closes it, at any time and in any thread.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from dataplane.datanode.regions.scan_slots import ReaderKind
from dataplane.region.engines.engine import ServedRegion
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.node.batches import ScanRows
from tests.dataplane.datanode.regions.held_reads import Desk, Shape, desk_over, head_of
from tests.dataplane.region.rig import REGION_ID

SHAPE = Shape(files=12, columns=2, rows=1_000, text_bytes=2_000)
"""Two MB in each file: a scan has several parts, and a merge something to do."""

PATIENCE_S = 120
Scan = Callable[[Desk], AsyncGenerator[bytes]]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_over(str(tmp_path), SHAPE) as desk:
        desk.fill(REGION_ID, SHAPE)
        yield desk


def region_of(desk: Desk) -> ServedRegion:
    owner = desk.regions.serving(REGION_ID).owner
    assert owner is not None
    return owner.region


def merged(desk: Desk) -> None:
    """The files of a scan that has begun are taken out of the region, and kept for it."""
    maintenance = region_of(desk).maintenance
    assert maintenance.compact() is not None
    assert maintenance.sweep() == 0, "they are still read"


def arrow(desk: Desk, bytes_max: int | None = None) -> AsyncGenerator[bytes]:
    given = {**head_of(REGION_ID), "limit": 100_000, "bytes_max": bytes_max}
    return desk.rows.scan_arrow(REGION_ID, ScanRows.model_validate(given))


def values(desk: Desk) -> AsyncGenerator[bytes]:
    given = {**head_of(REGION_ID), "limit": 100_000, "values_only": True}
    return desk.rows.scan_values(REGION_ID, ScanRows.model_validate(given))


async def rest_of(parts: AsyncGenerator[bytes]) -> list[bytes]:
    return [part async for part in parts]


@pytest.mark.parametrize("scan", [arrow, values])
async def test_given_a_lease_that_ends_when_a_scan_is_refused_then_its_files_are_free(
    desk: Desk, scan: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = scan(desk)
    await anext(parts)
    merged(desk)
    monkeypatch.setattr(desk.regions._rights, "has_lease", lambda region_id, epoch: False)

    with pytest.raises(MetaError) as refused:
        await rest_of(parts)

    assert refused.value.__traceback__ is not None
    assert region_of(desk).maintenance.sweep() > 0


@pytest.mark.parametrize("scan", [arrow, values])
async def test_given_a_reader_that_leaves_when_its_scan_is_closed_then_its_files_are_free(
    desk: Desk, scan: Scan
) -> None:
    parts = scan(desk)
    await anext(parts)
    merged(desk)

    await parts.aclose()

    async with asyncio.timeout(PATIENCE_S):
        while desk.rows.read_bytes:  # noqa: ASYNC110 (a thread has the next part in work)
            await asyncio.sleep(0)
    assert region_of(desk).maintenance.sweep() > 0


async def test_given_a_page_that_is_full_when_a_scan_ends_then_its_files_are_free(
    desk: Desk,
) -> None:
    parts = arrow(desk, bytes_max=1)
    await anext(parts)
    merged(desk)

    assert await rest_of(parts)

    assert region_of(desk).maintenance.sweep() > 0


async def test_given_no_memory_when_a_json_scan_is_refused_then_its_files_are_free(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ScanRows.model_validate({**head_of(REGION_ID), "limit": 10_000})
    kept: list[MetaError] = []
    with desk.rows.scanning(REGION_ID, wanted, ReaderKind.JSON) as held:
        grow, calls = held.grow, 0

        def full(size: int) -> None:
            nonlocal calls
            calls += 1
            if calls > 1:  # the scan itself has its memory
                merged(desk)
                raise Unavailable(what="the server", reason="its memory is full")
            grow(size)

        monkeypatch.setattr(held, "grow", full)
        with suppress(Unavailable):
            try:
                await desk.rows.scan_json(REGION_ID, wanted, held)
            except Unavailable as error:
                kept.append(error)
                raise

    assert kept
    assert region_of(desk).maintenance.sweep() > 0
