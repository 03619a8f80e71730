"""Every state that a change can come to, breadth first: the first fault found is the nearest.

There are two servers, two rows, a region, an owner and a reorg. In flight are, at any moment, a
transaction that each server can begin and commit, an older one that each may have left open, and a
write on its way that nobody waits for; how many come one after the other has no bound.

Two reductions, both exact. A write is conditional on the row that was read, so a transaction reads
and commits in one step: whatever comes in between makes it read again. And a transaction that uses
the newest version its server has is not told apart from one that begins later.

One region stands for all: what is wrong is wrong of rows of one region (unique keys do not cross
regions, docs/protocols.md P6), and the owner goes on when the last of them has raised its floor.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from metasrv_base.elements.proof import owner, servers
from metasrv_base.elements.proof.database import ProofFault, perform
from metasrv_base.elements.proof.journey import ProofChange, journey
from metasrv_base.elements.proof.mirrored import Mirrored
from metasrv_base.elements.proof.protocol import PRODUCT, Protocol
from metasrv_base.elements.proof.space import Perform, Space
from metasrv_base.elements.proof.world import (
    NONE,
    Event,
    OwnerPhase,
    ProofServer,
    ProofSetting,
    ProofWorld,
    Step,
)

SERVERS = 2
ANY = frozenset(ProofFault)


@dataclass(frozen=True, slots=True)
class Exploration:
    """The result of an exploration. Without a fault, every state was visited."""

    change: ProofChange
    states: int
    published: frozenset[str]
    """Every sequence of versions that came about."""
    happened: frozenset[str]
    """Forms of all events."""
    fault: ProofFault | None = None
    trace: tuple[str, ...] = ()
    """A shortest way to the fault."""

    def __str__(self) -> str:
        if self.fault is None:
            return f"{self.change.name}: holds, {self.states} states"
        lines = (f"{self.change.name}: {self.fault} after {self.states} states", *self.trace)
        return "\n    ".join(lines)


def explore(
    change: ProofChange,
    protocol: Protocol = PRODUCT,
    perform: Perform = perform,
    seek: Container[ProofFault] = ANY,
) -> Exploration:
    """Visit every state; stop at the first with a fault that is in *seek*."""
    kind = Mirrored if change.mirrors else Space
    on = ProofSetting(kind(change, protocol, perform), journey(change), protocol)
    parents: dict[ProofWorld, ProofWorld | None] = dict.fromkeys(_starts(on))
    happened: set[str] = set()
    fault = None
    queue = list(parents)
    for world in queue:  # which grows
        fault = _fault(on, world, seek)
        if fault is not None:
            break
        for (form, *_), after in _steps(on, world):
            happened.add(form)
            canonical = _canonical(after)
            if canonical not in parents:
                parents[canonical] = world
                queue.append(canonical)
    published = frozenset(str(on.nodes[node]) for node in {world.published for world in parents})
    trace = () if fault is None else tuple(_trace(on, _path(parents, world)))
    return Exploration(change, len(parents), published, frozenset(happened), fault, trace)


def _starts(on: ProofSetting) -> Iterator[ProofWorld]:
    """Yields the first worlds: nothing is published, and every server has the version before."""
    everybody = (ProofServer(0, True, NONE),) * SERVERS
    for db in on.space.starts(on.nodes[0].line[0]):
        yield ProofWorld(db, 0, OwnerPhase.FLOORED, 0, everybody, None, None)


def _steps(on: ProofSetting, world: ProofWorld) -> Iterator[Step]:
    yield from servers.steps(on, world)
    yield from owner.steps(on, world)


def _canonical(world: ProofWorld) -> ProofWorld:
    """Servers have no names: of the worlds that differ in who is who, one is visited."""
    first, second = world.servers
    return world if first <= second else world._replace(servers=(second, first))


def _fault(on: ProofSetting, world: ProofWorld, seek: Container[ProofFault]) -> ProofFault | None:
    """Returns a fault that a server can still observe, or that is permanent; None: there is
    none."""
    line = on.nodes[world.published].line
    used = {line[-1]}
    for version, _, pinned in world.servers:
        if version >= world.floor:
            used.add(line[version])
        if pinned >= world.floor:
            used.add(line[pinned])
    cleaned = len(used) == 1 and (on.protocol.cleans_first or world.phase is OwnerPhase.FLOORED)
    for states in used:
        for fault in on.space.faults(states, world.db):
            if fault in seek and (fault is not ProofFault.LEFT_OVER or cleaned):
                return fault
    return None


def _path(parents: Mapping[ProofWorld, ProofWorld | None], world: ProofWorld) -> list[ProofWorld]:
    path: list[ProofWorld] = []
    last: ProofWorld | None = world
    while last is not None:
        path.append(last)
        last = parents[last]
    return path[::-1]


def _trace(on: ProofSetting, path: Sequence[ProofWorld]) -> Iterator[str]:
    """Yields the events of *path* as text, replayed with servers that keep their names."""
    world = path[0]
    yield on.space.text(world.db)
    for goal in path[1:]:
        event, after = next(step for step in _steps(on, world) if _canonical(step[1]) == goal)
        changed = f"  [{on.space.text(after.db)}]" if after.db != world.db else ""
        yield _text(event) + changed
        world = after


def _text(event: Event) -> str:
    form, *arguments = event
    return str(form).format(*map(_shown, arguments))


def _shown(argument: object) -> str:
    return " + ".join(map(str, argument)) if isinstance(argument, tuple) else str(argument)
