"""Any sync fails, the region is opened again and goes on; then the power is lost.

The device never has what the failed sync was to bring there, and no later sync tells of it.
"""

from itertools import count

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from metasrv_base.errors import MetaError
from tests.dataplane.region.power_loss import DEVICES, FailingSync
from tests.dataplane.region.rig import SPEC, Contents, contents, order, place, write


@pytest.mark.parametrize("device", DEVICES)
def test_given_any_sync_that_fails_when_opened_again_and_the_power_fails_then_nothing_is_lost(
    device: str,
) -> None:
    assert fail_each_sync(device) > 10


def fail_each_sync(device: str) -> int:
    """Returns how many syncs a life has."""
    for fails_at in count(1):
        if live_on(device, fails_at) < fails_at:
            return fails_at - 1
    raise AssertionError("a life ends")


def live_on(device: str, fails_at: int) -> int:
    """Four statements, each sent until it is acknowledged, and a flush. Returns how many syncs it
    took, with those that the failure has caused."""
    store, acknowledged = MemoryStore(), Contents()
    failing = FailingSync(store, fails_at)
    region: Region | None = None
    while len(acknowledged) < 4:
        number = len(acknowledged)
        key, row = f"k{number}".encode(), (number, "acknowledged")
        try:
            if region is None:
                region = _opened(failing.disk, is_made=number > 0)
            write(region, key.decode(), {key: row})
            acknowledged[key] = row
            if number == 1:
                region.maintenance.flush()
        except MetaError:
            assert failing.syncs >= fails_at, "nothing else fails"
            if region is not None:
                region.close()
            region = None
    store.crash(*DEVICES[device])

    after = Region.open(place(MemoryDisk(store)), order(1))
    assert contents(after) == acknowledged
    for key, kept in acknowledged.items():
        assert write(after, key.decode(), {key: kept}).repeated
    return failing.syncs


def _opened(disk: MemoryDisk, *, is_made: bool) -> Region:
    return Region.open(place(disk), order(1)) if is_made else Region.create(place(disk), SPEC, 1)
