"""Openers that die one after the other before the route announced them lose no acknowledged row.

The first leader has acknowledged rows in A. The second is stopped before any file operation of its
opening in B, the third before any of its opening in C; the fourth opens in D with the order that
the failover plan makes. Neither of the two was announced, so neither has acknowledged anything.
"""

import copy
from contextlib import suppress
from dataclasses import replace

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.place import OpenOrder
from metasrv_base.errors import Unavailable
from tests.dataplane.region.rig import SPEC, A, B, C, Contents, contents, order, place, write

D = "/disk/d/region"
SECOND = order(2, A)
THIRD = replace(order(3, A, B), unannounced=frozenset({B}))
FOURTH = replace(order(4, A, B, C), unannounced=frozenset({B, C}))
ROWS: Contents = {b"flushed": (0, None), b"logged": (0, None)}
THIRD_STRIDE = 5


class Killed(BaseException):
    """The process ends between two file operations."""


def made_region() -> MemoryStore:
    store = MemoryStore()
    region = Region.create(place(MemoryDisk(store)), SPEC, epoch=1)
    write(region, "flushed", {b"flushed": (0, None)})
    region.maintenance.flush()
    write(region, "logged", {b"logged": (0, None)})
    return store


MADE = made_region()


def opened_until(store: MemoryStore, root: str, how: OpenOrder, stop: int) -> int:
    """Opens the region in *root* until the process dies before operation *stop*; 0: never. Returns
    how many operations it had."""
    operations: list[str] = []

    def hook(operation: str, path: str) -> None:
        operations.append(operation)
        if len(operations) == stop:
            raise Killed

    with suppress(Killed):
        Region.open(place(MemoryDisk(store, hook), root), how)
    return len(operations)


def stops_of(root: str, how: OpenOrder, store: MemoryStore) -> range:
    """Before every operation, and behind the last."""
    return range(1, opened_until(copy.deepcopy(store), root, how, 0) + 2)


@pytest.mark.parametrize("keeps_disk", [True, False], ids=["disk stays", "disk is gone"])
def test_given_a_second_opener_that_dies_anywhere_when_a_third_opens_then_every_row_is_there(
    keeps_disk: bool,
) -> None:
    for stop in stops_of(B, SECOND, MADE):
        store = copy.deepcopy(MADE)
        opened_until(store, B, SECOND, stop)
        if not keeps_disk:
            MemoryDisk(store).remove_tree(B)

        region = Region.open(place(MemoryDisk(store), C), THIRD)

        assert contents(region) == ROWS, f"stopped before operation {stop}"
        assert region.manifest.borrowed_roots == (A,)


@pytest.mark.crash
@pytest.mark.parametrize("keeps_disks", [True, False], ids=["disks stay", "disks are gone"])
def test_given_a_second_and_a_third_that_die_anywhere_when_a_fourth_opens_then_every_row_is_there(
    keeps_disks: bool,
) -> None:
    for second_stop in stops_of(B, SECOND, MADE):
        met = copy.deepcopy(MADE)
        opened_until(met, B, SECOND, second_stop)
        every = stops_of(C, THIRD, met)
        for third_stop in every[second_stop % THIRD_STRIDE :: THIRD_STRIDE]:
            store = copy.deepcopy(met)
            opened_until(store, C, THIRD, third_stop)
            for root in (B, C) if not keeps_disks else ():
                MemoryDisk(store).remove_tree(root)

            region = Region.open(place(MemoryDisk(store), D), FOURTH)

            assert contents(region) == ROWS, f"stopped at {second_stop} and {third_stop}"


def test_given_an_order_without_unannounced_roots_when_opened_then_all_roots_are_read() -> None:
    """As an older leader gives it."""
    for stop in stops_of(B, SECOND, MADE):
        store = copy.deepcopy(MADE)
        opened_until(store, B, SECOND, stop)

        region = Region.open(place(MemoryDisk(store), C), order(3, A, B))

        assert contents(region) == ROWS, f"stopped before operation {stop}"


def test_given_an_announced_opener_when_its_root_is_gone_then_lost_until_it_is_back() -> None:
    store = copy.deepcopy(MADE)
    write(Region.open(place(MemoryDisk(store), B), SECOND), "s", {b"second": (2, None)})
    opened_until(store, C, order(3, A, B), 9)
    kept = {path: inode for path, inode in store.live.items() if path.startswith(B)}
    folders = {path: one for path, one in store.folders.items() if path.startswith(B)}
    MemoryDisk(store).remove_tree(B)
    fourth = replace(order(4, A, B, C), unannounced=frozenset({C}))

    with pytest.raises(Unavailable) as refusal:
        Region.open(place(MemoryDisk(store), D), fourth)

    assert (refusal.value.code, refusal.value.facts["root"]) == ("region-lost", B)
    store.live.update(kept)
    store.folders |= folders
    assert contents(Region.open(place(MemoryDisk(store), D), fourth)) == ROWS | {
        b"second": (2, None)
    }
