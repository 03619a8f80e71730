"""Ways in which a world contradicts G51 to G55 (docs/guarantees.md)."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import reduce
from operator import or_

from tests.model.copies.promises import computes, is_behind, is_promised
from tests.model.copies.world import Node, Setting, World, bits, durable, writes_in


class CopyFault(StrEnum):
    LOST = "a copy of the set lacks an acknowledged row"
    """Its disk lives, and it may be promoted."""
    THIN = "one disk was lost, and with it the only copy of an acknowledged row"
    STALE = "a leader answers a read without an acknowledged row"
    EXPOSED = "a row is readable that can be cut back"
    UNCUTTABLE = "a file holds a row that can be cut back"
    STRANDED = "no disk of the set lives, and another holds every acknowledged row"
    """Not excluded by the protocol: a set shrinks below the minimum, and its last disk is lost."""
    STUCK = "a write is acknowledged in no order of events"
    UNEQUAL = "all is quiet, and two copies differ"
    DOUBLED = "a statement took effect twice"
    OVER_BUDGET = "a copy holds more records in memory than it may"


def faults(on: Setting, world: World) -> Iterator[CopyFault]:
    """Yields the faults of a world."""
    members = [world.nodes[copy] for copy in bits(world.route.in_sync)]
    living = [node for node in members if not node.gone]
    yield from _of_rows(on, world, living)
    for node in world.nodes:
        if not node.gone:
            yield from _of_a_node(on, node, living)
    if on.bounds.reads and any(_is_stale(on, world, *each) for each in enumerate(world.nodes)):
        yield CopyFault.STALE
    if _is_quiet(world) and len({node.log for node in living}) > 1:
        yield CopyFault.UNEQUAL


def _of_rows(on: Setting, world: World, living: Sequence[Node]) -> Iterator[CopyFault]:
    held = [durable(node, on) for node in world.nodes]
    if any(world.acked & ~durable(node, on) for node in living):
        yield CopyFault.LOST
    if world.acked and not living and world.acked in held:
        yield CopyFault.STRANDED
    if on.bounds.losses - world.losses == 1 < on.bounds.min_in_sync:
        anywhere = reduce(or_, held)
        if world.acked & ~anywhere:
            yield CopyFault.THIN


def _of_a_node(on: Setting, node: Node, living: Sequence[Node]) -> Iterator[CopyFault]:
    if len(node.log) - node.flushed > on.bounds.budget:
        yield CopyFault.OVER_BUDGET
    if len(node.log) > writes_in(node.log).bit_count():
        yield CopyFault.DOUBLED
    if any(other.log[: node.flushed] != node.log[: node.flushed] for other in living):
        yield CopyFault.UNCUTTABLE
    readable = node.commit if on.rules.reads_below_commit else len(node.log)
    if any(other.log[:readable] != node.log[:readable] for other in living):
        yield CopyFault.EXPOSED


def _is_stale(on: Setting, world: World, number: int, node: Node) -> bool:
    if not node.read or not computes(on, number, node):
        return False
    if on.rules.checks_after_reading:
        return is_promised(on, number, node)
    return is_behind(world, node)


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
