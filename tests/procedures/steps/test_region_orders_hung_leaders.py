"""A copy that is to lead next lives by its heartbeats, and answers no orders: another one leads."""

import pytest

from keys.store.kv import Compare
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.failover.switch_leader import SWITCH_LEADER, SwitchLeader
from procedures.kinds.tables.create_table import CreateTable
from tests.fakes.cluster import Cluster
from tests.fakes.hanging import HungNodes, hang
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    LEARNER,
    copied_info,
    copied_route,
    put_copied_table,
    with_three_in_sync,
)
from tests.procedures.harness.copies.switching import FIRST
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import (
    NODES,
    put_schema,
    reserve_ids,
    table_info,
    table_route,
)
from tests.procedures.kinds.copies.copy_lives import code_of, regions, roles
from tests.procedures.kinds.failover.runs import start
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run

HUNG = "dn-2"
ORDER_MS = 30_000
BEATS_MS = 20_000
FAILOVER = FailoverNode(node="dn-1", reason="test")
OPENS = b'"op":"open"'


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> HungNodes:
    return hang(monkeypatch, HUNG)


async def with_two_in_sync(cluster: Cluster, fence: Compare) -> None:
    """dn-1 leads one region, of which dn-2 has a copy in sync, and dn-3 a learner."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1",), (((HUNG, IN_SYNC), ("dn-3", LEARNER)),))
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 1, 3), route)


async def known_to_hang(cluster: Cluster) -> None:
    """An order to the node has come to nothing."""
    new = CreateTable(info=table_info(1090, "new", 1), route=table_route(1090, (HUNG,)))
    await finish(cluster, "create_table", new, {})


async def opened_ms(cluster: Cluster, epoch: int, limit_ms: int = 200_000) -> int:
    """The time until the region is open at *epoch*."""
    began_ms = cluster.clock.mono_ms()
    while (regions(cluster)[0]["epoch"], regions(cluster)[0]["state"]) != (epoch, "open"):
        await cluster.clock.sleep_ms(50)
        assert cluster.clock.mono_ms() - began_ms < limit_ms, regions(cluster)[0]
    return cluster.clock.mono_ms() - began_ms


async def failed_over(cluster: Cluster) -> None:
    cluster.plane.nodes["dn-1"].die()
    await cluster.detected()
    await start(cluster, "failover_node", FAILOVER)


def leaders(cluster: Cluster) -> set[tuple[str, int]]:
    """Nodes that serve the region as its leader, and their epochs."""
    return {
        (node.node_id, node.serving[FIRST].epoch)
        for node in cluster.plane.nodes.values()
        if FIRST in node.serving
    }


def test_given_a_promoted_copy_that_hangs_when_an_order_has_failed_then_another_leads(
    hung: HungNodes,
) -> None:
    """The order arrives late, at an epoch that is over: the node follows."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_three_in_sync, {})
        await failed_over(cluster)

        assert await opened_ms(cluster, 3) < ORDER_MS + 5_000

        assert regions(cluster)[0]["leader"] == "dn-3"
        assert roles(cluster, 0) == [("dn-1", "learner"), (HUNG, "learner")]
        assert hung.taken
        await hung.wake()
        await cluster.clock.sleep_ms(BEATS_MS)
        assert leaders(cluster) == {("dn-3", 3)}
        assert FIRST in cluster.plane.nodes[HUNG].following
        assert f"{FIRST}/log" in (cluster.plane.rows(FIRST) or ())
        assert (HUNG, FIRST) not in cluster.plane.leases, "it was never granted one"
        assert await cluster.quiet()

    run(main, 1)


def test_given_a_copy_that_is_known_to_hang_when_failed_over_then_another_leads_at_once(
    hung: HungNodes,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_three_in_sync, {})
        await known_to_hang(cluster)
        await failed_over(cluster)

        assert await opened_ms(cluster, 2) < 1_000
        assert regions(cluster)[0]["leader"] == "dn-3"

    run(main, 1)


def test_given_no_other_copy_when_the_promoted_one_hangs_then_it_leads_once_it_answers(
    hung: HungNodes,
) -> None:
    """No epoch is spent meanwhile."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_two_in_sync, {})
        await failed_over(cluster)
        await cluster.clock.sleep_ms(4 * ORDER_MS)
        assert regions(cluster)[0]["epoch"] == 2
        hung.nodes.clear()

        await opened_ms(cluster, 2)

        assert regions(cluster)[0]["leader"] == HUNG
        assert await cluster.quiet()
        assert leaders(cluster) == {(HUNG, 2)}
        assert cluster.plane.violations == []

    run(main, 1)


SWITCH = SwitchLeader(
    table_id=TABLE, name="main.public.t", region_id=FIRST, reason="test", epoch=1, to_node=HUNG
)


def test_given_a_switch_when_the_node_that_leads_next_hangs_then_another_of_the_set_leads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hung = hang(monkeypatch, HUNG, only=OPENS)

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_three_in_sync, {})
        await start(cluster, SWITCH_LEADER.name, SWITCH)

        assert await opened_ms(cluster, 3) < ORDER_MS + 5_000

        assert regions(cluster)[0]["leader"] != HUNG
        await hung.wake()
        assert await cluster.quiet()
        await cluster.clock.sleep_ms(BEATS_MS)
        assert {epoch for _, epoch in leaders(cluster)} == {3}

    run(main, 1)


def test_given_a_copy_that_is_known_to_hang_when_switched_then_another_is_chosen(
    hung: HungNodes,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_three_in_sync, {})
        await known_to_hang(cluster)
        began_ms = cluster.clock.mono_ms()

        state = SWITCH.model_copy(update={"to_node": None})
        end = await finish(cluster, SWITCH_LEADER.name, state, {})

        assert code_of(end) is None
        assert regions(cluster)[0]["leader"] == "dn-3"
        assert cluster.clock.mono_ms() - began_ms < 1_000, "nobody waits for the other one"

    run(main, 1)


def test_given_a_node_that_answers_again_when_it_is_wanted_then_it_leads(hung: HungNodes) -> None:
    """The leader of metasrv has not heard yet that it does."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_three_in_sync, {})
        await known_to_hang(cluster)
        hung.nodes.clear()

        end = await finish(cluster, SWITCH_LEADER.name, SWITCH, {})

        assert code_of(end) is None
        assert regions(cluster)[0]["leader"] == HUNG

    run(main, 1)


def test_given_a_target_that_answers_again_when_failed_over_to_it_then_it_leads(
    hung: HungNodes,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_three_in_sync, {})
        await known_to_hang(cluster)
        hung.nodes.clear()
        cluster.plane.nodes["dn-1"].die()
        await cluster.detected()

        wanted = FAILOVER.model_copy(update={"targets": (HUNG,)})
        await start(cluster, "failover_node", wanted)

        await opened_ms(cluster, 2)
        assert regions(cluster)[0]["leader"] == HUNG

    run(main, 1)


def test_given_a_leader_that_dies_while_it_is_to_hold_writes_then_the_switch_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hang(monkeypatch, "dn-1")

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_three_in_sync, {})
        cluster.plane.nodes["dn-1"].alive = False
        began_ms = cluster.clock.mono_ms()

        end = await finish(cluster, SWITCH_LEADER.name, SWITCH, {})

        assert code_of(end) == "node-not-eligible"
        assert cluster.clock.mono_ms() - began_ms < 8_000

    run(main, 1)
