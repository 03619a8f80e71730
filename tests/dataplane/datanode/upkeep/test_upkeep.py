"""Upkeep: flushes by age, closed logs, collected obsolete files, and regions that are let go."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from dataplane.datanode.membership.membership import Membership, NodeIdentity
from dataplane.datanode.metrics import NodeMetrics
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.store import DiskStore
from dataplane.datanode.upkeep.upkeep import LOG_IDLE_MS, Upkeep
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.memory.budget import MemoryBudget
from metasrv_base.errors import MetaError, NotFound, Unavailable, Unknown
from metasrv_base.wire.node.orders import (
    CreateRegion,
    LeaseGrant,
    OpenRegion,
    RegionColumn,
    SetSchema,
)
from tests.dataplane.datanode.upkeep.bench import FLUSH_AGE_MS, ROOT, Bench, bench
from tests.dataplane.region.rig import REGION_ID, batch, header, order, place
from tests.fakes.clock import FakeClock

__all__ = ["bench"]  # fixtures


@pytest.fixture
async def two() -> AsyncIterator[tuple[NodeRegionSet, Upkeep, MemoryBudget]]:
    """Two open regions that share a budget of a megabyte."""
    clock, budget = FakeClock(), MemoryBudget(1_000_000)
    leases = RegionLeases("i1")
    leases.sent(1, clock.mono_ms())
    disk_store = DiskStore(MemoryDisk(MemoryStore()), clock, "/n", budget=budget)
    async with asyncio.TaskGroup() as group:
        regions = NodeRegionSet(disk_store, leases, clock, group.create_task)
        for number in range(2):
            create = CreateRegion(
                number=number + 1,
                region_id=str(REGION_ID + number),
                epoch=1,
                table_id=1024,
                root=f"/n/regions/{REGION_ID + number}",
                columns=[
                    RegionColumn(id=1, type="int64", nullable=False),
                    RegionColumn(id=2, type="string", nullable=True),
                ],
                schema_version=1,
                schema_floor=0,
                key_columns=[1],
                lease=LeaseGrant(incarnation="i1", heartbeat=1, lease_ms=10**9),
            )
            await regions.carry_out(create)
            regions.renew_by(create)
        yield regions, Upkeep(regions, clock, budget), budget
        await regions.close_all()


async def test_given_little_room_when_looked_after_then_the_largest_region_is_flushed(
    two: tuple[NodeRegionSet, Upkeep, MemoryBudget],
) -> None:
    regions, upkeep, budget = two
    large, small = [slot.owner for slot in regions]
    assert large is not None
    assert small is not None
    await small.write(header("s"), batch({b"a": (1, "x" * 100_000)}))
    await large.write(header("s"), batch({b"a": (1, "x" * 450_000)}))

    await upkeep.look_after()

    assert large.region.stats().memtable_bytes == 0
    assert small.region.stats().memtable_bytes > 0
    assert budget.excess == 0


async def test_given_no_room_when_written_then_it_is_refused_until_there_is(
    two: tuple[NodeRegionSet, Upkeep, MemoryBudget],
) -> None:
    regions, upkeep, budget = two
    owner = next(iter(regions)).owner
    assert owner is not None
    await owner.write(header("s"), batch({b"a": (1, "x" * 1_000_000)}))

    with pytest.raises(Unavailable) as refusal:
        await owner.write(header("s-2"), batch({b"b": (1, "x")}))

    assert refusal.value.facts["limit_bytes"] == budget.bytes_max
    await upkeep.look_after()
    await owner.write(header("s-2"), batch({b"b": (1, "x")}))


async def test_given_too_many_files_to_merge_when_written_then_it_is_refused(
    two: tuple[NodeRegionSet, Upkeep, MemoryBudget], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = next(iter(two[0])).owner
    assert owner is not None
    monkeypatch.setattr("dataplane.region.engine.region.FILES_MAX", 2)
    for number in range(2):
        await owner.write(header(f"s-{number}"), batch({b"%d" % number: (1, "x")}))
        await asyncio.to_thread(owner.region.maintenance.flush)

    with pytest.raises(Unavailable) as refusal:
        await owner.write(header("s-2"), batch({b"b": (1, "x")}))

    assert refusal.value.facts["files"] == 2


async def test_given_rows_when_they_are_old_then_they_are_flushed(bench: Bench) -> None:
    await bench.write("s1")
    await bench.upkeep.look_after()
    assert bench.names("data/") == []

    bench.clock.advance(FLUSH_AGE_MS)
    await bench.upkeep.look_after()

    assert len(bench.names("data/")) == 1


async def test_given_a_log_when_nobody_writes_then_it_is_closed_until_the_next(
    bench: Bench,
) -> None:
    await bench.write("s1")
    bench.clock.advance(FLUSH_AGE_MS)
    await bench.upkeep.look_after()
    await bench.write("s2")
    before = bench.names("wal-")

    bench.clock.advance(LOG_IDLE_MS)
    await bench.upkeep.look_after()
    await bench.write("s3")

    assert bench.names("wal-")[-1] > before[-1]


async def test_given_obsolete_files_of_a_crash_when_looked_after_then_they_are_gone(
    bench: Bench,
) -> None:
    disk = MemoryDisk(bench.store)
    disk.make_folder(f"{ROOT}/data")
    disk.create(f"{ROOT}/data/1-1-99.parquet")

    await bench.upkeep.look_after()

    assert bench.names("data/") == []


async def test_given_a_region_behind_a_fence_when_looked_after_then_it_is_let_go(
    bench: Bench,
) -> None:
    Region.open(place(MemoryDisk(bench.store), ROOT), order(2))
    with pytest.raises(Unknown):
        await bench.write("s1")
    assert bench.regions.stats() == []

    await bench.upkeep.look_after()

    with pytest.raises(NotFound):
        bench.regions.serving(REGION_ID)


async def test_given_lost_storage_when_looked_after_then_it_is_reported_lost(
    bench: Bench,
) -> None:
    await bench.write("s1")
    bench.store.folders.clear()
    with pytest.raises(MetaError):
        await bench.write("s2")

    await bench.upkeep.look_after()

    assert [(stat.state, stat.root) for stat in bench.regions.stats()] == [("lost", ROOT)]


async def test_given_a_root_of_an_epoch_before_when_opened_then_it_is_the_one_reported(
    bench: Bench,
) -> None:
    (slot,) = bench.regions
    opening = slot.order.model_dump(exclude={"op", "replaces", "epoch", "number"})

    await bench.regions.carry_out(OpenRegion(**opening, epoch=2, number=2))

    assert [(stat.epoch, stat.root) for stat in bench.regions.stats()] == [(2, ROOT)]


async def test_given_files_of_a_job_that_nobody_took_when_its_mark_is_closed_then_they_are_gone(
    bench: Bench,
) -> None:
    """The region was tidy already when the job began."""
    told = SetSchema(
        number=2,
        region_id=str(REGION_ID),
        epoch=1,
        schema_version=1,
        schema_floor=1,
        columns=next(iter(bench.regions)).order.columns,
    )
    await bench.upkeep.look_after()
    await bench.regions.carry_out(told.model_copy(update={"mark": "p-1"}))
    disk = MemoryDisk(bench.store)
    disk.make_folder(f"{ROOT}/attempts/p-1-x")
    disk.create(f"{ROOT}/attempts/p-1-x/1.parquet")
    await bench.upkeep.look_after()
    assert bench.names("attempts/") != []

    await bench.regions.carry_out(told.model_copy(update={"close_marks": ["p-1"]}))
    await bench.upkeep.look_after()

    assert bench.names("attempts/") == []


async def test_given_statements_that_are_remembered_when_measured_then_their_bytes_are_told(
    two: tuple[NodeRegionSet, Upkeep, MemoryBudget],
) -> None:
    regions, _, budget = two
    for slot in regions:
        assert slot.owner is not None
        await slot.owner.write(header("s"), batch({b"a": (1, "x")}))
    node = Membership(NodeIdentity("dn-1", "i1", "http://dn-1", "a", "/n"), cluster_id=None)

    told = NodeMetrics().text(regions, node).decode()

    assert budget.statement_bytes > 0
    assert f'datanode_statement_bytes{{of="taken"}} {float(budget.statement_bytes)}' in told
    assert f'datanode_statement_bytes{{of="limit"}} {float(budget.statements_max)}' in told


async def test_given_a_fault_in_one_region_when_looked_after_then_the_node_goes_on(
    two: tuple[NodeRegionSet, Upkeep, MemoryBudget], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It rests for a while: another flush would take as much, and fail too."""
    regions, upkeep, _ = two
    faulty, sound = [slot.owner for slot in regions]
    assert faulty is not None
    assert sound is not None
    tries = 0

    def fail() -> bool:
        nonlocal tries
        tries += 1
        raise MemoryError

    monkeypatch.setattr(faulty.region.maintenance, "flush", fail)
    for owner in (faulty, sound):
        await owner.write(header("s"), batch({b"a": (1, "x" * 400_000)}))

    for _ in range(3):
        await upkeep.look_after()

    assert tries == 1
    assert faulty.stopped_by is None
    assert sound.region.stats().memtable_bytes == 0
