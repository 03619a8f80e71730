"""Orders to the copies of a region, beside those to its leader."""

import json

import pytest

from keys.model.tables import RegionRoute
from procedures.quorum import majority, min_in_sync
from procedures.steps.copies.copy_orders import create_copy, living, open_copy, targets_of
from procedures.steps.region_orders import create_order, open_order, told_copies
from tests.keys.model.copied_routes import COPIED, FIRST, IN_SYNC, LEARNER
from tests.metasrv.nodes.samples import info

REPLICATED = info().model_copy(update={"replicas": 3})
ROUTE = FIRST.with_copies((IN_SYNC, LEARNER))


def test_given_a_region_of_one_copy_when_ordered_then_nothing_is_said_of_copies() -> None:
    for order in (create_order(info(), FIRST), open_order(info(), FIRST)):
        assert {"role", "copies"}.isdisjoint(json.loads(order.model_dump_json()))


def test_given_a_region_with_copies_when_ordered_then_leader_and_copies_are_told_of_all() -> None:
    leader, in_sync, learner = targets_of(REPLICATED, (ROUTE,))

    for make in (create_copy, open_copy):
        orders = [make(target) for target in (leader, in_sync, learner)]

        assert [order.role for order in orders] == ["leader", "copy", "copy"]
        assert [order.root for order in orders] == list(ROUTE.roots)
        (copies,) = {order.copies.model_dump_json() for order in orders if order.copies}
        told = json.loads(copies)
        assert (told["version"], told["min_in_sync"]) == (1, 2)
        assert [(copy["node"], copy["role"]) for copy in told["members"]] == [
            ("dn-1", "leader"),
            ("dn-2", "in-sync"),
            ("dn-3", "learner"),
        ]


def test_given_roots_that_the_leader_borrows_when_a_copy_is_opened_then_it_reads_none() -> None:
    borrowing = ROUTE.model_copy(update={"borrows": ("/dn-4/a",), "unannounced": ("/dn-5/a",)})
    leader, copy, _ = map(open_copy, targets_of(REPLICATED, (borrowing,)))

    assert (leader.borrows, leader.unannounced) == (["/dn-4/a"], ["/dn-5/a"])
    assert (copy.borrows, copy.unannounced) == ([], [])


def test_given_dead_nodes_when_targets_are_chosen_then_the_living_ones_are_named() -> None:
    targets = living(targets_of(REPLICATED, (ROUTE,)), {"dn-1", "dn-3"})

    assert [target.name for target in targets] == [ROUTE.region_id, f"{ROUTE.region_id} at dn-3"]


@pytest.mark.parametrize(("region", "members"), [(ROUTE.with_copies(()), 1), (COPIED, 3)])
def test_given_copies_that_are_gone_when_ordered_then_the_leader_is_told_it_is_alone(
    region: RegionRoute, members: int
) -> None:
    told = told_copies(REPLICATED, region)

    assert len(told.members) == members


def test_given_changes_of_copies_then_each_has_a_version_and_other_changes_have_none() -> None:
    again = ROUTE.with_copies(ROUTE.copies, epoch=4)

    assert (again.copies_version, again.epoch) == (1, 4)
    assert again.with_copies(()).copies_version == 2


def test_given_a_number_of_copies_then_the_minimum_is_more_than_half() -> None:
    assert [majority(count) for count in (1, 2, 3, 5)] == [1, 2, 2, 3]
    assert min_in_sync(REPLICATED) == 2


def test_given_a_copy_that_may_lead_when_ordered_then_the_leader_alone_is_told() -> None:
    """A node that has not asked for it may not know the field, and refuse the order."""
    left = LEARNER.model_copy(update={"eligible_epoch": FIRST.epoch})
    orders = [
        json.loads(open_copy(target).model_dump_json())
        for target in targets_of(REPLICATED, (FIRST.with_copies((IN_SYNC, left)),))
    ]
    marked = [
        [copy["node"] for copy in order["copies"]["members"] if "eligible" in copy]
        for order in orders
    ]

    assert marked == [["dn-3"], [], []]
