"""The takeover rules on the real code: two leaders, stopped between any two file operations (G31).

As `prototypes/fence_model.py`, but every action is a real one. A leader opens, writes, flushes and
writes again; another opens meanwhile: in place, from another root, or as a second opening of the
same epoch. Then a third opens, and everything that either was told is in must be there.
"""

import copy
from dataclasses import dataclass, field

import pytest
from _pytest.mark import ParameterSet

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.format.names import Opening
from dataplane.region.place import OpenOrder
from metasrv_base.errors import Conflict, MetaError, Unavailable, Unknown
from tests.dataplane.region.rig import (
    SPEC,
    A,
    B,
    C,
    Contents,
    Row,
    contents,
    order,
    place,
    version_of,
    write,
)
from tests.dataplane.region.schedule import interleave
from tests.dataplane.region.takeover_rows import NEVER, UNFLUSHED

SHARED = b"shared"
STRIDES = 4, 53  # 1, 1 runs all 29,706 cells, in 8 minutes: also give pytest --timeout=0
NEVER_OPENED = Opening(0, 0)


@dataclass
class Leader:
    """Opens a region and works on it until it is refused; remembers what it was told."""

    name: str
    root: str
    how: OpenOrder
    flushes: bool = True
    opening: Opening = NEVER_OPENED
    acknowledged: Contents = field(default_factory=dict)
    last_read: Contents | None = None
    refused: MetaError | None = None

    def run(self, disk: MemoryDisk) -> None:
        try:
            region = Region.open(place(disk, self.root), self.how)
            self.opening = region.opening
            self._write(region, f"{self.name}-1".encode(), (1, self.name))
            self._write(region, SHARED, (2, self.name))
            if self.flushes:
                region.maintenance.flush()
            self._write(region, f"{self.name}-2".encode(), (3, self.name))
            self.last_read = contents(region)
        except (Conflict, Unavailable, Unknown) as refusal:
            self.refused = refusal

    def _write(self, region: Region, key: bytes, row: Row) -> None:
        """On what it reads: never over what it has not seen."""
        write(region, f"{self.name} {key!r}", {key: row}, {key: version_of(region, key)})
        self.acknowledged[key] = row


def made_region() -> MemoryStore:
    store = MemoryStore()
    region = Region.create(place(MemoryDisk(store)), SPEC, epoch=1)
    write(region, "flushed", {b"flushed": (0, None)})
    region.maintenance.flush()
    write(region, "logged", {b"logged": (0, None)})
    return store


MADE = made_region()
BEFORE: Contents = {b"flushed": (0, None), b"logged": (0, None)}
Where = tuple[str, OpenOrder]
CASES: dict[str, tuple[Where, Where, Where]] = {
    "in place": ((A, order(2)), (A, order(3)), (A, order(4))),
    "opened twice": ((A, order(2)), (A, order(2)), (A, order(2))),
    "elsewhere": ((A, order(2)), (B, order(3, A)), (B, order(4, A))),
    "elsewhere twice": ((A, order(2)), (B, order(3, A)), (C, order(4, A, B))),
    "both elsewhere": ((B, order(2, A)), (C, order(3, A, B)), (C, order(4, A, B))),
    "both elsewhere, one place": ((B, order(2, A)), (B, order(2, A)), (B, order(3, A))),
    UNFLUSHED + "in place": ((A, order(2)), (A, order(3)), (A, order(4))),
    UNFLUSHED + "elsewhere": ((A, order(2)), (B, order(3, A)), (C, order(4, A, B))),
    "there and back": ((B, order(2, A)), (A, order(3, A, B)), (C, order(4, A, B))),
}
FAST = ("in place", "elsewhere twice", UNFLUSHED + "elsewhere")


def crash(case: str) -> ParameterSet:
    return pytest.param(case, marks=pytest.mark.crash)


def run_case(case: str, stops: tuple[int, int]) -> tuple[int, int]:
    """Returns how many operations the two had."""
    store = copy.deepcopy(MADE)
    (old_at, new_at, third_at) = CASES[case]
    flushes = not case.startswith(UNFLUSHED)
    old, new = Leader("old", *old_at, flushes), Leader("new", *new_at, flushes)

    one, two = interleave(store, old.run, new.run, stops)
    third = contents(Region.open(place(MemoryDisk(store), third_at[0]), third_at[1]))

    check(old, new, third)
    assert old.refused is None or isinstance(old.refused, (Conflict, Unknown))
    if new.how.epoch > old.how.epoch:
        assert new.refused is None, "nobody has a higher epoch"
    return len(one.operations), len(two.operations)


def check(old: Leader, new: Leader, third: Contents) -> None:
    lower, higher = sorted((old, new), key=lambda leader: leader.opening)
    expected = BEFORE | lower.acknowledged | higher.acknowledged

    for key, row in expected.items():
        if key == SHARED and SHARED not in higher.acknowledged:
            assert third.get(key) in ((2, "old"), (2, "new"))
        else:
            assert third.get(key) == row, f"{key!r} was acknowledged as {row}"
    if higher.last_read is not None:
        for key, row in lower.acknowledged.items():
            assert key == SHARED or higher.last_read.get(key) == row, "the successor must read it"


@pytest.mark.slow
@pytest.mark.parametrize("case", [case if case in FAST else crash(case) for case in CASES])
def test_given_two_leaders_when_the_old_one_stops_anywhere_then_nothing_acknowledged_is_lost(
    case: str,
) -> None:
    operations, _ = run_case(case, (NEVER, NEVER))

    for stop in range(1, operations + 1):
        run_case(case, (stop, NEVER))


@pytest.mark.slow
def test_given_a_leader_that_makes_its_root_while_a_newer_opens_then_it_is_no_lost_one() -> None:
    """It begins between the newer one's first look and its fences."""
    for new_stop in range(1, 21):
        run_case("both elsewhere", (1, new_stop))


@pytest.mark.crash
@pytest.mark.parametrize("case", CASES)
def test_given_two_leaders_when_both_stop_anywhere_then_nothing_acknowledged_is_lost(
    case: str,
) -> None:
    old_operations, _ = run_case(case, (NEVER, NEVER))
    cells = 0

    of_old, of_new = STRIDES
    for old_stop in range(1, old_operations + 1, of_old):
        _, new_operations = run_case(case, (old_stop, NEVER))
        for new_stop in range(1 + 13 * old_stop % of_new, new_operations + 1, of_new):
            run_case(case, (old_stop, new_stop))
            cells += 1

    print(f"{case}: {cells} cells")
    assert cells > 1300 / of_old / of_new
