"""Merging on a node: one region at a time, most files first, and patience after a failure."""

import pytest

from dataplane.datanode.metrics import NodeMetrics
from dataplane.datanode.upkeep.merging import RETRY_MS, Merging
from metasrv_base.errors import Unavailable
from tests.dataplane.datanode.upkeep.bench import Bench, bench

__all__ = ["bench"]  # the fixture


async def four_files(bench: Bench) -> None:
    for number in range(4):
        await bench.write(f"s-{number}")
        bench.owner.region.maintenance.flush()


async def test_given_small_files_when_merged_then_one_is_left_and_nothing_is_due(
    bench: Bench,
) -> None:
    await four_files(bench)
    merging = Merging(bench.regions, bench.clock, NodeMetrics())

    assert await merging.merge_next()
    assert not await merging.merge_next()

    assert len(bench.names("data/")) == 1
    assert bench.owner.region.reader.digest().rows == 4


async def test_given_merge_debt_when_written_then_writes_stall_until_it_is_paid(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dataplane.region.engine.region.FILES_MAX", 4)
    await four_files(bench)

    for _ in range(2):
        with pytest.raises(Unavailable) as refusal:
            await bench.write("stalled")
        assert refusal.value.facts["files"] == 4
    assert bench.owner.region.reader.digest().rows == 4, "reads go on"

    assert await Merging(bench.regions, bench.clock, NodeMetrics()).merge_next()
    await bench.write("stalled")
    assert bench.owner.region.reader.digest().rows == 5


async def test_given_a_scan_when_files_were_merged_then_upkeep_removes_them_after_it(
    bench: Bench,
) -> None:
    await four_files(bench)
    scan = bench.owner.region.reader.scan()
    next(scan)
    await Merging(bench.regions, bench.clock, NodeMetrics()).merge_next()
    await bench.upkeep.look_after()
    assert len(bench.names("data/")) == 5

    assert sum(part.num_rows for part in scan) == 3
    await bench.upkeep.look_after()

    assert len(bench.names("data/")) == 1


async def test_given_a_merge_that_fails_when_due_then_it_waits_and_the_region_serves(
    bench: Bench,
) -> None:
    await four_files(bench)
    path = bench.names("data/")[0]
    bench.store.live[path].data[50] ^= 1
    merging = Merging(bench.regions, bench.clock, NodeMetrics())

    assert await merging.merge_next()
    assert not await merging.merge_next(), "not again at once"
    await bench.write("goes on")

    bench.store.live[path].data[50] ^= 1
    bench.clock.advance(RETRY_MS)
    assert await merging.merge_next()
    assert bench.owner.region.reader.digest().rows == 5
