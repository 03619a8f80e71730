"""Copies that may lead if the leader is lost, which is alone in its set: they are not replaced."""

from collections.abc import Collection
from dataclasses import replace

from keys.model.tables import CopyRole
from metasrv.leadership.copies.copy_plan import CopiedRegion, CopyNodes, need_of, plan_copies
from procedures.kinds.copies.add_copy import AddCopy
from tests.metasrv.leadership.copies.copied_regions import (
    IN_SYNC,
    LEARNER,
    no_neighbours,
    nodes_of,
    region_of,
    view,
)

TWO, THREE = [tuple(view(f"dn-{n}") for n in range(1, count + 1)) for count in (2, 3)]


def eligible_region(*copies: tuple[str, CopyRole], replicas: int = 2) -> CopiedRegion:
    """A region whose first copy may lead."""
    copied = region_of(*copies, replicas=replicas)
    first, *rest = copied.region.copies
    marked = first.model_copy(update={"eligible_epoch": copied.region.epoch})
    return replace(copied, region=copied.region.with_copies((marked, *rest)))


def additions(
    copied: CopiedRegion, nodes: CopyNodes, unmade: str, given_up: Collection[str] = ()
) -> list[tuple[str, str | None, bool]]:
    """Node, replaced root and whether that is given up, of each addition that is planned."""
    need = need_of(copied, nodes, {unmade}, given_up)
    planned = plan_copies(() if need is None else (need,), nodes, no_neighbours())
    assert all(isinstance(work, AddCopy) for work in planned)
    return [
        (work.node, work.replaces, work.gives_up) for work in planned if isinstance(work, AddCopy)
    ]


def test_given_a_copy_that_may_lead_and_is_absent_then_one_is_added_elsewhere() -> None:
    copied = eligible_region(("dn-2", LEARNER))
    root = copied.region.copies[0].root

    assert additions(copied, nodes_of(*THREE), root, {root}) == [("dn-3", None, False)]


def test_given_no_other_node_then_it_is_made_anew_once_it_is_given_up() -> None:
    """Else a table of two copies on two nodes would take no writes until a person comes."""
    copied = eligible_region(("dn-2", LEARNER))
    root = copied.region.copies[0].root

    assert additions(copied, nodes_of(*TWO), root) == []
    assert additions(copied, nodes_of(*TWO), root, {root}) == [("dn-2", root, True)]


def test_given_the_other_one_on_its_way_then_it_stays_until_given_up() -> None:
    copied = eligible_region(("dn-2", LEARNER), ("dn-3", LEARNER))
    root = copied.region.copies[0].root

    assert additions(copied, nodes_of(*THREE), root) == []
    assert additions(copied, nodes_of(*THREE), root, {root}) == [("dn-2", root, True)]


def test_given_another_copy_in_sync_or_another_epoch_then_it_is_made_anew_at_once() -> None:
    beside = eligible_region(("dn-2", LEARNER), ("dn-3", IN_SYNC), replicas=3)
    alone = eligible_region(("dn-2", LEARNER))
    later = replace(alone, region=alone.region.model_copy(update={"epoch": 2}))

    for copied in (beside, later):
        root = copied.region.copies[0].root
        assert additions(copied, nodes_of(*THREE), root) == [("dn-2", root, False)]


def test_given_no_node_for_a_missing_copy_then_a_learner_that_is_absent_is_made_anew() -> None:
    copied = region_of(("dn-2", LEARNER), ("dn-3", LEARNER), replicas=3)
    root = copied.region.copies[0].root
    nodes = nodes_of(*THREE, offline={"dn-3"})

    assert additions(copied, nodes, root) == [("dn-2", root, False)]


def test_given_dead_nodes_and_no_room_then_a_copy_that_may_lead_is_not_the_one_that_goes() -> None:
    copied = eligible_region(("dn-2", LEARNER), ("dn-3", LEARNER))
    need = need_of(copied, nodes_of(*THREE, offline={"dn-2", "dn-3"}))

    assert need is not None
    assert need.surplus is not None
    assert need.surplus.node == "dn-3"
