"""Stops failover when so many nodes look dead that the fault is more likely this server's than
theirs (G35). Pure.

Counted are the nodes that matter: those that are heard, and the dead ones that still lead a region.
A dead node that leads nothing any more is no reason to doubt the others.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from metasrv.nodes.status import GONE, Hold, NodeStatus


@dataclass(frozen=True, slots=True)
class Census:
    dead: int
    nodes: int

    @property
    def dead_max(self) -> int:
        """The most nodes that are failed over, however fast they die one after the other."""
        return max(1, self.nodes // 2)

    @property
    def is_doubtful(self) -> bool:
        return self.dead > self.dead_max


def census(
    statuses: Iterable[NodeStatus], leading: Collection[str], unanswered: Collection[str] = ()
) -> Census:
    """Counts nodes and dead nodes. *leading* are those that lead a region, by the catalog;
    *unanswered* those that have just not answered, which count as dead."""
    counted = [
        status for status in statuses if status.state not in GONE or status.node.node_id in leading
    ]
    dead = [
        status for status in counted if status.state in GONE or status.node.node_id in unanswered
    ]
    return Census(len(dead), len(counted))


def guard(
    statuses: Collection[NodeStatus], leading: Collection[str], unanswered: Collection[str] = ()
) -> Hold | None:
    """Returns a reason to start no failover; None if the dead nodes are believed to be dead."""
    counts = census(statuses, leading, unanswered)
    if not counts.is_doubtful:
        return None
    return Hold(
        f"{counts.dead} of {counts.nodes} nodes look dead: is it this server?",
        f"no more than {counts.dead_max} of them look dead",
    )
