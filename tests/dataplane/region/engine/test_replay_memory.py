"""Two hundred regions that replay their logs at once, with memory for few of them."""

import threading

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.memory.budget import MemoryBudget
from dataplane.region.place import RegionPlace
from tests.dataplane.region.rig import SPEC, contents, order, write
from tests.fakes.clock import FakeClock

REGIONS = 200
PATIENCE_S = 100
SEGMENTS = 3
ROW = "x" * 60_000
BUDGET = 4 << 20
"""All logs together have nine times as much, each less than REPLAY_BYTES_MIN."""


class Counted(MemoryBudget):
    """Remembers the most that was held at once."""

    peak = 0

    def _set(self, holder: int, size: int) -> None:
        super()._set(holder, size)
        self.peak = max(self.peak, self.bytes)

    def add_statements(self, size: int) -> None:
        super().add_statements(size)
        self.peak = max(self.peak, self.bytes)


def root_of(number: int) -> str:
    return f"/disk/{number}"


def rows_of(number: int) -> dict[bytes, tuple[int, str]]:
    return {b"%d-%d" % (number, at): (at, ROW) for at in range(SEGMENTS)}


@pytest.mark.slow
def test_given_200_regions_when_all_replay_with_little_memory_then_all_open_within_it() -> None:
    disk, clock = MemoryDisk(MemoryStore()), FakeClock()
    for number in range(REGIONS):
        region = Region.create(RegionPlace(disk, root_of(number), clock), SPEC, 1)
        for at, (key, row) in enumerate(rows_of(number).items()):
            write(region, f"s-{at}", {key: row})
            region.maintenance.close_log()
    budget, opened = Counted(BUDGET), dict[int, Region]()
    together = threading.Barrier(REGIONS)

    def replay(number: int) -> None:
        together.wait()
        place = RegionPlace(disk, root_of(number), clock, budget=budget)
        opened[number] = Region.open(place, order(1))

    threads = [
        threading.Thread(target=replay, args=(number,), daemon=True) for number in range(REGIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert len(opened) == REGIONS
    assert budget.peak <= BUDGET
    for number, region in opened.items():
        assert contents(region) == rows_of(number)
