"""An adopted node: the old cluster is refused durably, and what is on its disk is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from dataplane.datanode.membership.adoption import NodeAdoption
from dataplane.datanode.membership.heartbeat import HeartbeatLoop, HeartbeatPorts
from dataplane.datanode.membership.membership import Membership, NodeIdentity
from dataplane.datanode.orders.journal import NodeJournal, open_journal
from dataplane.datanode.orders.journal_format import Dropped, Joined, TermSeen
from dataplane.datanode.orders.orders import OrderExecutor
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.store import DiskStore
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from metasrv_base.errors import Conflict, MetaError, Unavailable
from metasrv_base.wire.node.adoption import AdoptRequest
from metasrv_base.wire.node.nodes import RegisterAnswer
from metasrv_base.wire.node.orders import (
    CreateRegion,
    DropRegion,
    Order,
    OrderRequest,
    RegionColumn,
)
from tests.fakes.clock import FakeClock
from tests.fakes.silent_leader import RESOURCES, EmptyMachine, SilentLeader

REGION = 1024 << 32
DROPPED = REGION + 9
OLD, NEW = "old", "new"
ADOPT = AdoptRequest(cluster_id=NEW, from_cluster_id=OLD, node_id="dn-1")


@dataclass
class Bench:
    store: MemoryStore
    journal: NodeJournal
    membership: Membership
    desk: OrderExecutor
    regions: NodeRegionSet
    leases: RegionLeases
    heart: HeartbeatLoop
    adoption: NodeAdoption


class Killed(Exception):
    """The process of the node was killed."""


@asynccontextmanager
async def bench(die_at: int = 0) -> AsyncIterator[Bench]:
    """A node that joined OLD, at term 40,017, with a tombstone. It is killed at the *die_at*-th
    operation on its disk behind that."""
    store, clock, operations = MemoryStore(), FakeClock(), [0, False]

    def script(operation: str, path: str) -> None:
        if operations[1]:
            operations[0] += 1
            if operations[0] == die_at:
                raise Killed

    disk = MemoryDisk(store, script)
    journal = open_journal(disk, "/n", "dn-1")
    await journal.commit([Joined(cluster_id=OLD), TermSeen(term=40_017)])
    await journal.commit([Dropped(region_id=str(DROPPED))])
    leases = RegionLeases("i1")
    async with asyncio.TaskGroup() as group:
        owners: list[asyncio.Task[None]] = []
        regions = NodeRegionSet(
            DiskStore(disk, clock, "/n"),
            leases,
            clock,
            lambda work: owners.append(group.create_task(work)),
        )
        desk = OrderExecutor(journal, regions)
        membership = Membership(NodeIdentity("dn-1", "i1", "http://n", "z", "/n"), OLD)
        world = HeartbeatPorts(SilentLeader(), EmptyMachine(), clock, leases)
        heart = HeartbeatLoop(membership, desk, journal, regions, world)
        adoption = NodeAdoption(membership, heart, desk, journal, regions, disk)
        operations[1] = True
        yield Bench(store, journal, membership, desk, regions, leases, heart, adoption)
        for owner in owners:
            owner.cancel()


def order(cluster: str, term: int, number: int = 1, region: int = REGION) -> OrderRequest:
    create = CreateRegion(
        number=number,
        region_id=str(region),
        epoch=1,
        root=f"/n/regions/{region}-1",
        table_id=region >> 32,
        schema_version=3,
        schema_floor=3,
        columns=[RegionColumn(id=1, type="int64", nullable=False)],
        key_columns=[1],
    )
    return request(cluster, term, create)


def request(cluster: str, term: int, *orders: Order) -> OrderRequest:
    return OrderRequest(cluster_id=cluster, node_id="dn-1", term=term, orders=list(orders))


async def test_given_a_node_when_adopted_then_the_old_cluster_is_refused_also_after_a_restart() -> (
    None
):
    async with bench() as node:
        answer = await node.adoption.adopt(ADOPT)
        node.store.crash()
        state = open_journal(MemoryDisk(node.store), "/n", "dn-1").state

        assert (answer.node_id, answer.cluster_id, answer.dropped) == ("dn-1", NEW, 1)
        assert (state.cluster_id, state.adopted_from, state.term) == (NEW, OLD, 0)
        assert (state.tombstones, state.dropped) == ({DROPPED}, set())
        with pytest.raises(Conflict, match="wrong-cluster"):
            await node.desk.execute(order(OLD, 40_017))


async def test_given_a_repeat_when_adopted_then_the_same_answer_and_others_are_refused() -> None:
    async with bench() as node:
        first = await node.adoption.adopt(ADOPT)

        again = await node.adoption.adopt(ADOPT)
        for wrong in (
            {"cluster_id": "third"},
            {"cluster_id": OLD, "from_cluster_id": "third"},
            {"node_id": "dn-2"},
        ):
            with pytest.raises(Conflict, match="wrong-cluster"):
                await node.adoption.adopt(ADOPT.model_copy(update=wrong))

        assert again == first
        assert node.journal.state.cluster_id == NEW


async def test_given_regions_and_leases_when_adopted_then_none_is_served_and_terms_begin_anew() -> (
    None
):
    async with bench() as node:
        await node.desk.execute(order(OLD, 40_017))
        assert len(list(node.regions)) == 1

        await node.adoption.adopt(ADOPT)
        await node.desk.hear_term(3)
        response = await node.desk.execute(order(NEW, 3, region=REGION + 1))

        assert [slot.region_id for slot in node.regions] == [REGION + 1]
        assert response.results[0].error is None
        assert node.desk.term == 3


async def test_given_a_region_that_the_old_cluster_dropped_when_adopted_then_it_can_be_made() -> (
    None
):
    """And drops it for good: a late order of its own does not bring it back."""
    async with bench() as node:
        before = await node.desk.execute(order(OLD, 40_017, region=DROPPED))
        await node.adoption.adopt(ADOPT)
        told = (await node.adoption.inventory(0, (1 << 63) - 1)).dropped
        await node.desk.hear_term(3)
        made = await node.desk.execute(order(NEW, 3, number=1, region=DROPPED))
        told_later = (await node.adoption.inventory(0, (1 << 63) - 1)).dropped
        drop = DropRegion(number=2, region_id=str(DROPPED), epoch=1, root=f"/n/regions/{DROPPED}-1")
        await node.desk.execute(request(NEW, 3, drop))
        again = await node.desk.execute(order(NEW, 3, number=3, region=DROPPED))

        assert before.results[0].error is not None
        assert (told, told_later) == ([str(DROPPED)], [])
        assert made.results[0].error is None
        assert again.results[0].error is not None
        assert again.results[0].error.code == "action-not-allowed"


async def test_given_an_order_under_way_when_adopted_then_it_ends_first_and_counts_no_more() -> (
    None
):
    async with bench() as node:
        async with asyncio.TaskGroup() as tasks:
            ordered = tasks.create_task(node.desk.execute(order(OLD, 40_017)))
            await asyncio.sleep(0)
            adopted = tasks.create_task(node.adoption.adopt(ADOPT))
        assert ordered.result().results[0].error is None
        assert adopted.result().cluster_id == NEW
        assert node.journal.state.executed == {}
        assert list(node.regions) == []


async def test_given_the_node_when_adopted_then_it_registers_with_its_new_cluster() -> None:
    async with bench() as node:
        node.membership.is_registered = True

        await node.adoption.adopt(ADOPT)

        assert not node.membership.is_registered
        assert node.membership.cluster_id == NEW
        registration = node.membership.registration(RESOURCES, ())
        assert registration.cluster_id == NEW
        answer = RegisterAnswer(
            cluster_id=NEW, term=1, heartbeat_ms=1, lease_ms=1, settings_version=1
        )
        node.membership.joined(answer)


async def test_given_a_crash_at_any_operation_then_it_is_of_one_cluster_and_never_back() -> None:
    number, is_whole = 0, False
    while not is_whole:
        number += 1
        async with bench(number) as node:
            try:
                answer = await node.adoption.adopt(ADOPT)
                is_whole = node.journal.state.cluster_id == answer.cluster_id
            except (Killed, MetaError):
                pass
            node.store.crash()
            state = open_journal(MemoryDisk(node.store), "/n", "dn-1").state

            assert state.cluster_id in (OLD, NEW)
            assert state.tombstones == {DROPPED}
            assert state.dropped == ({DROPPED} if state.cluster_id == OLD else set())
            if is_whole:
                assert state.cluster_id == NEW
            if state.cluster_id == NEW:
                assert (state.adopted_from, state.term) == (OLD, 0)
            assert number < 50
    assert number > 2


async def test_given_a_crash_anywhere_when_a_dropped_region_is_made_then_it_can_be_made_again() -> (
    None
):
    """It is told as dropped until the journal says that it was made."""
    number, is_whole = 0, False
    told = set[bool]()
    while not is_whole:
        number += 1
        async with bench(number) as node:
            try:
                await node.adoption.adopt(ADOPT)
                await node.desk.hear_term(3)
                response = await node.desk.execute(order(NEW, 3, region=DROPPED))
                is_whole = response.results[0].error is None
            except (Killed, MetaError):
                pass
            node.store.crash()
            state = open_journal(MemoryDisk(node.store), "/n", "dn-1").state

            told.add(DROPPED in state.tombstones)
            assert (DROPPED in state.dropped) == (state.cluster_id == OLD)
            assert (DROPPED not in state.tombstones) == (DROPPED in state.executed)
            if is_whole:
                assert state.executed[DROPPED].op == "create"
            assert number < 200
    assert told == {True, False}
    assert number > 5


async def test_given_orders_while_it_is_being_adopted_then_they_are_to_be_sent_again() -> None:
    async with bench() as node, node.desk.held():
        with pytest.raises(Unavailable):
            await node.desk.execute(order(OLD, 40_017))


async def test_given_a_region_when_the_inventory_is_read_then_its_fence_and_elements_are_told() -> (
    None
):
    async with bench() as node:
        await node.desk.execute(order(OLD, 40_017))
        await node.adoption.adopt(ADOPT)

        every = await node.adoption.inventory(0, (1 << 63) - 1)
        none = await node.adoption.inventory(0, REGION - 1)

        (root,) = every.roots
        assert (root.region_id, root.root) == (str(REGION), f"/n/regions/{REGION}-1")
        assert (root.fence_epoch, root.manifest_epoch, root.opener) == (1, 1, root.root)
        assert (root.schema_version, root.column_max, root.error) == (3, 1, None)
        assert root.columns == [1]
        assert root.fenced_ms is not None
        assert (every.cluster_id, every.dropped, every.next) == (NEW, [str(DROPPED)], None)
        assert (none.roots, none.dropped) == ([], [])


async def test_given_the_folder_of_a_copy_that_was_added_then_the_inventory_has_it_too() -> None:
    async with bench() as node:
        (create,) = order(OLD, 40_017).orders
        assert isinstance(create, CreateRegion)
        root = f"{create.root}-7"
        await node.desk.execute(request(OLD, 40_017, create.model_copy(update={"root": root})))
        await node.adoption.adopt(ADOPT)

        (found,) = (await node.adoption.inventory(0, (1 << 63) - 1)).roots

        assert (found.region_id, found.root) == (str(REGION), root)
