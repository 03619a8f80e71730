"""Which dead nodes are failed over, and what holds the others back: every rule by itself."""

from metasrv.nodes.status import NodeState, NodeStatus
from metasrv.supervisor import Budget, decide
from tests.metasrv.samples import node

ALIVE, DEAD = NodeState.ALIVE, NodeState.DEAD


def status(node_id: str, state: NodeState) -> NodeStatus:
    return NodeStatus(node(node_id), state, 0.0, 0, 0, None, {})


def cluster(*dead: str) -> list[NodeStatus]:
    names = [f"dn-{number}" for number in range(1, 6)]
    return [status(name, DEAD if name in dead else ALIVE) for name in names]


def test_given_one_dead_node_with_regions_when_looking_then_it_is_failed_over() -> None:
    decision = decide(cluster("dn-2"), {"dn-1", "dn-2"}, set(), budget=Budget(0, 0.1), hold=None)

    assert decision.start == ("dn-2",)
    assert decision.held == {}


def test_given_a_dead_node_without_regions_when_looking_then_nothing_happens() -> None:
    assert decide(cluster("dn-2"), {"dn-1"}, set(), budget=Budget(0, 0.1), hold=None).start == ()


def test_given_a_failover_under_way_when_looking_then_no_second_one() -> None:
    assert decide(cluster("dn-2"), {"dn-2"}, {"dn-2"}, budget=Budget(1, 0.1), hold=None).start == ()


def test_given_grace_or_maintenance_when_looking_then_it_is_held_and_said_why() -> None:
    decision = decide(cluster("dn-2"), {"dn-2"}, set(), budget=Budget(0, 0.1), hold="maintenance")

    assert decision.start == ()
    assert decision.held == {"dn-2": "maintenance"}


def test_given_two_dead_nodes_when_looking_then_one_per_window() -> None:
    decision = decide(
        cluster("dn-2", "dn-3"), {"dn-2", "dn-3"}, set(), budget=Budget(0, 0.1), hold=None
    )

    assert decision.start == ("dn-2",)
    assert set(decision.held) == {"dn-3"}


def test_given_the_window_is_used_up_when_looking_then_the_next_waits() -> None:
    decision = decide(cluster("dn-3"), {"dn-3"}, set(), budget=Budget(1, 0.1), hold=None)

    assert decision.start == ()
    assert "window" in decision.held["dn-3"]


def test_given_most_nodes_look_dead_when_looking_then_all_are_held() -> None:
    dead = {"dn-1", "dn-2", "dn-3"}

    decision = decide(cluster(*dead), dead, set(), budget=Budget(0, 0.1), hold=None)

    assert decision.start == ()
    assert set(decision.held) == dead
