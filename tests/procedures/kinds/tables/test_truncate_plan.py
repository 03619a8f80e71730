"""The plan of a truncate for regions with copies: who leads, which roots are new, which go."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.model.tables import CopyRole, RegionRoute
from metasrv_base.errors import Unavailable
from procedures.kinds.tables.truncate_plan import Cut, cut_plan
from procedures.ports import NodeView
from tests.procedures.harness.copies.copied_tables import IN_SYNC, LEARNER, copied_route
from tests.procedures.harness.ends import TABLE

NODES = tuple(
    NodeView(f"dn-{one}", "a", f"/disks/dn-{one}", alive=True, regions=one, disk_free_bytes=1 << 40)
    for one in range(1, 5)
)
ROLES = st.lists(st.sampled_from([IN_SYNC, LEARNER]), max_size=2)


def region_with(roles: list[CopyRole]) -> RegionRoute:
    copies = [(f"dn-{number}", role) for number, role in enumerate(roles, start=2)]
    return copied_route(TABLE, ("dn-1",), (copies,)).region_routes[0]


def living(names: set[str]) -> tuple[NodeView, ...]:
    return tuple(replace(node, alive=node.node_id in names) for node in NODES)


def cut(roles: list[CopyRole], alive: set[str]) -> Cut:
    (planned,) = cut_plan((region_with(roles),), living(alive), again=False)
    return planned


@given(roles=ROLES, alive=st.sets(st.sampled_from([node.node_id for node in NODES]), min_size=1))
def test_given_any_copies_when_cut_then_all_roots_are_new_and_the_set_only_shrinks(
    roles: list[CopyRole], alive: set[str]
) -> None:
    try:
        planned = cut(roles, alive)
    except Unavailable:
        assert alive.isdisjoint(region_with(roles).in_sync)
        return
    before, region = planned.before, planned.region

    assert region.leader in alive
    assert len(before.in_sync) == 1 or region.leader in before.in_sync
    assert set(region.in_sync) <= {*before.in_sync, region.leader}
    assert len(set(region.nodes)) == len(region.nodes)
    assert set(region.roots).isdisjoint(before.roots)
    assert all(f"/{node}/" in root for node, root in zip(region.nodes, region.roots, strict=True))
    assert region.epoch == before.epoch + 1
    assert region.copies_version == before.copies_version + bool(before.copies)
    left = [text.split(" ")[-1] for text in (*planned.leaves, *planned.copies_left)]
    assert sorted(left) == sorted(before.roots), "every old folder goes, once"


def test_given_a_leader_that_is_gone_when_cut_then_the_least_loaded_of_its_set_leads() -> None:
    planned = cut([IN_SYNC, IN_SYNC], {"dn-2", "dn-3", "dn-4"})

    assert planned.region.leader == "dn-2"
    assert planned.is_promoted
    assert [(copy.node, copy.role) for copy in planned.region.copies] == [
        ("dn-3", IN_SYNC),
        ("dn-1", LEARNER),
    ]


def test_given_a_leader_that_was_alone_when_cut_then_its_lease_is_waited_for() -> None:
    planned = cut([LEARNER], {"dn-2", "dn-3"})

    assert planned.region.leader == "dn-2"
    assert planned.region.copies == ()
    assert not planned.is_promoted
    assert planned.copies_left == (f"{planned.before.region_id} dn-2 {planned.before.roots[1]}",)


def test_given_no_living_copy_of_the_set_when_cut_then_it_waits_for_one() -> None:
    with pytest.raises(Unavailable) as refused:
        cut([IN_SYNC, LEARNER], {"dn-3", "dn-4"})

    assert refused.value.code == "node-not-eligible"
    assert refused.value.facts["reasons"] == {"dn-1": "not alive", "dn-2": "not alive"}
