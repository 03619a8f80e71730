"""A region with an index, in memory, in files, reopened, and elsewhere."""

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from tests.dataplane.region.entries import (
    FIRST,
    new_region,
    write_mixed,
)
from tests.dataplane.region.rig import A, B, order, place


@pytest.fixture(params=["memory", "file", "reopened", "elsewhere"])
def region(request: pytest.FixtureRequest) -> Region:
    """Two rows with two entries each."""
    disk = MemoryDisk(MemoryStore())
    region = new_region(disk)
    write_mixed(region, "s-1", FIRST)
    if request.param == "file":
        region.maintenance.flush()
    elif request.param == "reopened":
        region = Region.open(place(disk), order(2))
    elif request.param == "elsewhere":
        region = Region.open(place(disk, B), order(2, A))
    return region
