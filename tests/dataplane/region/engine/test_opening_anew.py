"""A region that begins anew in an empty root: nobody writes to the roots that it has left."""

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from metasrv_base.errors import Conflict, MetaError, Unavailable
from tests.dataplane.region.rig import SPEC, A, B, C, contents, order, place, write

OLD = {b"old": (1, None)}
NEW = {b"new": (2, None)}


@pytest.fixture(name="disk")
def disk_fixture() -> MemoryDisk:
    return MemoryDisk(MemoryStore())


@pytest.fixture(name="old")
def old_fixture(disk: MemoryDisk) -> Region:
    """At epoch 1, in A."""
    region = Region.create(place(disk), SPEC, epoch=1)
    write(region, "s-1", OLD)
    return region


def test_given_a_leader_that_goes_on_when_begun_anew_then_it_acknowledges_nothing(
    disk: MemoryDisk, old: Region
) -> None:
    anew = Region.create(place(disk, B), SPEC, epoch=2, replaces=[A])
    write(anew, "s-3", NEW)

    with pytest.raises(MetaError):
        write(old, "s-2", {b"late": (3, None)})
    assert contents(anew) == NEW
    assert contents(Region.open(place(disk, B), order(2))) == NEW


def test_given_a_region_begun_anew_when_the_old_epoch_opens_late_then_it_is_stale(
    disk: MemoryDisk, old: Region
) -> None:
    old.close()
    Region.create(place(disk, B), SPEC, epoch=2, replaces=[A])

    with pytest.raises(Conflict) as caught:
        Region.open(place(disk, A), order(1))

    assert caught.value.code == "stale-epoch"


def test_given_the_same_order_when_repeated_then_what_it_made_is_opened(
    disk: MemoryDisk, old: Region
) -> None:
    first = Region.create(place(disk, B), SPEC, epoch=2, replaces=[A])
    write(first, "s-3", NEW)

    again = Region.create(place(disk, B), SPEC, epoch=2, replaces=[A])

    assert contents(again) == NEW


def test_given_an_own_root_that_was_wiped_when_repeated_then_no_fence_has_a_number_twice(
    disk: MemoryDisk, old: Region
) -> None:
    Region.create(place(disk, B), SPEC, epoch=2, replaces=[A])
    disk.remove_tree(B)

    again = Region.create(place(disk, B), SPEC, epoch=2, replaces=[A])

    assert again.opening.number == 2


def test_given_roots_that_are_not_there_when_begun_anew_then_they_are_not_made(
    disk: MemoryDisk,
) -> None:
    anew = Region.create(place(disk, B), SPEC, epoch=3, replaces=[A, C])

    assert contents(anew) == {}
    assert not [path for path in disk.store.live if path.startswith((A, C))]


def test_given_a_newer_leader_when_begun_anew_late_then_it_is_stale(
    disk: MemoryDisk, old: Region
) -> None:
    Region.create(place(disk, C), SPEC, epoch=3, replaces=[A, B])

    with pytest.raises(Conflict):
        Region.create(place(disk, B), SPEC, epoch=2, replaces=[A])


def test_given_a_root_that_cannot_be_read_now_when_begun_anew_then_it_is_not_called_lost(
    disk: MemoryDisk, old: Region
) -> None:
    class Unreadable(MemoryDisk):
        def list(self, path: str) -> list[str]:
            if path == A:
                raise Unavailable(what="disk", name=path)
            return super().list(path)

    with pytest.raises(Unavailable) as caught:
        Region.create(place(Unreadable(disk.store), B), SPEC, epoch=2, replaces=[A])

    assert (caught.value.code, caught.value.facts["name"]) == ("not-ready", A)


@pytest.mark.parametrize("flushed", [False, True])
def test_given_a_statement_of_before_when_its_copy_comes_late_then_it_is_not_applied_again(
    disk: MemoryDisk, old: Region, flushed: bool
) -> None:
    """Also not by whoever opens the region later."""
    if flushed:
        old.maintenance.flush()
        write(old, "s-2", {b"log": (2, None)})
    anew = Region.create(place(disk, B), SPEC, epoch=2, replaces=[A])
    write(anew, "s-3", NEW)

    late = write(anew, "s-1", OLD)

    assert late.repeated
    assert contents(anew) == NEW
    opened = Region.open(place(disk, B), order(2))
    assert write(opened, "s-1", OLD).repeated
    assert contents(opened) == NEW


def test_given_a_crash_anywhere_when_begun_again_then_the_copy_is_not_applied() -> None:
    """Whatever of the first attempt is on the disk."""
    number, is_whole = 0, False
    while not is_whole:
        number += 1
        store = MemoryStore()
        write(Region.create(place(MemoryDisk(store)), SPEC, epoch=1), "s-1", OLD)
        try:
            Region.create(place(MemoryDisk(store, Dying(number)), B), SPEC, epoch=2, replaces=[A])
            is_whole = True
        except Killed:
            pass
        store.crash()

        anew = Region.create(place(MemoryDisk(store), B), SPEC, epoch=2, replaces=[A])

        assert write(anew, "s-1", OLD).repeated
        assert contents(anew) == {}
        assert number < 100
    assert number > 10


class Killed(Exception):
    """The process was killed."""


class Dying:
    """Kills at the operation of that number."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, operation: str, path: str) -> None:
        self._left -= 1
        if self._left == 0:
            raise Killed


@pytest.mark.parametrize("spoilt", ["gone", "damaged"])
def test_given_roots_whose_statements_nobody_knows_then_those_of_before_are_refused(
    disk: MemoryDisk, old: Region, spoilt: str
) -> None:
    at = place(disk, B)
    before_ms = at.clock.wall_ms()
    old.close()
    for path in [path for path in disk.store.live if path.startswith(f"{A}/")]:
        if spoilt == "gone":
            disk.remove(path)
        elif "/manifest" in path:
            disk.store.live[path].data[5] ^= 1
    anew = Region.create(at, SPEC, epoch=2, replaces=[A])

    with pytest.raises(Conflict) as caught:
        write(anew, "s-1", OLD, sent_ms=before_ms)

    assert (caught.value.code, caught.value.facts["is_forgotten"]) == ("statement-too-old", True)
    assert write(anew, "s-4", NEW, sent_ms=before_ms + 1).rows == 1


def test_given_a_region_that_replaces_nothing_then_it_has_forgotten_nothing(
    disk: MemoryDisk,
) -> None:
    at = place(disk, B)

    assert write(Region.create(at, SPEC, epoch=1), "s-1", NEW, sent_ms=at.clock.wall_ms()).rows == 1
