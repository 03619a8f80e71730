"""Every state that a region with copies can come to, breadth first: the first fault is the nearest.

The reductions are exact. A node that is down or cut off is one that takes no step. A message that
is late is one that is heard late, and what was sent stays on its way for ever. A leader that has
not concluded yet is one that has not heard yet. Nodes have no names: of worlds that differ in who
is who, one is visited.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import chain

from tests.model.copies import failures, members, moves, promises, records
from tests.model.copies.faults import CopyFault, faults
from tests.model.copies.world import Event, Node, Route, Setting, World, bits

ANY = frozenset(CopyFault) - {CopyFault.STRANDED, CopyFault.STUCK}
Names = tuple[int, ...]
Parents = dict[World, tuple[World, Event, Names] | None]


@dataclass(frozen=True, slots=True)
class Exploration:
    """The result of an exploration. Without a fault, every state was visited."""

    states: int
    happened: frozenset[str]
    """Forms of all events."""
    fault: CopyFault | None = None
    trace: tuple[str, ...] = ()
    """A shortest way to the fault."""

    def __str__(self) -> str:
        if self.fault is None:
            return f"holds, {self.states} states"
        return "\n    ".join((f"{self.fault}, after {self.states} states", *self.trace))


def explore(on: Setting, seek: Container[CopyFault] = ANY) -> Exploration:
    """Visit every state; stop at the first with a fault that is in *seek*."""
    start, _ = _canonical(on.start())
    parents: Parents = {start: None}
    happened: set[str] = set()
    queue = [start]
    for world in queue:  # which grows
        fault = next((fault for fault in faults(on, world) if fault in seek), None)
        if fault is not None:
            trace = _trace(on, parents, world)
            return Exploration(len(parents), frozenset(happened), fault, trace)
        for event, reached, order in _reached(on, world):
            happened.add(event.form)
            if reached not in parents:
                parents[reached] = world, event, order
                queue.append(reached)
    return Exploration(len(parents), frozenset(happened))


def explore_progress(on: Setting) -> Exploration:
    """Visit every state; report the nearest from which no order of steps acknowledges all writes.

    A state that has used up what the bounds allow is not judged.
    """
    start, _ = _canonical(on.start())
    parents: Parents = {start: None}
    before: dict[World, list[World]] = {start: []}
    happened: set[str] = set()
    queue = [start]
    for world in queue:  # which grows
        for event, reached, order in _reached(on, world):
            happened.add(event.form)
            before.setdefault(reached, []).append(world)
            if reached not in parents:
                parents[reached] = world, event, order
                queue.append(reached)
    every = (1 << on.bounds.writes) - 1
    hopeful = {world for world in queue if world.acked == every}
    open_ends = list(hopeful)
    while open_ends:
        found = [world for world in before[open_ends.pop()] if world not in hopeful]
        hopeful.update(found)
        open_ends += found
    for world in queue:
        if world not in hopeful and world.route.version < on.bounds.versions:
            trace = _trace(on, parents, world)
            return Exploration(len(parents), frozenset(happened), CopyFault.STUCK, trace)
    return Exploration(len(parents), frozenset(happened))


def _reached(on: Setting, world: World) -> Iterator[tuple[Event, World, Names]]:
    steps = (
        records.steps(on, world),
        members.steps(on, world),
        moves.steps(on, world),
        promises.steps(on, world),
        failures.steps(on, world),
    )
    for event, after in chain(*steps):
        concluded = promises.remembered(on, records.committed(on, after))
        yield event, *_canonical(concluded)


def _canonical(world: World) -> tuple[World, Names]:
    """The same world with its nodes in an order of their own, and the former number of each."""
    route = world.route
    roles = [
        (number != route.leader, *_standing(route, number), _key(node), number)
        for number, node in enumerate(world.nodes)
    ]
    order = tuple(role[-1] for role in sorted(roles))
    if all(number == former for number, former in enumerate(order)):
        return world, order
    return _renumbered(world, order), order


def _standing(route: Route, number: int) -> tuple[bool, bool]:
    return not route.in_sync >> number & 1, not route.eligible >> number & 1


def _key(node: Node) -> tuple[object, ...]:
    return (*node[:8], node.lead is None)


def _renumbered(world: World, order: Names) -> World:
    number_of = {former: number for number, former in enumerate(order)}

    def moved(members: int) -> int:
        return sum(1 << number_of[former] for former in bits(members))

    def sorted_by_node(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(values[former] for former in order)

    nodes = []
    for former in order:
        node = world.nodes[former]
        lead = node.lead
        if lead is not None:
            lead = lead._replace(
                members=moved(lead.members),
                required=moved(lead.required),
                eligible=moved(lead.eligible),
                heard=sorted_by_node(lead.heard),
                sent=sorted_by_node(lead.sent),
                granted=sorted_by_node(lead.granted),
                asked=sorted_by_node(lead.asked),
            )
            node = node._replace(lead=lead)
        nodes.append(node)
    route = world.route
    return world._replace(
        route=route._replace(
            leader=number_of[route.leader],
            in_sync=moved(route.in_sync),
            learners=moved(route.learners),
            eligible=moved(route.eligible),
        ),
        nodes=tuple(nodes),
        opens=tuple(
            order._replace(leader=number_of[order.leader], in_sync=moved(order.in_sync))
            for order in world.opens
        ),
        asks=tuple(ask._replace(learner=number_of[ask.learner]) for ask in world.asks),
    )


def _trace(on: Setting, parents: Parents, world: World) -> tuple[str, ...]:
    """The events that led to a world, in which nodes keep the names of the start."""
    path: list[tuple[Event, Names, int]] = []
    reached = parents[world]
    while reached is not None:
        former, event, order = reached
        path.append((event, order, world.acked & ~former.acked))
        world, reached = former, parents[former]
    _, names = _canonical(on.start())
    lines = []
    for event, order, acked in reversed(path):
        shown = ["ABCDE"[names[node]] for node in event.nodes]
        line = event.form.format(*shown, *event.values)
        lines.append(line + "".join(f"; write {write} is acknowledged" for write in bits(acked)))
        names = tuple(names[former] for former in order)
    return tuple(lines)
