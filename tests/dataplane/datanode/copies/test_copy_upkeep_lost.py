"""A copy whose files are gone while its node runs is reported as lost, and opened again later."""

import posixpath

import pytest

from dataplane.datanode.copies.copy_upkeep import CopyUpkeep
from dataplane.datanode.copies.senders import AppendPort
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.regions import LOST_RETRY_MS, NodeRegionSet
from dataplane.datanode.regions.store import DiskStore
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.manifests.manifest import read_current_manifest
from dataplane.region.memory.budget import MemoryBudget
from metasrv_base.errors import MetaError, NotFound, Unavailable
from metasrv_base.wire.node.appends import AppendAnswer
from metasrv_base.wire.node.orders import CreateRegion
from tests.dataplane.datanode.copies.fetch_bench import copies, open_order
from tests.dataplane.region.following.stream import leader, sent
from tests.dataplane.region.rig import REGION_ID, B, write
from tests.fakes.clock import FakeClock


class NobodyElse:
    async def append(self, address: str, body: bytes) -> AppendAnswer:
        raise AssertionError("this node leads nothing")


class Bench:
    """A node with one copy, which has a row in a file and one in its log."""

    def __init__(self) -> None:
        self.clock, self.disk = FakeClock(), MemoryDisk(MemoryStore())
        self.region = leader(MemoryDisk(MemoryStore()))
        store = DiskStore(self.disk, self.clock, posixpath.dirname(B))
        peers: AppendPort = NobodyElse()
        self.node = NodeRegionSet(store, RegionLeases("i"), self.clock, lambda _: None, peers)
        budget = MemoryBudget()
        self.upkeep = CopyUpkeep(self.node.copies, self.clock, budget, self.node.retire_copy)

    async def begin(self) -> None:
        await self.node.carry_out(created())
        write(self.region, "s-1", {b"a": (1, "x")})
        await self.take(common=1)
        await self.take(common=1)
        maintenance = self.node.followed(REGION_ID).copy.maintenance
        assert maintenance is not None
        maintenance.flush()
        write(self.region, "s-2", {b"b": (2, "x")})
        await self.take(common=1)

    async def take(self, common: int) -> int:
        followed = self.node.followed(REGION_ID)
        return await followed.take(B, sent(self.region, followed.copy.durable.sequence, common))

    async def is_refused(self) -> MetaError:
        with pytest.raises(MetaError) as refusal:
            await self.take(common=2)
        return refusal.value

    @property
    def state(self) -> str:
        (stat,) = self.node.stats()
        return stat.state

    async def open_again(self) -> None:
        """By the answer to a heartbeat."""
        order = open_order(1, copies())
        if self.node.is_worth_trying(order):
            await self.node.carry_out(order)


def created() -> CreateRegion:
    gone = {"op", "borrows", "unannounced", "lease", "dead_indexes"}
    return CreateRegion.model_validate(open_order(1, copies()).model_dump(exclude=gone))


async def test_given_a_data_file_that_is_gone_when_records_fail_then_the_copy_is_lost() -> None:
    bench = Bench()
    await bench.begin()
    manifest = read_current_manifest(bench.disk, B, REGION_ID)
    assert manifest is not None
    (name,) = [entry.name for entry in manifest.files]
    bench.node.followed(REGION_ID).copy.close()  # as an error does
    data = bench.disk.read(f"{B}/{name}", 0, 1 << 20)
    bench.disk.remove(f"{B}/{name}")
    write(bench.region, "s-3", {b"c": (3, "x")})
    assert (await bench.is_refused()).code == "region-lost"

    await bench.upkeep.look_after()

    assert bench.state == "lost"
    assert bench.node.copy_here(REGION_ID) is None, "it promises nothing"
    bench.clock.advance(LOST_RETRY_MS)
    with pytest.raises(Unavailable):
        await bench.open_again()
    assert bench.state == "lost"

    file = bench.disk.create(f"{B}/{name}")
    file.append(data)
    file.sync()
    bench.clock.advance(LOST_RETRY_MS)
    await bench.open_again()
    assert bench.state == "open"
    assert await bench.take(common=3) == 3


async def test_given_an_error_that_is_not_of_its_files_then_the_copy_stays() -> None:
    """A log that contradicts its own is a fault of another, and deletes nothing here."""
    bench = Bench()
    await bench.begin()
    followed = bench.node.followed(REGION_ID)
    followed.is_in_doubt = True

    await bench.upkeep.look_after()

    assert bench.state == "open"
    assert not followed.is_in_doubt


async def test_given_a_folder_that_is_gone_when_records_fail_then_the_copy_is_lost() -> None:
    bench = Bench()
    await bench.begin()
    bench.disk.remove_tree(B)
    write(bench.region, "s-3", {b"c": (3, "x")})
    assert (await bench.is_refused()).code == "region-lost"

    await bench.upkeep.look_after()

    assert bench.state == "lost"
    with pytest.raises(NotFound):
        bench.node.followed(REGION_ID)


async def test_given_a_fault_in_a_copy_when_looked_after_then_the_node_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    await bench.begin()
    maintenance = bench.node.followed(REGION_ID).copy.maintenance
    assert maintenance is not None

    def fail() -> None:
        raise MemoryError

    monkeypatch.setattr(maintenance, "forget_statements", fail)

    await bench.upkeep.look_after()
    await bench.upkeep.look_after()

    assert bench.state == "open"
    assert await bench.take(common=2) == 2
