"""Steps of time: promises are asked for, given and used, and the time passes."""

from collections.abc import Iterator

from tests.model.copies.world import (
    COPY_TICKS,
    LEADER_TICKS,
    Event,
    Lead,
    Node,
    Setting,
    Step,
    World,
    bits,
    put,
    with_node,
    writes_in,
)


def steps(on: Setting, world: World) -> Iterator[Step]:
    if not on.bounds.reads:
        return
    for number, node in enumerate(world.nodes):
        if node.lead is not None:
            for copy in bits(node.lead.required & ~(1 << number)) if on.bounds.asks else ():
                yield from _of_a_pair(on, world, (number, copy))
    if on.bounds.ticks:
        yield from _ticks(on, world)


def _of_a_pair(on: Setting, world: World, pair: tuple[int, int]) -> Iterator[Step]:
    leader, copy = pair
    node, other = world.nodes[leader], world.nodes[copy]
    assert node.lead is not None
    lead = node.lead
    asked = lead.asked[copy]
    if asked == 0 and lead.granted[copy] < LEADER_TICKS:
        yield Event("{} asks {} for a promise", pair), _asked(world, pair, lead, LEADER_TICKS)
    is_refused = other.gone and on.rules.refuses_lost_root
    is_old = other.epoch > node.epoch and on.rules.refuses_old_epochs
    if asked > 0 and not is_refused and not is_old and other.lead is None:
        kept = COPY_TICKS if on.rules.allows_for_drift else COPY_TICKS - 1
        promised = other._replace(promised=max(other.promised, kept))
        after = with_node(_asked(world, pair, lead, -asked), copy, promised)
        yield Event("{1} promises {0}", pair), after
    if asked < 0:
        worth = -asked if on.rules.counts_from_asking else LEADER_TICKS
        granted = put(lead.granted, copy, max(lead.granted[copy], worth))
        after = _asked(world, pair, lead._replace(granted=granted), 0)
        yield Event("{} has the promise of {}", pair), after


def _asked(world: World, pair: tuple[int, int], lead: Lead, value: int) -> World:
    asked = lead._replace(asked=put(lead.asked, pair[1], value))
    return with_node(world, pair[0], world.nodes[pair[0]]._replace(lead=asked))


def _ticks(on: Setting, world: World) -> Iterator[Step]:
    ticked = tuple(_ticked(on, node) for node in world.nodes)
    if ticked == world.nodes:
        return
    yield Event("a tick passes"), world._replace(nodes=ticked)
    if not on.rules.counts_suspended:
        for number, node in enumerate(world.nodes):
            if node.lead is not None:
                after = world._replace(nodes=ticked)
                promised = ticked[number].promised
                suspended = node._replace(promised=promised)
                event = Event("a tick passes while {} is suspended", (number,))
                yield event, with_node(after, number, suspended)


def _ticked(on: Setting, node: Node) -> Node:
    lead = node.lead
    if lead is not None:
        granted = tuple(max(0, ticks - 1) for ticks in lead.granted)
        asked = lead.asked
        if on.rules.counts_from_asking:
            asked = tuple(ticks - 1 if ticks > 0 else min(0, ticks + 1) for ticks in asked)
        lead = lead._replace(granted=granted, asked=asked)
    return node._replace(promised=max(0, node.promised - 1), lead=lead)


def is_promised(on: Setting, number: int, node: Node) -> bool:
    """Whether a leader may answer a read."""
    lead, rules = node.lead, on.rules
    assert lead is not None
    if not rules.promises:
        return True
    needs_lease = lead.required == 1 << number
    needs_lease |= rules.eligible_needs_lease and bool(lead.eligible)
    if needs_lease and not lead.is_leased:
        return False
    needed = lead.required if rules.promise_of_growing else lead.members
    held = [lead.granted[copy] > 0 for copy in bits(needed) if copy != number]
    return all(held) if rules.promise_of_all else not held or any(held)


def computes(on: Setting, number: int, node: Node) -> bool:
    """Whether a leader would compute the answer to a read."""
    if node.lead is None or (on.rules.waits_own_promise and node.promised):
        return False
    return node.commit >= node.lead.opened or not on.rules.reads_after_opening


def is_behind(world: World, node: Node) -> bool:
    """Whether what a leader would answer lacks an acknowledged row."""
    return bool(world.acked & ~writes_in(node.log[: node.commit]))


def remembered(on: Setting, world: World) -> World:
    """The world with the reads that were computed, or checked, in it.

    A read that waits longer meets more, and it may be one of any number: so that it happens
    belongs to each step.
    """
    if not on.bounds.reads:
        return world
    for number, node in enumerate(world.nodes):
        if node.read or not computes(on, number, node):
            continue
        first = (
            is_behind(world, node)
            if on.rules.checks_after_reading
            else is_promised(on, number, node)
        )
        if first:
            world = with_node(world, number, node._replace(read=True))
    return world
