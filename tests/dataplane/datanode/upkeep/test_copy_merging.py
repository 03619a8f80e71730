"""Merges of copies: beside the flushes of the node's copies, and never beside a look at files."""

import asyncio
import threading

import pytest

from dataplane.datanode.copies.copy_upkeep import CopyUpkeep
from dataplane.datanode.copies.followed import FollowedRegion
from dataplane.datanode.metrics import NodeMetrics
from dataplane.datanode.upkeep.copy_merging import CopyMerging
from dataplane.datanode.upkeep.merging import RETRY_MS
from dataplane.region.compaction.compaction import Merged
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.maintenance import RegionMaintenance
from dataplane.region.memory.budget import MemoryBudget
from metasrv_base.errors import Unavailable
from tests.dataplane.datanode.copies.fetch_bench import copies, open_order
from tests.dataplane.region.following.stream import copy_at, leader, promoted, sent
from tests.dataplane.region.rig import B, contents, write
from tests.fakes.clock import FakeClock


class Bench:
    """One copy of a region, with files that are to be merged."""

    def __init__(self) -> None:
        self.clock, self.disk = FakeClock(), MemoryDisk(MemoryStore())
        self.region, self.copy = leader(MemoryDisk(MemoryStore())), copy_at(self.disk)
        self.followed = FollowedRegion(self.copy, open_order(1, copies()), self.clock.mono_ms)
        self.metrics = NodeMetrics()
        self.merging = CopyMerging(lambda: [self.followed], self.clock, self.metrics)
        for number in range(1, 5):
            self.take(number)
            self.maintenance.flush()
        assert self.maintenance.is_merge_due()

    def take(self, number: int) -> None:
        """Takes one more row, which is common."""
        write(self.region, f"s-{number}", {f"k{number}".encode(): (number, "x")})
        self.copy.take(sent(self.region, number - 1, common=number))

    @property
    def maintenance(self) -> RegionMaintenance:
        maintenance = self.copy.maintenance
        assert maintenance is not None
        return maintenance

    @property
    def files(self) -> int:
        return len([path for path in self.disk.store.live if f"{B}/data/" in path])

    @property
    def counted(self) -> dict[tuple[str, str], float]:
        """The counted merges by role and outcome."""
        (merges,) = self.metrics.merges.collect()
        return {
            (sample.labels["role"], sample.labels["outcome"]): sample.value
            for sample in merges.samples
            if sample.name == "datanode_merges_total"
        }

    async def look_after(self) -> None:
        await CopyUpkeep(
            lambda: [self.followed], self.clock, MemoryBudget(), self.retire
        ).look_after()

    async def retire(self, copy: FollowedRegion) -> None:
        raise AssertionError("its files are there")


async def test_given_a_long_merge_of_a_copy_when_a_flush_is_due_then_it_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    began, goes_on, compact = threading.Event(), threading.Event(), bench.maintenance.compact

    def held() -> Merged | None:
        began.set()
        goes_on.wait()
        return compact()

    monkeypatch.setattr(bench.maintenance, "compact", held)
    async with asyncio.TaskGroup() as group:
        merge = group.create_task(bench.merging.merge_due())
        await asyncio.to_thread(began.wait)
        bench.take(5)
        bench.maintenance.freeze()

        await bench.look_after()

        assert not merge.done()
        assert not bench.maintenance.needs_flush()
        goes_on.set()
    assert not bench.maintenance.is_merge_due()
    assert promoted(bench.copy, 2) == contents(bench.region)


async def test_given_small_files_of_a_copy_when_merged_then_it_has_its_rows_in_one() -> None:
    bench = Bench()
    assert bench.files == 4

    await bench.merging.merge_due()

    assert bench.files == 1
    assert bench.counted == {("copy", "done"): 1}
    assert promoted(bench.copy, 2) == contents(bench.region)


async def test_given_no_memory_for_a_merge_of_a_copy_then_none_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    monkeypatch.setattr(bench.maintenance, "compact", lambda: None)

    await bench.merging.merge_due()

    assert bench.counted == {}


async def test_given_a_copy_in_doubt_when_a_merge_is_due_then_its_files_are_looked_at_first() -> (
    None
):
    bench = Bench()
    bench.followed.is_in_doubt = True

    await bench.merging.merge_due()
    assert bench.files == 4

    await bench.look_after()
    await bench.merging.merge_due()
    assert bench.files == 1


async def test_given_a_copy_in_doubt_when_its_files_are_looked_at_then_it_stays_so_until_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, doubts = Bench(), list[bool]()
    bench.followed.is_in_doubt = True
    monkeypatch.setattr(bench.copy, "look", lambda: doubts.append(bench.followed.is_in_doubt))

    assert not await bench.followed.is_lost()

    assert doubts == [True]
    assert not bench.followed.is_in_doubt


async def test_given_a_merge_that_fails_when_due_then_the_copy_rests_from_merges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, tries = Bench(), list[str]()

    def fail() -> None:
        tries.append("compact")
        raise [Unavailable("storage-full"), MemoryError()][len(tries) - 1]

    monkeypatch.setattr(bench.maintenance, "compact", fail)

    await bench.merging.merge_due()
    await bench.merging.merge_due()
    assert len(tries) == 1
    bench.clock.advance(RETRY_MS)
    await bench.merging.merge_due()
    await bench.merging.merge_due()
    assert len(tries) == 2
    assert bench.counted == {("copy", "failed"): 2}
