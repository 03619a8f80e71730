"""Steps of the owner of a change and of its reorg: wait, floor, complete, publish, undo."""

from collections.abc import Iterator

from metasrv_base.elements.proof.database import KEYS
from metasrv_base.elements.proof.journey import Direction, JourneyNode
from metasrv_base.elements.proof.protocol import EntryPut
from metasrv_base.elements.proof.world import (
    DONE,
    DUPLICATE,
    NONE,
    Job,
    OwnerPhase,
    ProofServer,
    ProofSetting,
    ProofWorld,
    Step,
)


def steps(on: ProofSetting, world: ProofWorld) -> Iterator[Step]:
    node = on.nodes[world.published]
    match world.phase:
        case OwnerPhase.WAITING if _is_drained(on, world, node):
            event = ("owner: nobody uses a version older than {}", node.line[-1])
            yield event, world._replace(phase=OwnerPhase.DRAINED)
        case OwnerPhase.DRAINED:
            yield from _raises(on, world, node)
        case OwnerPhase.FLOORED if node.onward is not None:
            yield from _publishes(on, world, node.onward)
    yield from _fails_over(on, world)
    if node.back is not None:
        event = ("owner: undoes, publishes {}", on.nodes[node.back].line[-1])
        yield event, _at(on, world, node.back)
    if node.rival is not None and not on.protocol.fences_owner:
        event = ("deposed owner: publishes {}", on.nodes[node.rival].line[-1])
        yield event, _at(on, world, node.rival)
    if world.job is not None:
        yield from _puts(on, world, world.job)


def _is_drained(on: ProofSetting, world: ProofWorld, node: JourneyNode) -> bool:
    return all(
        server.version == node.version and (server.pinned == NONE or not on.protocol.drains)
        for server in world.servers
        if server.counted
    )


def _raises(on: ProofSetting, world: ProofWorld, node: JourneyNode) -> Iterator[Step]:
    """The floor takes hold; what is below it can do nothing any more. The reorg reads there."""
    version = node.version
    if on.protocol.floor:
        world = world._replace(
            floor=version,
            servers=tuple(_above(server, version) for server in world.servers),
            sent=None if world.sent and world.sent.version < version else world.sent,
        )
        if world.job and world.job.version < version and on.protocol.fences_reorg:
            world = world._replace(job=None)
    world = world._replace(phase=OwnerPhase.FLOORED)
    if on.protocol.reads_after_drain and world.job is None:
        world = _begun(on, world, node)
    if on.protocol.cleans_after_drain:
        world = _cleaned(on, world, node)
    yield ("owner: raises the floor to {}", node.line[-1]), world


def _above(server: ProofServer, floor: int) -> ProofServer:
    version = server.version if server.version >= floor else NONE
    return ProofServer(version, server.counted, server.pinned if server.pinned >= floor else NONE)


def _begun(on: ProofSetting, world: ProofWorld, node: JourneyNode) -> ProofWorld:
    """The reorg has its snapshot."""
    if not (node.flips and node.way is Direction.ADD):
        return world
    completed = on.space.completed(world.db)
    if completed is None:
        return world._replace(job=Job(node.version, (DUPLICATE,)))
    tasks = tuple(2 * value if value else DONE for value in on.space.snapshot(completed))
    return world._replace(db=completed, job=Job(node.version, tasks))


def _cleaned(on: ProofSetting, world: ProofWorld, node: JourneyNode) -> ProofWorld:
    """The delete reorg is done, if this is its time."""
    if not on.protocol.cleans_first:
        before, after = node.line[-2:] if node.version else node.line * 2
    elif node.onward is not None:
        before, after = node.line[-1], on.nodes[node.onward].line[-1]
    else:
        return world
    return world._replace(db=on.space.cleaned(world.db, before, after))


def _publishes(on: ProofSetting, world: ProofWorld, onward: int) -> Iterator[Step]:
    if on.protocol.finishes_reorg and world.job is not None and not world.job.is_done:
        return
    event = ("owner: publishes {}", on.nodes[onward].line[-1])
    yield event, _at(on, world._replace(job=None), onward)


def _at(on: ProofSetting, world: ProofWorld, node_index: int) -> ProofWorld:
    """A version was published. Of a reorg that was left behind puts may be on their way."""
    node = on.nodes[node_index]
    world = world._replace(published=node_index, phase=OwnerPhase.WAITING)
    if world.job is not None and on.protocol.fences_reorg and not on.protocol.floor:
        world = world._replace(job=None)
    if not on.protocol.reads_after_drain and world.job is None:
        world = _begun(on, world, node)
    if not on.protocol.cleans_after_drain:
        world = _cleaned(on, world, node)
    return world


def _fails_over(on: ProofSetting, world: ProofWorld) -> Iterator[Step]:
    """Yields the failover of the owner. Its memory is lost; the state of region and job remains."""
    if world.phase is not OwnerPhase.WAITING:
        yield ("a new owner: waits anew",), world._replace(phase=OwnerPhase.WAITING)
    elif not on.protocol.rewaits:
        yield ("a new owner: does not wait",), world._replace(phase=OwnerPhase.DRAINED)


def _puts(on: ProofSetting, world: ProofWorld, job: Job) -> Iterator[Step]:
    for number, task in enumerate(job.tasks):
        if task >= 0:
            after = _put(on, world, job, number)
            duplicate = after.job is not None and after.job.tasks[number] == DUPLICATE
            form = "reorg: row {} was read as {}" + (", a duplicate" if duplicate else "")
            yield (form, number % len(KEYS), "-ab"[task >> 1]), after


def _put(on: ProofSetting, world: ProofWorld, job: Job, number: int) -> ProofWorld:
    """Returns the world after one attempt to put one row."""
    value, is_stale = divmod(job.tasks[number], 2)
    row, put = on.space.snapshot(world.db)[number], on.protocol.put
    if is_stale and put is EntryPut.REREAD:
        return _settled(world, job, number, 2 * row if row else DONE)
    if is_stale and (
        put in (EntryPut.SKIP, EntryPut.INGEST_ONCE) or (put is EntryPut.INGEST and row != value)
    ):
        return _settled(world, job, number, DONE)
    after = on.space.put(world.db, number, value)
    if after is None:
        return _settled(world, job, number, DUPLICATE)
    return _settled(world._replace(db=after), job, number, DONE)


def _settled(world: ProofWorld, job: Job, number: int, task: int) -> ProofWorld:
    tasks = (*job.tasks[:number], task, *job.tasks[number + 1 :])
    return world._replace(job=Job(job.version, tasks))
