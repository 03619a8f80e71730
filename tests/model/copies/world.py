"""The state of an exploration at one moment: the route, the nodes, and messages on their way.

Nodes are numbers from 0; a set of nodes or writes is an int whose bit n stands for number n.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tests.model.copies.rules import PROTOCOL, Rules

LEADER_TICKS = 2
"""Real time for which a leader uses a promise: one tick by its own clock, which is slow by as
much as is allowed. A longer one adds behaviour, so the longest stands for all."""
COPY_TICKS = 2
"""Real time for which a copy keeps it, by a clock that is as fast as is allowed."""
RECORD = 8
"""A record is epoch * RECORD + write."""

Log: TypeAlias = tuple[int, ...]


class Lead(NamedTuple):
    """Memory of a node that believes it leads."""

    members: int
    """The set, as it has read it from the route."""
    required: int
    """Copies that must have a record before it counts; itself included."""
    eligible: int
    """Eligible copies, as it has read them from the route."""
    is_leased: bool
    """Whether it has a lease, which a leader that is alone in its set needs."""
    heard: tuple[int, ...]
    """By copy: the position that it has acknowledged."""
    sent: tuple[int, ...]
    """By copy: the highest position of an acknowledgement that it sent in this epoch. All
    that is above `heard` is on its way, for as long as it may be."""
    opened: int
    """Length of the log when it opened its epoch."""
    granted: tuple[int, ...]
    """By copy: ticks that are left of its promise."""
    asked: tuple[int, ...]
    """By copy: ticks that an answer would be worth now; negative once the copy has answered."""


class Node(NamedTuple):
    epoch: int
    """The highest that it has followed or led; on disk."""
    log: Log
    commit: int
    """The position that it knows every required copy has; in memory."""
    flushed: int
    """Records of the log that are in files."""
    has_file: bool
    """Whether the files that the ingest record names are on its disk."""
    gone: bool
    """Its disk was lost since the route named its root."""
    promised: int
    """Ticks for which it may not serve as a leader."""
    read: bool
    """A read was computed that lacks an acknowledged row and awaits its check. Where the check
    comes first: a read has passed it and awaits being computed."""
    lead: Lead | None


class Route(NamedTuple):
    version: int
    epoch: int
    leader: int
    in_sync: int
    """The leader included."""
    learners: int
    eligible: int
    """Learners that may be promoted if the leader is alone in the set."""


class Open(NamedTuple):
    """An order to lead, on its way."""

    epoch: int
    leader: int
    in_sync: int
    is_late: bool
    """It arrives when the lease of the leader before has ended."""


class Ask(NamedTuple):
    """A request to add a learner to the set, on its way."""

    version: int
    """Version of the route that it was computed from."""
    epoch: int
    learner: int


class World(NamedTuple):
    route: Route
    nodes: tuple[Node, ...]
    opens: tuple[Open, ...]
    asks: tuple[Ask, ...]
    acked: int
    """Writes that were acknowledged to a client."""
    crashes: int
    """Restarts that may still happen."""
    losses: int
    """Disks that may still be lost."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of an exploration. Everything else is unbounded."""

    in_sync: int
    """Nodes in the set at the start; the first leads."""
    learners: int = 0
    writes: int = 1
    epochs: int = 2
    versions: int = 4
    """Highest version of the route."""
    crashes: int = 0
    losses: int = 0
    min_in_sync: int = 1
    flushes: bool = False
    ingests: bool = False
    """The first write is an ingest of files."""
    reads: bool = False
    budget: int = 9
    """Records that a copy holds in memory."""
    stalls: bool = False
    """No copy but the leader flushes."""
    moves: bool = False
    """Copies are added to the region, and removed from it."""
    asks: bool = True
    """Leaders ask for promises."""
    ticks: bool = True
    """Time passes."""
    shrinks: bool = True
    """A copy may leave the set otherwise than by a promotion."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The constants of an exploration."""

    bounds: Bounds
    rules: Rules = PROTOCOL

    def start(self) -> World:
        count = self.bounds.in_sync + self.bounds.learners
        members = (1 << self.bounds.in_sync) - 1
        none = (0,) * count
        node = Node(1, (), 0, 0, False, False, 0, False, None)
        lead = Lead(members, members, 0, True, none, none, 0, none, none)
        nodes = (node._replace(lead=lead), *(node for _ in range(count - 1)))
        route = Route(1, 1, 0, members, ((1 << count) - 1) & ~members, 0)
        return World(route, nodes, (), (), 0, self.bounds.crashes, self.bounds.losses)


class Event(NamedTuple):
    form: str
    """A format of the names of *nodes*, then of *values*."""
    nodes: tuple[int, ...] = ()
    values: tuple[int, ...] = ()


Step: TypeAlias = tuple[Event, World]


def bits(members: int) -> Iterator[int]:
    """Yields the numbers in a set."""
    number = 0
    while members:
        if members & 1:
            yield number
        members >>= 1
        number += 1


def writes_in(log: Log) -> int:
    """The set of writes that are in a log."""
    found = 0
    for record in log:
        found |= 1 << record % RECORD
    return found


def durable(node: Node, on: Setting) -> int:
    """The set of writes whose rows are on the disk of a node."""
    if node.gone:
        return 0
    found = writes_in(node.log)
    return found & ~1 if on.bounds.ingests and not node.has_file else found


def with_node(world: World, number: int, node: Node) -> World:
    nodes = world.nodes
    return world._replace(nodes=(*nodes[:number], node, *nodes[number + 1 :]))


def put(values: tuple[int, ...], number: int, value: int) -> tuple[int, ...]:
    return (*values[:number], value, *values[number + 1 :])
