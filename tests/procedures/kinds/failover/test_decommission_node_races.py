"""Regions that a node is given while it is being removed: never on a node that is gone.

The node has lost regions, which the removal leaves there, so it cannot compare that there are none.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from keys.commit.change import change, route_changed
from keys.commit.committer import Committed, Committer
from keys.commit.txn import Txn, snapshot
from keys.model.cluster import DATANODE, NodeKey, RemovedNodeKey
from keys.model.origin import Origin
from keys.model.records import ProcedureOutcome
from keys.model.tables import RegionState, TableRouteKey
from keys.store.kv import Compare, Kv, Request, TxnAnswer, Watched
from procedures.kinds.failover.decommission_node import DecommissionNode
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.registry import KINDS
from tests.crash.planted import Client
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.fakes.heartbeats import register
from tests.procedures.harness.ends import OTHER, TABLE
from tests.procedures.harness.scenarios import with_table
from tests.procedures.harness.tables import put_table, table_info
from tests.procedures.kinds.failover.runs import outcome, start
from tests.sim.loop import WORLD, SimLoop, run

STATE = DecommissionNode(node="dn-1", reason="its disk is gone", by="anna")
REMOVED = RemovedNodeKey(DATANODE, "dn-1")
GIB = 1 << 30
Happens = Callable[[Cluster], Awaitable[None]]


async def with_lost_regions(cluster: Cluster, fence: Compare) -> None:
    """Table t: two regions on dn-1, which is dead, both lost; nobody has room for them. Table u: a
    region on dn-2."""
    await with_table(cluster, fence)
    await put_table(cluster, fence, table_info(OTHER, "u", 1), ("dn-2",))
    await cluster.change(fence, await on_dn_1(cluster, TABLE, state=RegionState.LOST))
    cluster.plane.nodes["dn-1"].die()
    for name in ("dn-2", "dn-3"):
        cluster.plane.nodes[name].disk_free_bytes = 0


async def on_dn_1(cluster: Cluster, table_id: int, **update: object) -> Txn:
    """Changes the regions of dn-1, or those of a table that has none there."""
    key = TableRouteKey(table_id)
    stored = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    route = stored.must(key)
    led = [region for region in route.region_routes if region.leader == "dn-1"]
    changed = tuple(r.model_copy(update=update) for r in led or route.region_routes)
    return change(stored, route_changed(route, changed))


async def commit(cluster: Cluster, txn: Txn) -> None:
    committer = cluster.leader.committer
    assert committer is not None
    await committer.commit(txn)


async def opened(cluster: Cluster) -> None:
    """A lost region is read again: the node came back."""
    await commit(cluster, await on_dn_1(cluster, TABLE, state=RegionState.OPEN))


async def given_a_table(cluster: Cluster) -> None:
    """A row of a table that the node had nothing of."""
    await commit(cluster, await on_dn_1(cluster, OTHER, leader="dn-1", epoch=2))


async def registered_again(cluster: Cluster) -> None:
    """Another process of the node."""
    node, book = cluster.plane.nodes["dn-1"], cluster.leader.book
    assert book is not None
    node.deaths += 1
    await register(node, book)


async def taken_away(cluster: Cluster) -> None:
    """Its last regions are moved: their row is deleted."""
    await commit(cluster, await on_dn_1(cluster, TABLE, leader="dn-2", epoch=2))


def interrupted(cluster: Cluster, happens: Happens) -> Callable[..., Committer]:
    """Committers before whose first removal of dn-1 something else is committed."""
    done = False

    class Interrupted(Committer):
        async def commit(
            self, txn: Txn, *, procedure: str | None = None, origin: Origin | None = None
        ) -> Committed:
            nonlocal done
            if bytes(REMOVED) in txn.writes and not done:
                done = True
                await happens(cluster)
            return await super().commit(txn, procedure=procedure)

    return Interrupted


def is_registered(cluster: Cluster) -> bool:
    return bytes(NodeKey(DATANODE, "dn-1")) in cluster.stored()


async def begun(cluster: Cluster) -> str:
    """The removal, once the leader has taken dn-1 for dead."""
    await with_lost_regions(cluster, await cluster.bootstrap())
    await cluster.started()
    await cluster.detected()
    return await start(cluster, "decommission_node", STATE)


@pytest.mark.parametrize("happens", [opened, given_a_table, registered_again])
def test_given_a_node_that_is_given_regions_when_it_is_about_to_be_removed_then_it_stays(
    happens: Happens,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop, KINDS)
        seen: list[bool] = []

        async def happened(cluster: Cluster) -> None:
            seen.append(is_registered(cluster))
            await happens(cluster)

        cluster.make_committer = interrupted(cluster, happened)
        procedure = await begun(cluster)
        while not seen:
            await cluster.clock.sleep_ms(10)
        await cluster.clock.sleep_ms(3_000)

        assert seen == [True]
        assert is_registered(cluster)
        assert await outcome(cluster, procedure) is None
        for name in ("dn-2", "dn-3"):
            cluster.plane.nodes[name].disk_free_bytes = GIB
        await start(cluster, "failover_node", FailoverNode(node="dn-1", reason="test"))
        await cluster.clock.sleep_ms(60_000)
        assert not is_registered(cluster), "removed once its regions have been moved"
        assert await outcome(cluster, procedure) is ProcedureOutcome.SUCCEEDED

    run(main, 1)


def test_given_a_row_that_is_deleted_when_it_is_about_to_be_removed_then_it_is_removed() -> None:
    """The removal is right with fewer regions, too."""

    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop, KINDS)
        attempts: list[bool] = []

        async def happened(cluster: Cluster) -> None:
            await taken_away(cluster)
            attempts.append(is_registered(cluster))

        cluster.make_committer = interrupted(cluster, happened)
        procedure = await begun(cluster)
        while await outcome(cluster, procedure) is None:
            await cluster.clock.sleep_ms(10)

        assert attempts == [True]
        assert not is_registered(cluster)

    run(main, 1)


@dataclass
class LateAnswers(Client):
    """A region of dn-1 is opened just before the removal reads: the store has it, and the leader
    does not know before the removal has been decided."""

    cluster: Cluster
    is_late: bool = False
    has_read: asyncio.Event = field(default_factory=asyncio.Event)
    is_stored: asyncio.Event = field(default_factory=asyncio.Event)

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        reads = any(get.key == bytes(REMOVED) for get in request.reads)
        if reads and self.cluster.living() and not self.is_late:
            self.is_late = True
            self.cluster.loop.spawn(self.cluster.leader.node, opened(self.cluster))
            await self.is_stored.wait()
            answer = await super().txn(request, deadline_ms=deadline_ms)
            self.cluster.loop.spawn(WORLD, self._answer_later())
            return answer
        answer = await super().txn(request, deadline_ms=deadline_ms)
        route = bytes(TableRouteKey(TABLE))
        if self.is_late and any(write.key == route for write in request.writes):
            self.is_stored.set()
            await self.has_read.wait()
        return answer

    async def watch(self, key: bytes, end: bytes, *, start_revision: int) -> AsyncIterator[Watched]:
        """No faster than the answer."""
        async for each in self.kv.watch(key, end, start_revision=start_revision):
            if self.is_late:
                await self.has_read.wait()
            yield each

    async def _answer_later(self) -> None:
        await self.cluster.clock.sleep_ms(100)
        self.has_read.set()


def test_given_a_route_whose_commit_is_not_answered_yet_when_judged_then_the_node_stays() -> None:
    """The removal was judged by the applied catalog, not by what the step has read."""

    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop, KINDS)
        clients: list[LateAnswers] = []

        def client(kv: Kv) -> Kv:
            clients.append(LateAnswers(kv, cluster))
            return clients[-1]

        cluster.client = client
        procedure = await begun(cluster)
        while not clients[0].has_read.is_set():
            await cluster.clock.sleep_ms(10)
        await cluster.clock.sleep_ms(3_000)

        assert is_registered(cluster)
        assert await outcome(cluster, procedure) is None

    run(main, 1)
