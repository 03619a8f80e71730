"""The choice of dead nodes to fail over, and each rule that holds others back, by itself."""

from metasrv.leadership.supervisor import decide
from metasrv.nodes.status import Hold, NodeState, NodeStatus
from tests.metasrv.nodes.samples import node

ALIVE, DEAD = NodeState.ALIVE, NodeState.DEAD
FOUR = ("dn-1", "dn-2", "dn-3", "dn-4")
MAINTENANCE = Hold("maintenance", "it is switched off")


def status(node_id: str, state: NodeState) -> NodeStatus:
    return NodeStatus(node(node_id), state, 0.0, 0, 0, None, {})


def cluster(*dead: str) -> list[NodeStatus]:
    return [status(name, DEAD if name in dead else ALIVE) for name in FOUR]


def test_given_one_dead_node_with_regions_when_looking_then_it_is_failed_over() -> None:
    decision = decide(cluster("dn-2"), {"dn-1", "dn-2"}, set(), hold=None)

    assert decision.start == ("dn-2",)
    assert decision.held == ()


def test_given_a_dead_node_without_regions_when_looking_then_nothing_happens() -> None:
    assert decide(cluster("dn-2"), {"dn-1"}, set(), hold=None).start == ()


def test_given_a_failover_under_way_when_looking_then_no_second_one() -> None:
    assert decide(cluster("dn-2"), {"dn-2"}, {"dn-2"}, hold=None).start == ()


def test_given_grace_or_maintenance_when_looking_then_it_is_held_and_said_why() -> None:
    decision = decide(cluster("dn-2"), {"dn-2"}, set(), hold=MAINTENANCE)

    assert decision.start == ()
    assert (decision.held, decision.hold) == (("dn-2",), MAINTENANCE)


def test_given_half_of_the_nodes_dead_when_looking_then_both_at_once() -> None:
    together = decide(cluster("dn-2", "dn-3"), FOUR, set(), hold=None)
    later = decide(cluster("dn-2", "dn-3"), FOUR, {"dn-2"}, hold=None)

    assert together.start == ("dn-2", "dn-3")
    assert later.start == ("dn-3",)


def test_given_more_than_half_dead_at_once_when_looking_then_all_are_held() -> None:
    dead = ("dn-1", "dn-2", "dn-3")

    decision = decide(cluster(*dead), FOUR, set(), hold=None)

    assert decision.start == ()
    assert decision.held == dead
    assert decision.hold is not None
    assert decision.hold.reason.startswith("3 of 4 nodes look dead")
    assert decision.hold.ends == "no more than 2 of them look dead"


def test_given_dead_nodes_that_lead_nothing_when_another_dies_then_they_do_not_count() -> None:
    """Five machines were retired; one of the four that are left dies."""
    retired = [status(f"old-{number}", DEAD) for number in range(5)]

    decision = decide([*retired, *cluster("dn-3")], FOUR, set(), hold=None)

    assert decision.start == ("dn-3",)


def test_given_retired_nodes_when_most_of_the_others_look_dead_then_they_lend_no_weight() -> None:
    retired = [status(f"old-{number}", DEAD) for number in range(5)]

    decision = decide([*retired, *cluster("dn-1", "dn-2", "dn-3")], FOUR, set(), hold=None)

    assert decision.start == ()
    assert decision.held == ("dn-1", "dn-2", "dn-3")


def test_given_two_nodes_when_one_dies_then_it_is_failed_over() -> None:
    two = [status("dn-1", ALIVE), status("dn-2", DEAD)]

    assert decide(two, {"dn-1", "dn-2"}, set(), hold=None).start == ("dn-2",)


def test_given_a_restored_node_that_nobody_heard_then_no_failover_of_it_is_decided() -> None:
    restored = node("dn-1").model_copy(update={"restored_from": "old"})
    silent = NodeStatus(restored, DEAD, 0.0, 0, 0, None, {})

    decision = decide([silent, status("dn-2", ALIVE)], {"dn-1"}, set(), hold=None)

    assert (decision.start, decision.held) == ((), ())
