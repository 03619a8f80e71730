"""Floors through power loss and other leaders, before every file operation (P6)."""

import copy

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.place import OpenOrder
from metasrv_base.errors import MetaError
from tests.dataplane.region.manifests.floors import MARK, NEWS, code_at, new_region
from tests.dataplane.region.power_loss import DEVICES, FAST, Life, cut_short
from tests.dataplane.region.rig import A, B, C, contents, order, place, version_of
from tests.dataplane.region.schedule import interleave

NEVER = 0


def raise_and_write(life: Life) -> int | None:
    """Where the floor took hold, as far as it was said."""
    region = Region.open(place(life.disk), order(1))
    life.created = True
    held = region.set_schema(NEWS, MARK)
    life.floors.append(held)
    assert code_at(region, 2, "behind") == "done"
    life.acknowledged[b"behind"] = (0, None)
    region.maintenance.flush()
    return held


MADE = MemoryStore()
new_region(MemoryDisk(MADE))


@pytest.mark.parametrize(
    "device",
    [pytest.param(device, marks=pytest.mark.crash) for device in DEVICES if device != FAST]
    + [FAST],
)
@pytest.mark.slow
def test_given_power_loss_anywhere_when_a_floor_was_answered_then_it_stands_with_its_mark(
    device: str,
) -> None:
    lives, seen = 0, set()

    for life, store in cut_short(MADE, device, raise_and_write):
        lives += 1
        again = Region.open(place(MemoryDisk(store)), order(1))
        manifest = again.manifest
        assert {b"a", b"b", *life.acknowledged} <= contents(again).keys()
        assert manifest.schema_floor == (2 if life.floors else manifest.schema_floor)
        assert bool(manifest.marks) == (manifest.schema_floor == 2), "both or neither"
        if manifest.marks:
            assert again.set_schema(NEWS, MARK) == manifest.floor_version == version_of(again, b"b")
        seen.add((manifest.schema_floor, bool(life.floors)))

    assert seen == {(0, False), (2, False), (2, True)}
    assert lives >= 30


class Raiser:
    """A leader that writes, raises the floor, and writes; it stops when it is refused."""

    def __init__(self, root: str, how: OpenOrder) -> None:
        self.root, self.how = root, how
        self.floor = 0
        self.old_rows: list[bytes] = []

    def run(self, disk: MemoryDisk) -> None:
        try:
            region = Region.open(place(disk, self.root), self.how)
            self._write_old(region, "first")
            region.set_schema(NEWS)
            self.floor = 2
            assert not self._write_old(region, "second")
        except MetaError:
            return

    def _write_old(self, region: Region, name: str) -> bool:
        is_done = code_at(region, 1, f"{name}-{self.how.epoch}") == "done"
        if is_done:
            self.old_rows.append(f"{name}-{self.how.epoch}".encode())
        return is_done


CASES = {
    "in place": ((A, order(2)), (A, order(3)), (A, order(4))),
    "elsewhere": ((A, order(2)), (B, order(3, A)), (C, order(4, A, B))),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_given_another_leader_anywhere_when_a_floor_was_answered_then_every_later_one_has_it(
    case: str,
) -> None:
    (old_at, new_at, third_at), stop, seen = CASES[case], 0, set()

    while True:
        stop += 1
        old, new = Raiser(*old_at), Raiser(*new_at)
        one, _ = interleave(store := copy.deepcopy(MADE), old.run, new.run, (stop, NEVER))
        third = Region.open(place(MemoryDisk(store), third_at[0]), third_at[1])
        assert new.floor == third.schema_floor == 2
        assert {*old.old_rows, *new.old_rows} <= contents(third).keys()
        assert old.floor == 0 or not new.old_rows, "what was answered binds the next leader"
        seen.add(old.floor)
        if stop > len(one.operations):
            break

    assert seen == {0, 2}
