"""A leader that was replaced leads again where the copy that replaced it never serves."""

from dataclasses import replace

import pytest

from keys.model.tables import CopyRole, RegionRoute, RegionState, TableRoute
from keys.store.kv import Compare
from metasrv_base.errors import Unavailable
from procedures.kinds.failover.change_copies import ChangeCopies
from procedures.kinds.failover.failover_plan import DrainTarget, Rerouted, reroute_plan
from procedures.kinds.failover.failover_table import FAILOVER_TABLE, FailoverTable
from procedures.kinds.failover.former_leader import FormerLeader, noted
from procedures.machine import Goto
from procedures.ports import NodeView
from tests.fakes.cluster import Cluster
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    LEARNER,
    copied_info,
    copied_route,
    put_copied_table,
)
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import put_schema, reserve_ids
from tests.procedures.kinds.failover.runs import CLIENT, FIRST, start
from tests.procedures.kinds.runs import begun, context, finish
from tests.sim.loop import SimLoop, run

OF_TWO = copied_route(TABLE, ("dn-1",), ((("dn-2", IN_SYNC),),)).region_routes[0]
DN_1, DN_2 = (NodeView(name, "a", f"/disks/{name}", True, 0, 1 << 40) for name in ("dn-1", "dn-2"))
DEAD = replace(DN_1, alive=False)
LOST = replace(DN_2, lost={FIRST: 2})


def planned(
    region: RegionRoute,
    *nodes: NodeView,
    former: tuple[FormerLeader, ...] = (),
    is_forced: bool = False,
) -> Rerouted | None:
    route = TableRoute(table_id=TABLE, version=1, region_routes=(region,))
    target = DrainTarget("dn-1", (FIRST,), moving=(FIRST,), former=former, is_forced=is_forced)
    plan = reroute_plan(route, nodes, target)
    return plan[0] if plan else None


def promoted() -> tuple[RegionRoute, tuple[FormerLeader, ...]]:
    """The region once dn-2 is to lead it, and the leader before."""
    plan = planned(OF_TWO, DEAD, DN_2)
    assert plan is not None
    former = noted(OF_TWO, plan.region, ())
    assert former is not None
    return plan.region, (former,)


LEFT = OF_TWO.copies[0].model_copy(update={"role": LEARNER, "eligible_epoch": OF_TWO.epoch})
SHRUNK = OF_TWO.with_copies((LEFT,))
"""dn-2 has left the set, which had both, and may lead."""


def test_given_a_leader_that_is_alone_when_it_is_gone_then_an_eligible_copy_leads() -> None:
    for node in (DEAD, replace(DN_1, lost={FIRST: SHRUNK.epoch})):
        plan = planned(SHRUNK, node, DN_2)

        assert plan is not None
        assert (plan.is_promoted, plan.is_leased) == (True, True)
        assert (plan.region.leader, plan.region.root) == ("dn-2", LEFT.root)
        assert (plan.region.epoch, plan.region.borrows) == (SHRUNK.epoch + 1, ())
        assert not plan.region.eligible
        former = noted(SHRUNK, plan.region, ())
        assert former is not None
        assert former.root == OF_TWO.root, "it leads again if dn-2 turns out to be lost"


def test_given_no_eligible_copy_that_lives_and_has_its_files_then_none_leads() -> None:
    learner = SHRUNK.without_eligible()
    later = SHRUNK.model_copy(update={"epoch": SHRUNK.epoch + 1})
    third = replace(DN_2, node_id="dn-3", root="/disks/dn-3")
    other = OF_TWO.copies[0].model_copy(update={"node": "dn-3", "root": "/disks/dn-3/r"})
    of_three = SHRUNK.with_copies((LEFT, other))

    for region in (learner, later):
        plan = planned(region, DEAD, DN_2)
        assert plan is None or not plan.is_promoted
    plan = planned(SHRUNK, DEAD, LOST, third)
    assert plan is not None
    assert not plan.is_promoted, "it reports its files lost"
    with pytest.raises(Unavailable):  # the leader may serve under the promise of dn-3
        planned(of_three, DEAD, DN_2, replace(third, alive=False))


def test_given_a_leader_that_lives_and_starts_again_then_it_leads_again_and_none_is_eligible() -> (
    None
):
    """It has what it ordered before, which the eligible copy may lack."""
    plan = planned(SHRUNK, replace(DN_1, restarted={FIRST: SHRUNK.epoch}), DN_2)

    assert plan is not None
    assert (plan.region.leader, plan.region.epoch) == ("dn-1", SHRUNK.epoch + 1)
    assert not plan.region.eligible


def lost(region: RegionRoute) -> RegionRoute:
    return region.model_copy(update={"state": RegionState.LOST})


def test_given_a_promoted_copy_that_is_lost_when_the_former_leader_is_back_then_it_leads() -> None:
    region, former = promoted()

    plan = planned(lost(region), DN_1, LOST, former=former)

    assert plan is not None
    assert plan.is_promoted, "nobody has had a lease since"
    assert (plan.region.leader, plan.region.root) == ("dn-1", OF_TWO.root)
    assert (plan.region.epoch, plan.region.state) == (3, RegionState.OPENING)
    assert [(copy.node, copy.role) for copy in plan.region.copies] == [("dn-2", LEARNER)]
    other = noted(region, plan.region, former)
    assert other is not None
    back = planned(lost(plan.region), replace(DN_1, lost={FIRST: 3}), DN_2, former=(other,))
    assert back is not None
    assert back.region.leader == "dn-2", "its files are back, and those of dn-1 are lost"
    assert planned(lost(region), DEAD, LOST, former=former) is None, "it is awaited"
    assert planned(lost(region), replace(DN_1, lost={FIRST: 1}), LOST, former=former) is None


def test_given_a_promoted_copy_that_dies_or_starts_again_then_the_former_leader_stays_noted() -> (
    None
):
    region, former = promoted()

    after_death = planned(region, DN_1, replace(DN_2, alive=False), former=former)
    again = planned(region, DEAD, replace(DN_2, restarted={FIRST: 2}), former=former)

    assert after_death is not None
    assert after_death.region.leader == "dn-1"
    assert again is not None
    assert (again.region.leader, again.region.epoch) == ("dn-2", 3)
    still = noted(region, again.region, former)
    assert still is not None
    assert (still.root, still.epoch) == (OF_TWO.root, 3)
    last = planned(lost(again.region), DN_1, replace(DN_2, lost={FIRST: 3}), former=(still,))
    assert last is not None
    assert last.region.leader == "dn-1"


def test_given_a_promoted_copy_that_dies_before_it_serves_then_no_other_node_borrows_its_root() -> (
    None
):
    """It may be cut off with the former leader, and follow that one still."""
    region, former = promoted()
    dead, third = replace(DN_2, alive=False), replace(DN_2, node_id="dn-3", root="/disks/dn-3")

    with pytest.raises(Unavailable):
        planned(region, DEAD, dead, third, former=former)
    assert planned(lost(region), DEAD, LOST, third, former=former) is None

    served = region.model_copy(update={"state": RegionState.OPEN})
    removed = region.with_copies(())  # as the decommission of the former leader's node does
    for plan in (
        planned(removed, dead, third, former=former),
        planned(served, DEAD, dead, third, former=former),
        planned(region, DEAD, dead, third, former=former, is_forced=True),
    ):
        assert plan is not None
        assert (plan.region.leader, plan.region.borrows) == ("dn-3", (region.root,))
        assert noted(region, plan.region, ()) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"state": RegionState.OPEN},
        {"epoch": 9},
        {"copies": ()},
    ],
)
def test_given_a_region_that_may_have_acknowledged_more_then_the_former_leader_is_no_leader(
    changed: dict[str, object],
) -> None:
    region, former = promoted()

    plan = planned(region.model_copy(update=changed), DN_1, LOST, former=former)

    assert plan is None


def test_given_another_minimum_or_a_learner_that_left_then_the_former_leader_is_still_noted() -> (
    None
):
    region, former = promoted()
    third = replace(DN_2, node_id="dn-3", root="/disks/dn-3")

    for changed in (region.with_minimum(1), region.model_copy(update={"copies_version": 9})):
        plan = planned(lost(changed), DN_1, LOST, former=former)
        assert plan is not None
        assert plan.region.leader == "dn-1"
        with pytest.raises(Unavailable):
            planned(changed, DEAD, replace(DN_2, alive=False), third, former=former)


def test_given_a_leader_that_borrowed_when_its_copy_never_serves_then_nobody_leads() -> None:
    """It lacks rows itself, and may read under the promise of the copy that has replaced it."""
    region, _ = promoted()
    borrower = OF_TWO.model_copy(update={"borrows": ("/disks/dn-9/r",)})
    note = noted(borrower, region, ())
    assert note is not None
    dead, third = replace(DN_2, alive=False), replace(DN_2, node_id="dn-3", root="/disks/dn-3")

    for former_node in (DN_1, DEAD):
        with pytest.raises(Unavailable):
            planned(region, former_node, dead, third, former=(note,))
    again = planned(region, DEAD, replace(DN_2, restarted={FIRST: 2}), former=(note,))
    assert again is not None
    still = noted(region, again.region, (note,))
    assert still is not None
    assert (still.epoch, still.may_lead) == (3, False)


def test_given_a_larger_set_then_nobody_is_noted() -> None:
    of_three = copied_route(TABLE, ("dn-1",), ((("dn-2", IN_SYNC), ("dn-3", IN_SYNC)),))
    before = of_three.region_routes[0]
    after = planned(before, DEAD, DN_2, replace(DN_2, node_id="dn-3"))

    assert after is not None
    assert noted(before, after.region, ()) is None, "another copy of the set leads next"


async def with_two_copies(cluster: Cluster, fence: Compare) -> None:
    """Table t: dn-1 leads one region, and is dead; dn-2 has the copy in sync, whose disk is lost,
    which nobody has noticed."""
    cluster.plane.add("dn-1", "dn-2", "dn-3")
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1",), ((("dn-2", IN_SYNC),),))
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 1, 2), route)
    cluster.plane.storage.lost.add(route.region_routes[0].copies[0].root)
    cluster.plane.nodes["dn-1"].die()


FAIL_OVER = FailoverTable(
    table_id=TABLE, name="t", source="dn-1", region_ids=(FIRST,), reason="silent"
)


def test_given_a_promoted_copy_that_has_not_served_then_nobody_joins_it() -> None:
    """Its set would be able to acknowledge rows without the former leader."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_two_copies, {})
        await cluster.detected()
        await start(cluster, "failover_table", FAIL_OVER)
        await cluster.clock.sleep_ms(60_000)
        join = ChangeCopies(
            table_id=TABLE,
            name="t",
            region_id=FIRST,
            change="join",
            node="dn-1",
            root=OF_TWO.root,
            epoch=2,
            version=2,
        )

        end = await finish(cluster, "change_copies", join, {})

        assert end.last.error is not None
        assert end.last.error.code == "action-not-allowed"
        assert led(cluster) == ("dn-2", "lost")

    run(main, 1)


def led(cluster: Cluster) -> tuple[str, str]:
    """The leader of the region, and its state, by the stored route."""
    family = history_of(cluster.kv._store.log_from(1)).family("__table_route")
    (region,) = family[(str(TABLE),)]["region_routes"]
    return region["leader"], region["state"]


def test_given_a_leader_that_starts_again_while_its_only_copy_is_lost_then_no_row_is() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_two_copies, {})
        await cluster.detected()
        await start(cluster, "failover_table", FAIL_OVER)
        await cluster.clock.sleep_ms(60_000)
        assert led(cluster) == ("dn-2", "lost")

        cluster.plane.nodes["dn-1"].alive = True
        assert await cluster.quiet()

        assert led(cluster) == ("dn-1", "open")
        assert f"{FIRST}/log" in (cluster.plane.rows(FIRST) or ())

    run(main, 1)


def test_given_a_leader_that_starts_again_after_its_copy_and_its_disk_are_gone_then_no_row_is() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_two_copies, {})
        await cluster.detected()
        await start(cluster, "failover_table", FAIL_OVER)
        await cluster.clock.sleep_ms(5_000)
        cluster.plane.nodes["dn-2"].die()
        await cluster.clock.sleep_ms(60_000)
        assert led(cluster) == ("dn-2", "lost"), "nobody borrows what is not there"

        cluster.plane.nodes["dn-1"].alive = True
        await cluster.clock.sleep_ms(60_000)

        assert led(cluster) == ("dn-1", "open")
        assert f"{FIRST}/log" in (cluster.plane.rows(FIRST) or ())

    run(main, 1)


def test_given_roles_then_a_former_leader_is_a_learner_in_the_route() -> None:
    """Nothing but the record of the failover tells that it may lead again."""
    region, _ = promoted()

    assert [(copy.root, copy.role) for copy in region.copies] == [(OF_TWO.root, CopyRole.LEARNER)]


async def with_a_shrunk_set(cluster: Cluster, fence: Compare) -> None:
    """Table t: dn-1 leads one region alone, and is dead; dn-2 has left the set, and may lead."""
    cluster.plane.add("dn-1", "dn-2", "dn-3")
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1",), ((("dn-2", LEARNER),),))
    (region,) = route.region_routes
    left = region.copies[0].model_copy(update={"eligible_epoch": region.epoch})
    route = route.model_copy(update={"region_routes": (region.with_copies((left,)),)})
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 1, 2), route)
    cluster.plane.storage.lost.add(region.root)
    cluster.plane.nodes["dn-1"].die()


def test_given_a_leader_that_was_alone_and_is_lost_then_the_eligible_copy_serves_its_rows() -> None:
    state = FailoverTable(
        table_id=TABLE, name="t", source="dn-1", region_ids=(FIRST,), reason="silent"
    )

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_shrunk_set, {})
        await cluster.detected()
        at = context(cluster, CLIENT, "reroute")
        rerouted = await FAILOVER_TABLE.steps["reroute"].act(state, at)
        assert isinstance(rerouted, Goto)
        assert rerouted.step == "await_lease", "the leader before serves by its lease"
        assert (rerouted.state.led_by, rerouted.state.to_move) == (("dn-1",), ())
        await start(cluster, "failover_table", state)
        assert await cluster.quiet()

        family = history_of(cluster.kv._store.log_from(1)).family("__table_route")
        (region,) = family[(str(TABLE),)]["region_routes"]
        assert (region["leader"], region["state"], region["epoch"]) == ("dn-2", "open", 2)
        assert [copy["node"] for copy in region["copies"]] == ["dn-1"]
        assert cluster.plane.rows(FIRST), "nothing is borrowed: dn-1 has lost its disk"

    run(main, 1)
