"""Copies to add and to remove: the most endangered first, one added before another goes. Pure."""

from dataclasses import replace
from random import Random

from keys.model.tables import RegionState
from metasrv.leadership.copies.copy_plan import (
    LEARNERS_MAX,
    PLANNED_MAX,
    CopiedRegion,
    CopyNodes,
    CopyWork,
    need_of,
    plan_copies,
)
from procedures.kinds.copies.add_copy import AddCopy
from procedures.kinds.copies.remove_copy import RemoveCopy
from procedures.steps.placing import NodeRules
from tests.metasrv.leadership.copies.copied_regions import (
    IN_SYNC,
    LEARNER,
    carried_out,
    no_neighbours,
    nodes_of,
    region_of,
    roles,
    view,
)

FOUR = tuple(view(f"dn-{number}") for number in range(1, 5))


def planned(*regions: CopiedRegion, nodes: CopyNodes, unmade: str = "") -> tuple[CopyWork, ...]:
    needs = [need_of(region, nodes, {unmade}) for region in regions]
    return plan_copies([need for need in needs if need is not None], nodes, no_neighbours())


def words(work: CopyWork) -> tuple[str, str]:
    return "add" if isinstance(work, AddCopy) else "remove", work.node


def test_given_a_region_with_all_its_copies_then_nothing_is_to_be_done() -> None:
    assert planned(region_of(("dn-2", IN_SYNC)), nodes=nodes_of(*FOUR)) == ()


def test_given_a_node_that_is_dead_for_less_than_the_time_then_its_copy_is_waited_for() -> None:
    views = (FOUR[0], view("dn-2", alive=False), *FOUR[2:])

    assert planned(region_of(("dn-2", LEARNER)), nodes=nodes_of(*views)) == ()


def test_given_a_lost_copy_then_one_is_added_elsewhere_and_it_goes_when_that_has_joined() -> None:
    views = (FOUR[0], view("dn-2", alive=False), view("dn-3", regions=9), FOUR[3])
    nodes = nodes_of(*views, offline={"dn-2"})
    lost = region_of(("dn-2", LEARNER))
    learning = region_of(("dn-2", LEARNER), ("dn-4", LEARNER))
    joined = region_of(("dn-2", LEARNER), ("dn-4", IN_SYNC))

    assert [words(work) for work in planned(lost, nodes=nodes)] == [("add", "dn-4")]
    assert planned(learning, nodes=nodes) == ()
    assert [words(work) for work in planned(joined, nodes=nodes)] == [("remove", "dn-2")]


def test_given_a_node_that_is_registered_no_more_then_its_copies_are_lost() -> None:
    nodes = nodes_of(FOUR[0], FOUR[2])

    assert [words(work) for work in planned(region_of(("dn-2", LEARNER)), nodes=nodes)] == [
        ("add", "dn-3")
    ]


def test_given_a_leader_that_is_lost_then_its_region_is_a_failovers() -> None:
    nodes = nodes_of(*FOUR, offline={"dn-1", "dn-2"})

    assert planned(region_of(("dn-2", LEARNER)), nodes=nodes) == ()


def test_given_regions_that_no_copy_may_be_added_to_then_they_are_left() -> None:
    lacking = region_of(("dn-2", LEARNER))
    nodes = nodes_of(*FOUR, offline={"dn-2"})
    opening = lacking.region.model_copy(update={"state": RegionState.OPENING})
    unverified = lacking.region.model_copy(update={"unverified": True})
    volatile = lacking.info.model_copy(update={"engine": "memory"})

    assert planned(replace(lacking, region=opening), nodes=nodes) == ()
    assert planned(replace(lacking, region=unverified), nodes=nodes) == ()
    assert planned(replace(lacking, info=volatile), nodes=nodes) == ()


def test_given_several_regions_then_the_one_with_fewest_copies_in_sync_comes_first() -> None:
    nodes = nodes_of(*FOUR, offline={"dn-2"})
    two_left = region_of(("dn-2", LEARNER), ("dn-3", IN_SYNC), replicas=3, number=0)
    one_left = region_of(("dn-2", LEARNER), ("dn-3", LEARNER), replicas=3, number=2)
    surplus = region_of(("dn-2", LEARNER), ("dn-3", IN_SYNC), replicas=2, number=1)

    plan = planned(surplus, two_left, one_left, nodes=nodes)

    regions = [one_left, two_left, surplus]
    assert [work.region_id for work in plan] == [each.region.region_id for each in regions]


def test_given_a_node_with_many_learners_then_it_gets_no_more() -> None:
    nodes = nodes_of(FOUR[0], FOUR[1], offline={"dn-3"})
    regions = [region_of(("dn-3", LEARNER), number=number) for number in range(8)]

    plan = planned(*regions, nodes=nodes)
    beside = planned(*regions, nodes=replace(nodes, learners={"dn-2": LEARNERS_MAX - 1}))

    assert [words(work) for work in plan] == [("add", "dn-2")] * LEARNERS_MAX
    assert [words(work) for work in beside] == [("add", "dn-2")]


def test_given_many_regions_then_a_plan_has_so_many_procedures() -> None:
    views = [view(f"dn-{number}") for number in range(1, 30)]
    regions = [region_of(number=number % 8) for number in range(2 * PLANNED_MAX)]

    assert len(planned(*regions, nodes=nodes_of(*views))) == PLANNED_MAX


def test_given_zones_then_a_copy_comes_to_one_that_has_none_where_there_is_one() -> None:
    views = (view("dn-1", "a"), view("dn-2", "a"), view("dn-3", "b", regions=99))
    plan = planned(region_of(), nodes=nodes_of(*views))
    near = planned(region_of(), nodes=nodes_of(*views[:2]))

    assert [words(work) for work in plan] == [("add", "dn-3")]
    assert [words(work) for work in near] == [("add", "dn-2")]


def test_given_a_learner_that_its_node_does_not_have_then_it_is_made_anew_there() -> None:
    region = region_of(("dn-2", LEARNER))
    root = region.region.copies[0].root

    (work,) = planned(region, nodes=nodes_of(*FOUR), unmade=root)

    assert isinstance(work, AddCopy)
    assert (work.node, work.replaces) == ("dn-2", root)
    assert planned(region, nodes=nodes_of(FOUR[0], view("dn-2", cordoned=True)), unmade=root) == ()


def test_given_fewer_copies_wanted_then_a_cordoned_one_goes_first() -> None:
    region = region_of(("dn-2", IN_SYNC), ("dn-3", IN_SYNC), replicas=2)
    views = (FOUR[0], view("dn-2", regions=99), view("dn-3", cordoned=True))

    (work,) = planned(region, nodes=nodes_of(*views))

    assert isinstance(work, RemoveCopy)
    assert work.node == "dn-3"


def test_given_fewer_copies_wanted_and_preferred_zones_then_one_outside_of_them_goes() -> None:
    region = region_of(("dn-2", IN_SYNC), ("dn-3", IN_SYNC), replicas=2)
    preferring = replace(region, rules=NodeRules(preferred_zones=("dn-2",)))
    views = (FOUR[0], view("dn-2", regions=99), view("dn-3"))

    usual = planned(region, nodes=nodes_of(*views))
    kept = planned(preferring, nodes=nodes_of(*views))

    assert [words(work) for work in usual] == [("remove", "dn-2")]
    assert [words(work) for work in kept] == [("remove", "dn-3")]


def test_given_a_copy_outside_its_placement_then_one_inside_joins_before_it_goes() -> None:
    views = (view("dn-1", "a"), view("dn-2", "b"), view("dn-3", "a"))
    nodes, zones = nodes_of(*views), ("a",)
    outside = region_of(("dn-2", IN_SYNC), zones=zones)
    learning = region_of(("dn-2", IN_SYNC), ("dn-3", LEARNER), zones=zones)
    joined = region_of(("dn-2", IN_SYNC), ("dn-3", IN_SYNC), zones=zones)

    assert [words(work) for work in planned(outside, nodes=nodes)] == [("add", "dn-3")]
    assert planned(learning, nodes=nodes) == ()
    assert [words(work) for work in planned(joined, nodes=nodes)] == [("remove", "dn-2")]


def drawn(draw: Random) -> tuple[CopiedRegion, CopyNodes]:
    """A region and nodes in any state; its leader lives."""
    names = [f"dn-{number}" for number in range(1, draw.randint(2, 8))]
    views = [view(name, draw.choice("abc"), draw.randrange(9)) for name in names]
    offline = {name for name in names[1:] if draw.random() < 0.3}
    views = [replace(each, alive=each.node_id not in offline) for each in views]
    holders = draw.sample(names[1:], draw.randint(0, min(3, len(names) - 1)))
    copies = [(name, draw.choice((IN_SYNC, LEARNER))) for name in holders]
    zones = draw.choice(((), (), ("a", "b")))
    replicas = max(draw.randint(1, 3), len(copies))
    region = region_of(*copies, replicas=replicas, zones=zones)
    return region, nodes_of(*views, offline=offline)


def test_given_any_region_when_its_plans_are_carried_out_then_it_comes_to_rest() -> None:
    """Living learners join between two plans. In-sync copies that live never become fewer than the
    table is to have, the limit of `add_copy` is never met, and nothing is done and undone for
    ever."""
    for seed in range(2_000):
        copied, nodes = drawn(Random(seed))
        count = copied.info.replicas
        for _ in range(20):
            plan = planned(copied, nodes=nodes)
            in_sync = copied.region.in_sync
            for work in plan:
                assert (
                    isinstance(work, AddCopy) or len(in_sync) > count or work.node not in in_sync
                ), seed
                copied = replace(copied, region=carried_out(copied.region, work))
            assert len(copied.region.nodes) <= count + 1, seed
            before, copied = copied, _joined(copied, nodes)
            if not plan and copied == before:
                break
        assert planned(copied, nodes=nodes) == (), (seed, roles(copied.region))
        able = [
            each
            for each in nodes.views.values()
            if each.alive and (not copied.rules.node_filter.zones or each.zone in "ab")
        ]
        others = [each for each in able if each.node_id != copied.region.leader]
        living = [node for node in copied.region.in_sync if not nodes.is_lost(node)]
        if len(others) >= count - 1 and not _has_lost_member(copied, nodes):
            assert len(living) == count, (seed, roles(copied.region))


def _joined(copied: CopiedRegion, nodes: CopyNodes) -> CopiedRegion:
    copies = tuple(
        copy if nodes.is_lost(copy.node) else copy.model_copy(update={"role": IN_SYNC})
        for copy in copied.region.copies
    )
    return replace(copied, region=copied.region.with_copies(copies))


def _has_lost_member(copied: CopiedRegion, nodes: CopyNodes) -> bool:
    """Whether a lost copy is in the set: its leader has it leave first."""
    return any(nodes.is_lost(node) for node in copied.region.in_sync)
