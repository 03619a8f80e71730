"""An opening syncs whatever it seals: its writer may have died before it synced."""

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from tests.dataplane.region.rig import SPEC, A, B, contents, order, place, write

ACKNOWLEDGED = {b"a": (1, "x")}


class KilledError(Exception):
    """The process ends here; its machine goes on."""


def unsynced() -> MemoryStore:
    """The store of a leader that was killed between the append of a row and its sync."""
    medium = MemoryStore()
    dying: list[Region] = []

    def hook(operation: str, path: str) -> None:
        if dying and operation == "sync":
            raise KilledError(path)

    region = Region.create(place(MemoryDisk(medium, hook)), SPEC, epoch=1)
    write(region, "s-1", ACKNOWLEDGED)
    dying.append(region)
    with pytest.raises(KilledError):
        write(region, "s-2", {b"b": (2, "y")})
    return medium


@pytest.fixture
def store() -> MemoryStore:
    return unsynced()


def test_given_an_unsynced_tail_when_sealed_and_the_power_fails_then_the_region_opens(
    store: MemoryStore,
) -> None:
    served = contents(Region.open(place(MemoryDisk(store)), order(1)))

    store.crash()

    assert contents(Region.open(place(MemoryDisk(store)), order(1))) == served
    assert ACKNOWLEDGED.items() <= served.items()


def test_given_an_unsynced_tail_when_taken_over_and_the_power_fails_then_the_region_opens(
    store: MemoryStore,
) -> None:
    served = contents(Region.open(place(MemoryDisk(store), B), order(2, A)))

    store.crash()

    assert contents(Region.open(place(MemoryDisk(store), B), order(2, A))) == served
    assert ACKNOWLEDGED.items() <= served.items()
