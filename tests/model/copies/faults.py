"""Ways in which a world contradicts G51 to G55 (docs/guarantees.md)."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import reduce
from operator import or_

from tests.model.copies.promises import computes, is_behind, is_promised
from tests.model.copies.world import Node, Setting, World, bits, durable, writes_in


class CopyFault(StrEnum):
    LOST = "a copy that may be promoted lacks an acknowledged row"
    """It is of the set, or eligible, and its disk lives."""
    THIN = "one disk was lost, and with it the only copy of an acknowledged row"
    STALE = "a leader answers a read without an acknowledged row"
    EXPOSED = "a row is readable that can be cut back"
    UNCUTTABLE = "a file holds a row that can be cut back"
    STRANDED = "no copy that may be promoted has its disk, and another holds every acknowledged row"
    """Not excluded by the protocol once a leader has changed: its set may be that copy alone, and
    its disk is lost."""
    UNREADABLE = "a leader that requires nobody else reads nothing"
    STUCK = "a write is acknowledged in no order of events"
    UNEQUAL = "all is quiet, and two copies differ"
    DOUBLED = "a statement took effect twice"
    OVER_BUDGET = "a copy holds more records in memory than it may"


def faults(on: Setting, world: World) -> Iterator[CopyFault]:
    """Yields the faults of a world."""
    members = [world.nodes[copy] for copy in bits(world.route.in_sync)]
    living = [node for node in members if not node.gone]
    eligible = [world.nodes[copy] for copy in bits(world.route.eligible)]
    may_lead = [*living, *(node for node in eligible if not node.gone)]
    yield from _of_rows(on, world, may_lead)
    for node in world.nodes:
        if not node.gone:
            yield from _of_a_node(on, node, may_lead)
    if on.bounds.reads and any(_is_stale(on, world, *each) for each in enumerate(world.nodes)):
        yield CopyFault.STALE
    if any(_reads_nothing(*each) for each in enumerate(world.nodes)):
        yield CopyFault.UNREADABLE
    if _is_quiet(world) and len({node.log for node in living}) > 1:
        yield CopyFault.UNEQUAL


def _of_rows(on: Setting, world: World, may_lead: Sequence[Node]) -> Iterator[CopyFault]:
    held = [durable(node, on) for node in world.nodes]
    if any(world.acked & ~durable(node, on) for node in may_lead):
        yield CopyFault.LOST
    if world.acked and not may_lead and world.acked in held:
        yield CopyFault.STRANDED
    if on.bounds.losses - world.losses == 1 < on.bounds.min_in_sync:
        anywhere = reduce(or_, held)
        if world.acked & ~anywhere:
            yield CopyFault.THIN


def _of_a_node(on: Setting, node: Node, may_lead: Sequence[Node]) -> Iterator[CopyFault]:
    if len(node.log) - node.flushed > on.bounds.budget:
        yield CopyFault.OVER_BUDGET
    if len(node.log) > writes_in(node.log).bit_count():
        yield CopyFault.DOUBLED
    if any(other.log[: node.flushed] != node.log[: node.flushed] for other in may_lead):
        yield CopyFault.UNCUTTABLE
    readable = node.commit if on.rules.reads_below_commit else len(node.log)
    if any(other.log[:readable] != node.log[:readable] for other in may_lead):
        yield CopyFault.EXPOSED


def _is_stale(on: Setting, world: World, number: int, node: Node) -> bool:
    if not node.read or not computes(on, number, node):
        return False
    if on.rules.checks_after_reading:
        return is_promised(on, number, node)
    return is_behind(world, node)


def _reads_nothing(number: int, node: Node) -> bool:
    lead = node.lead
    return lead is not None and lead.required == 1 << number and node.commit < lead.opened


def _is_quiet(world: World) -> bool:
    """Whether nothing is on its way, and the leader has heard that all have its whole log."""
    route = world.route
    leader = world.nodes[route.leader]
    lead = leader.lead
    if lead is None or leader.epoch != route.epoch or world.opens or world.asks:
        return False
    copies = [copy for copy in bits(route.in_sync) if copy != route.leader]
    return lead.required == route.in_sync and all(
        lead.heard[copy] >= len(leader.log) and world.nodes[copy].epoch == route.epoch
        for copy in copies
    )
