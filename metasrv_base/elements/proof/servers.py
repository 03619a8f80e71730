"""Steps of servers: commit, load a newer version, fall silent, come back, send a late write."""

from collections.abc import Iterator
from functools import cache

from metasrv_base.elements.proof.space import StatementOutcome
from metasrv_base.elements.proof.world import (
    NONE,
    Job,
    ProofServer,
    ProofSetting,
    ProofWorld,
    SentWrite,
    Step,
)


def steps(on: ProofSetting, world: ProofWorld) -> Iterator[Step]:
    servers = world.servers
    hosts = {server.version: number for number, server in enumerate(servers)}
    hosts |= {server.pinned: number for number, server in enumerate(servers)}
    for version, number in hosts.items():  # two that have one version do the same
        if version >= world.floor:
            yield from _commits(on, world, number, version)
    for number, server in enumerate(servers):
        yield from _follows(on, world, number)
        if server.pinned != NONE:
            yield from _ends(on, world, number)
    if world.sent is not None:
        yield from _arrives(on, world, world.sent)


def _commits(on: ProofSetting, world: ProofWorld, number: int, version: int) -> Iterator[Step]:
    states = on.states(world, version)
    for outcome in on.space.outcomes(states, world.db):
        event = ("server {} at {}: {}", number, states, outcome.write)
        yield event, _written(world, outcome)


def _written(world: ProofWorld, outcome: StatementOutcome) -> ProofWorld:
    """A write took effect: what has read the row before is stale."""
    _, node_index, phase, floor, servers, sent, job = world
    if sent is not None and sent.write[0].key == outcome.key:
        sent = None
    if job is not None:
        job = _spoiled(job, outcome.spoils)
    return ProofWorld(outcome.after, node_index, phase, floor, servers, sent, job)


@cache
def _spoiled(job: Job, spoils: frozenset[tuple[int, int]]) -> Job:
    stale = [
        task | 1 if task >= 0 and (number, task >> 1) in spoils else task
        for number, task in enumerate(job.tasks)
    ]
    return Job(job.version, tuple(stale))


def _follows(on: ProofSetting, world: ProofWorld, number: int) -> Iterator[Step]:
    """A counted server loads versions one by one; it may leave a transaction open at the old."""
    server, newest = world.servers[number], on.nodes[world.published].version
    if not server.counted:
        back = ProofServer(newest, True, NONE)
        yield ("server {}: registers anew", number), _with(world, number, back)
    elif server.version < newest:
        pinned = server.version if server.pinned == NONE else server.pinned
        loaded = ProofServer(server.version + 1, True, pinned)
        event = ("server {}: loads {}", number, on.states(world, server.version + 1))
        yield event, _with(world, number, loaded)
    alone = all(each.counted for each in world.servers)
    behind = server.version < newest or server.pinned != NONE
    if on.protocol.expires and alone and behind:
        silent = ProofServer(server.version, False, server.pinned)
        yield ("server {}: is silent, its lease ends", number), _with(world, number, silent)


def _ends(on: ProofSetting, world: ProofWorld, number: int) -> Iterator[Step]:
    """An open transaction ends, or is let go while its last write is on the way."""
    version, counted, pinned = world.servers[number]
    ended = _with(world, number, ProofServer(version, counted, NONE))
    yield ("server {}: ends its transaction at {}", number, on.states(world, pinned)), ended
    if on.protocol.lets_go and world.sent is None and pinned >= world.floor:
        states = on.states(world, pinned)
        for outcome in on.space.outcomes(states, world.db):
            event = ("server {} at {}: sends {}, lets it go", number, states, outcome.write)
            yield event, ended._replace(sent=SentWrite(pinned, outcome.write))


def _arrives(on: ProofSetting, world: ProofWorld, sent: SentWrite) -> Iterator[Step]:
    yield ("what was sent is lost",), world._replace(sent=None)
    states = on.states(world, sent.version)
    for outcome in on.space.outcomes(states, world.db):
        if outcome.write == sent.write:
            event = ("what was sent arrives: {} at {}", sent.write, states)
            yield event, _written(world, outcome)._replace(sent=None)


def _with(world: ProofWorld, number: int, server: ProofServer) -> ProofWorld:
    db, node_index, phase, floor, servers, sent, job = world
    changed = (*servers[:number], server, *servers[number + 1 :])
    return ProofWorld(db, node_index, phase, floor, changed, sent, job)
