"""Where regions go: pure, from a route and what is known of the nodes."""

from dataclasses import replace

import pytest

from keys.model.placing.placements import NodeFilter
from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState, TableRoute
from metasrv_base.engines import LSM
from metasrv_base.errors import Unavailable
from procedures.kinds.failover.failover_plan import DrainTarget, Rerouted, reroute_plan
from procedures.ports import NodeView
from procedures.steps.placing import place
from tests.procedures.harness.copies.copied_tables import IN_SYNC, LEARNER, copied_route
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import region_ids, table_route


def view(name: str, *, alive: bool = True, regions: int = 0, zone: str = "a") -> NodeView:
    return NodeView(name, zone, f"/disks/{name}", alive, regions, 1 << 40)


def test_given_a_route_then_only_regions_of_the_source_or_of_dead_nodes_leave() -> None:
    route = table_route(TABLE, ("dn-1", "dn-2", "dn-3"))
    nodes = [view("dn-1"), view("dn-2"), view("dn-3", alive=False)]

    plan = reroute_plan(route, nodes, DrainTarget("dn-1", region_ids(TABLE, 3)))

    assert [one.led_by for one in plan] == ["dn-1", "dn-3"]
    assert {one.region.leader for one in plan} == {"dn-2"}
    assert all(one.region.epoch == 2 for one in plan)
    assert all(one.region.borrows == one.leaves for one in plan)


def test_given_regions_that_had_left_then_the_source_takes_them_back_if_nobody_else_can() -> None:
    route = table_route(TABLE, ("dn-2", "dn-2"))
    ids = region_ids(TABLE, 2)
    nodes = [view("dn-1"), view("dn-2", alive=False)]

    plan = reroute_plan(route, nodes, DrainTarget("dn-1", ids, (), ids))
    others = reroute_plan(route, [*nodes, view("dn-3")], DrainTarget("dn-1", ids, (), ids))
    back = route.with_regions(tuple(one.region for one in plan))

    assert {one.region.leader for one in plan} == {"dn-1"}
    assert {one.region.leader for one in others} == {"dn-3"}
    assert reroute_plan(back, nodes, DrainTarget("dn-1", ids, (), ids)) == (), "it has come to stay"
    for targets, moving in ((("dn-2",), ids), ((), ids[:1])):
        with pytest.raises(Unavailable) as raised:
            reroute_plan(route, nodes, DrainTarget("dn-1", ids, targets, moving))
        assert "excluded" in str(raised.value.facts["reasons"])


def test_given_a_filter_then_a_region_waits_rather_than_leave_it_also_for_a_wanted_target() -> None:
    """A filter is how rows are kept in a country: no failover takes them out of it."""
    route = table_route(TABLE, ("dn-1",))
    ids = region_ids(TABLE, 1)
    nodes = [view("dn-1", alive=False, zone="eu"), view("dn-2", zone="us")]
    only = NodeFilter(zones=("eu",))

    for targets, moving in (((), ()), (("dn-2",), ()), ((), ids)):
        with pytest.raises(Unavailable) as raised:
            reroute_plan(route, nodes, DrainTarget("dn-1", ids, targets, moving, LSM, only))
        reasons = raised.value.facts["reasons"]
        assert isinstance(reasons, dict)
        assert reasons["dn-2"] == "outside the node filter: zone eu wanted"
    (plan,) = reroute_plan(
        route, [*nodes, view("dn-3", zone="eu")], DrainTarget("dn-1", ids, node_filter=only)
    )
    assert plan.region.leader == "dn-3"


def test_given_roots_that_were_never_announced_then_the_route_says_so_until_they_are_left() -> None:
    (region,) = table_route(TABLE, ("dn-1",)).region_routes
    wanted = DrainTarget("dn-1", (region.region_id,))

    second = moved_on(region, "dn-2", wanted)
    third = moved_on(second, "dn-3", wanted)
    opened = third.model_copy(update={"state": RegionState.OPEN, "announced": True})
    fourth = moved_on(opened, "dn-4", wanted)

    assert (second.borrows, second.unannounced) == ((region.root,), ())
    assert third.borrows == (region.root, second.root)
    assert third.unannounced == (second.root,)
    assert fourth.borrows == (region.root, second.root, third.root)
    assert fourth.unannounced == (second.root,)


def moved_on(region: RegionRoute, node: str, wanted: DrainTarget) -> RegionRoute:
    """Its leader is gone, and *node* is the only one left."""
    route = TableRoute(table_id=TABLE, version=1, region_routes=(region,))
    (moved,) = reroute_plan(route, [view(node)], wanted)
    assert moved.leaves == (region.root,)
    return moved.region


def test_given_nodes_then_the_one_with_fewest_regions_takes_the_next() -> None:
    nodes = [view("b", regions=1), view("a", regions=1), view("c", regions=0, zone="z")]

    chosen = place(nodes, 4)

    assert [node.node_id for node in chosen] == ["c", "a", "b", "c"]


def test_given_a_node_that_came_back_empty_then_it_does_not_take_a_whole_table() -> None:
    nodes = [view("a", regions=90), view("b", regions=90), view("c", regions=0)]

    chosen = place(nodes, 4)

    assert [node.node_id for node in chosen] == ["c", "a", "b", "c"]


def replicated(*copies: tuple[str, CopyRole]) -> RegionRoute:
    """A region that dn-1 leads."""
    return copied_route(TABLE, ("dn-1",), (copies,)).region_routes[0]


def replaced(region: RegionRoute, *nodes: NodeView, targets: tuple[str, ...] = ()) -> Rerouted:
    route = TableRoute(table_id=TABLE, version=1, region_routes=(region,))
    (plan,) = reroute_plan(route, nodes, DrainTarget("dn-1", (region.region_id,), targets))
    return plan


DEAD = view("dn-1", alive=False)


def test_given_a_copy_in_the_set_when_its_leader_dies_then_it_leads_one_epoch_higher() -> None:
    region = replicated(("dn-2", LEARNER), ("dn-3", IN_SYNC))
    nodes = (DEAD, view("dn-2"), view("dn-3", regions=9), view("dn-4"))

    plan = replaced(region, *nodes)

    moved = plan.region
    assert plan.is_promoted
    assert (moved.leader, moved.root) == ("dn-3", region.copies[1].root)
    assert (moved.epoch, moved.state) == (2, RegionState.OPENING)
    assert (moved.borrows, plan.leaves) == ((), ())
    assert moved.announced, "its root has acknowledged rows: nobody may pass it over"
    former = RegionCopy(node="dn-1", root=region.root, role=LEARNER)
    assert moved.copies == (region.copies[0], former)
    assert moved.copies_version == region.copies_version + 1


def test_given_leaders_of_a_partition_group_then_the_copy_beside_most_of_them_leads() -> None:
    region = replicated(("dn-2", IN_SYNC), ("dn-3", IN_SYNC))
    route = TableRoute(table_id=TABLE, version=1, region_routes=(region,))
    busy, cordoned = view("dn-3", regions=9), replace(view("dn-3"), cordoned=True)
    groups = {region.number: {"dn-2": 1, "dn-3": 2}}
    target = DrainTarget("dn-1", (region.region_id,), groups=groups)

    (beside,) = reroute_plan(route, (DEAD, view("dn-2"), busy), target)
    (free,) = reroute_plan(route, (DEAD, view("dn-2"), cordoned), target)

    assert (beside.region.leader, free.region.leader) == ("dn-3", "dn-2")


def test_given_several_in_the_set_then_a_wanted_one_a_free_one_and_the_least_loaded_lead() -> None:
    region = replicated(("dn-2", IN_SYNC), ("dn-3", IN_SYNC), ("dn-4", IN_SYNC))
    cordoned = replace(view("dn-2"), cordoned=True)
    nodes = (view("dn-1"), cordoned, view("dn-3", regions=2), view("dn-4", regions=1))

    assert replaced(region, *nodes).region.leader == "dn-4"
    assert replaced(region, *nodes, targets=("dn-3",)).region.leader == "dn-3"
    assert replaced(region, DEAD, cordoned).region.leader == "dn-2"


def test_given_a_set_of_which_nobody_lives_then_nobody_takes_the_region_over() -> None:
    """A learner, or another node that can read the root, would answer beside the old leader."""
    region = replicated(("dn-2", LEARNER), ("dn-3", IN_SYNC))

    with pytest.raises(Unavailable) as raised:
        replaced(region, DEAD, view("dn-2"), view("dn-3", alive=False), view("dn-4"))

    assert raised.value.facts["reasons"] == {"dn-1": "not alive", "dn-3": "not alive"}


def test_given_a_leader_alone_in_its_set_then_another_node_borrows_and_learners_stay() -> None:
    region = replicated(("dn-2", LEARNER), ("dn-3", LEARNER))

    plan = replaced(region, DEAD, view("dn-2"), view("dn-3", regions=1))

    assert not plan.is_promoted
    assert (plan.region.leader, plan.region.borrows) == ("dn-2", (region.root,))
    assert plan.region.copies == (region.copies[1],), "no node has two copies of a region"
    assert plan.leaves == (region.root, region.copies[0].root)


def restarted(region: RegionRoute) -> NodeView:
    """The leader, whose process has started again since it led."""
    return replace(view("dn-1"), restarted={region.region_id: region.epoch})


def test_given_a_leader_that_started_again_when_another_of_the_set_lives_then_that_one_leads() -> (
    None
):
    region = replicated(("dn-2", IN_SYNC))

    plan = replaced(region, restarted(region), view("dn-2"))

    assert (plan.region.leader, plan.region.epoch) == ("dn-2", 2)


def test_given_a_leader_that_started_again_when_nobody_else_of_the_set_lives_then_it_leads_again() -> (  # noqa: E501
    None
):
    region = replicated(("dn-2", IN_SYNC), ("dn-3", LEARNER))

    plan = replaced(region, restarted(region), view("dn-2", alive=False), view("dn-3"))

    moved = plan.region
    assert plan.is_promoted, "its former process has ended, and no lease of it with it"
    assert (moved.leader, moved.root, moved.epoch) == ("dn-1", region.root, 2)
    assert moved.state is RegionState.OPENING
    assert (moved.copies, moved.copies_version) == (region.copies, region.copies_version)


def test_given_a_leader_alone_that_started_again_then_it_leads_again_and_nothing_is_moved() -> None:
    region = replicated(("dn-2", LEARNER))

    again = replaced(region, restarted(region), view("dn-2"), view("dn-3"))
    moved = replaced(region, restarted(region), view("dn-3"), targets=("dn-3",))

    assert (again.region.leader, again.region.epoch, again.leaves) == ("dn-1", 2, ())
    assert again.region.borrows == ()
    assert moved.region.leader == "dn-3", "an operator wants it elsewhere"


def test_given_a_promoted_copy_that_started_again_before_it_opened_then_the_next_leads() -> None:
    region = replicated(("dn-2", IN_SYNC), ("dn-3", LEARNER))
    ids = (region.region_id,)
    target = DrainTarget("dn-9", ids, moving=ids)
    route = TableRoute(table_id=TABLE, version=1, region_routes=(region,))

    assert reroute_plan(route, [view("dn-1"), view("dn-2")], target) == ()
    (plan,) = reroute_plan(route, [restarted(region), view("dn-2")], target)

    assert (plan.region.leader, plan.region.epoch) == ("dn-2", 2)


def test_given_a_borrower_that_started_again_then_a_copy_that_has_joined_it_leads_or_nobody() -> (
    None
):
    """It opens no borrowed root beside a copy of its set, at whatever epoch."""
    region = replicated(("dn-2", IN_SYNC)).model_copy(update={"borrows": ("/disks/dn-9/r",)})
    ids = (region.region_id,)
    target = DrainTarget("dn-9", ids, moving=ids)
    route = TableRoute(table_id=TABLE, version=1, region_routes=(region,))

    (plan,) = reroute_plan(route, [restarted(region), view("dn-2")], target)

    assert (plan.region.leader, plan.region.borrows) == ("dn-2", ())
    assert plan.leaves == ("/disks/dn-9/r",)
    with pytest.raises(Unavailable):
        reroute_plan(route, [restarted(region), replace(view("dn-2"), alive=False)], target)


def test_given_a_report_of_an_old_epoch_then_the_leader_stays() -> None:
    region = replicated(("dn-2", IN_SYNC)).model_copy(update={"epoch": 2})
    ids = (region.region_id,)
    route = TableRoute(table_id=TABLE, version=1, region_routes=(region,))
    leader = replace(view("dn-1"), restarted={region.region_id: 1})

    assert reroute_plan(route, [leader, view("dn-2")], DrainTarget("dn-9", ids, moving=ids)) == ()


def test_given_a_promoted_copy_whose_disk_is_lost_when_another_of_the_set_lives_then_that_leads() -> (  # noqa: E501
    None
):
    region = replicated(("dn-2", LEARNER), ("dn-3", IN_SYNC))
    lost = region.model_copy(update={"state": RegionState.LOST})
    ids = (region.region_id,)
    target = DrainTarget("dn-9", ids, moving=ids)
    route = TableRoute(table_id=TABLE, version=1, region_routes=(lost,))
    alive = [view("dn-1"), view("dn-2"), view("dn-3")]

    (plan,) = reroute_plan(route, alive, target)

    assert (plan.region.leader, plan.region.epoch) == ("dn-3", 2)
    assert plan.region.state is RegionState.OPENING
    assert RegionCopy(node="dn-1", root=region.root, role=LEARNER) in plan.region.copies
    nobody = [view("dn-1"), view("dn-2"), view("dn-3", alive=False)]
    assert reroute_plan(route, nobody, target) == (), "its disk may be back before that node"


def lost(node: str, region: RegionRoute, epoch: int = 1) -> NodeView:
    """A living node that reports the region as lost."""
    return replace(view(node), lost={region.region_id: epoch})


def test_given_a_leader_that_has_lost_its_files_then_a_copy_that_has_them_leads() -> None:
    region = replicated(("dn-2", IN_SYNC), ("dn-3", IN_SYNC))
    ids = (region.region_id,)
    route = TableRoute(table_id=TABLE, version=1, region_routes=(region,))
    moved = DrainTarget("dn-9", ids, moving=ids)

    (plan,) = reroute_plan(route, [lost("dn-1", region), lost("dn-2", region), view("dn-3")], moved)

    assert (plan.region.leader, plan.region.epoch, plan.is_promoted) == ("dn-3", 2, True)
    assert ("dn-1", LEARNER) in [(copy.node, copy.role) for copy in plan.region.copies]


def test_given_lost_files_that_no_other_living_copy_has_then_the_leader_stays() -> None:
    """It opens the region again once its storage is back."""
    region = replicated(("dn-2", IN_SYNC), ("dn-3", LEARNER))
    ids = (region.region_id,)
    route = TableRoute(table_id=TABLE, version=1, region_routes=(region,))
    moved = DrainTarget("dn-9", ids, moving=ids)
    leader, learner = lost("dn-1", region), view("dn-3")

    assert reroute_plan(route, [leader, lost("dn-2", region), learner], moved) == ()
    assert reroute_plan(route, [leader, view("dn-2", alive=False), learner], moved) == ()
    old = lost("dn-1", region, epoch=7)
    assert reroute_plan(route, [old, view("dn-2"), learner], moved) == (), "of another epoch"


def test_given_a_dead_leader_and_a_copy_that_is_lost_then_the_region_waits_and_says_why() -> None:
    region = replicated(("dn-2", IN_SYNC))

    with pytest.raises(Unavailable) as raised:
        replaced(region, DEAD, lost("dn-2", region))

    assert raised.value.facts["reasons"] == {"dn-1": "not alive", "dn-2": "its copy is lost"}


def test_given_only_copies_when_nobody_has_their_group_then_by_their_tablespace() -> None:
    route = table_route(TABLE, ("dn-1",))
    (number,) = (region.number for region in route.region_routes)
    nodes = [view("dn-1", alive=False), view("dn-2"), view("dn-3", regions=9)]
    groups = {number: {"dn-1": 1}, number + 1: {"dn-2": 1}}

    (usual,) = reroute_plan(route, nodes, DrainTarget("dn-1", region_ids(TABLE, 1)))
    (plan,) = reroute_plan(route, nodes, DrainTarget("dn-1", region_ids(TABLE, 1), groups=groups))

    assert (usual.region.leader, plan.region.leader) == ("dn-2", "dn-3")
