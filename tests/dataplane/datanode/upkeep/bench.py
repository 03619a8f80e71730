"""The regions of a node in memory, with a budget that a test sets."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.region_owner import RegionOwner
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.store import DiskStore
from dataplane.datanode.upkeep.upkeep import Upkeep
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.place import RegionLimits
from metasrv_base.wire.node.orders import (
    CreateRegion,
    LeaseGrant,
    RegionColumn,
)
from tests.dataplane.region.rig import REGION_ID, batch, header
from tests.fakes.clock import FakeClock

ROOT = f"/n/regions/{REGION_ID}"


FLUSH_AGE_MS = 5_000


@dataclass
class Bench:
    store: MemoryStore
    clock: FakeClock
    regions: NodeRegionSet
    upkeep: Upkeep

    @property
    def owner(self) -> RegionOwner:
        owner = self.regions.serving(REGION_ID).owner
        assert owner is not None
        return owner

    async def write(self, statement: str) -> None:
        await self.owner.write(header(statement), batch({statement.encode(): (1, "x")}))

    def names(self, part: str) -> list[str]:
        return sorted(path for path in self.store.live if f"{ROOT}/{part}" in path)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """One empty region, open under a long lease."""
    store, clock = MemoryStore(), FakeClock()
    leases = RegionLeases("i1")
    leases.sent(1, clock.mono_ms())
    limits = RegionLimits(flush_age_ms=FLUSH_AGE_MS)
    disk_store = DiskStore(MemoryDisk(store), clock, "/n", limits)
    async with asyncio.TaskGroup() as group:
        regions = NodeRegionSet(disk_store, leases, clock, group.create_task)
        create = CreateRegion(
            number=1,
            region_id=str(REGION_ID),
            epoch=1,
            root=ROOT,
            table_id=1024,
            schema_version=1,
            schema_floor=1,
            columns=[
                RegionColumn(id=1, type="int64", nullable=False),
                RegionColumn(id=2, type="string", nullable=True),
            ],
            key_columns=[1],
            lease=LeaseGrant(incarnation="i1", heartbeat=1, lease_ms=10**9),
        )
        await regions.carry_out(create)
        regions.renew_by(create)
        yield Bench(store, clock, regions, Upkeep(regions, clock))
        await regions.close_all()
