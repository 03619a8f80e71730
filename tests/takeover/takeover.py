"""From a beginning of a tape to an end: a server of today leads on where one of a version died."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from keys.model.cluster import DATANODE, NodeKey, RemovedNodeKey
from keys.model.families import family_of
from keys.model.records import ProcedureOutcome
from keys.model.tables import TableInfo, TableInfoKey
from keys.store.kv import Delete, Event, Put, Request, Watched
from keys.value import decode, encode
from procedures.kinds.registry import KINDS
from procedures.machine import Kind
from tests.crash.enumeration import (
    BY_NAME,
    ask_again,
    judge,
    kinds_of,
    meet_holders,
    outcomes_of,
)
from tests.fakes.chance import SeededIds
from tests.fakes.cluster import DEADLINE_MS, TAKEOVER_MS, Cluster
from tests.fakes.datanodes.picture import restore
from tests.fakes.heartbeats import BEAT_MS, registered
from tests.procedures.harness.agree import Agreement, history_of
from tests.procedures.harness.ends import Check, End, all_dropped, effects
from tests.procedures.harness.scenario import FULL, Scenario
from tests.sim.loop import SimLoop, run
from tests.takeover.tapes import Commit, Cut, Line, Tape, living_at, read, value_bytes

IDS_SEED = 2
"""Another one than of the server that died: an id that was given is given to nothing else."""


def dropped_at_once(end: End) -> list[str]:
    """Before a drop hid the table first (docs/decisions/0099)."""
    return [*effects(end, "table.dropped"), *all_dropped(end, {"table.dropped": 1})]


ENDS: Mapping[tuple[str, str], Mapping[ProcedureOutcome, Check]] = {
    ("before-type-changes", "drop_table"): {FULL: dropped_at_once},
}
"""Version and scenario -> its legal ends, where they are not those of today."""


def led_on(cut: Cut, kinds: Mapping[str, Kind[Any]] = KINDS) -> tuple[str, ...]:
    """Returns the faults when all is over."""
    scenario = BY_NAME[cut.scenario]
    ends = ENDS.get((cut.version, cut.scenario), scenario.ends)
    tape = read(cut.version, cut.scenario)[: cut.lines]
    return run(lambda loop: _lead_on(loop, replace(scenario, ends=ends), tape, kinds), cut.lines)


async def _lead_on(
    loop: SimLoop, scenario: Scenario, tape: Tape, kinds: Mapping[str, Kind[Any]]
) -> tuple[str, ...]:
    cluster = Cluster(loop, kinds_of(scenario, kinds))
    cluster.ids = SeededIds(cluster.clock, IDS_SEED)
    meet_holders(scenario, cluster.holders)
    for line in tape:
        await _play(cluster, line)
    _know_versions(cluster)
    await _enrol(cluster)
    await cluster.clock.sleep_ms(TAKEOVER_MS)
    await cluster.start("meta-2")
    if not await cluster.quiet():
        return (f"never ends: {cluster.living()}",)
    over = set(outcomes_of(_agreement(cluster)))
    wrong = await ask_again(cluster, scenario, _asked(tape), over)
    if scenario.awaits_heartbeats:
        await cluster.clock.sleep_ms(2 * BEAT_MS)
    wrong += judge(cluster, _agreement(cluster), scenario, None)
    if cluster.leader.manager.living():
        wrong.append("locks are held at the end")
    return tuple(wrong)


async def _play(cluster: Cluster, line: Line) -> None:
    """At the moment when it was."""
    await cluster.clock.sleep_ms(line.at_ms - cluster.clock.mono_ms())
    if not isinstance(line, Commit):
        restore(cluster.plane, line.changes)
        return
    writes = tuple(
        Delete(key.encode()) if value is None else Put(key.encode(), value_bytes(value))
        for key, value in line.writes
    )
    await cluster.kv.txn(Request(writes=writes), deadline_ms=DEADLINE_MS)


async def _enrol(cluster: Cluster) -> None:
    """Registers the nodes that no line has registered or removed: tapes of before tell only what
    procedures and nodes did. A server that does not know a node leaves its regions to the node's
    heartbeat.
    """
    for node in cluster.plane.nodes.values():
        name = (DATANODE, node.node_id)
        keys = [bytes(NodeKey(*name)), bytes(RemovedNodeKey(*name))]
        if all(cluster.kv._store.get(key) is None for key in keys):
            write = Put(keys[0], encode(registered(node)))
            await cluster.kv.txn(Request(writes=(write,)), deadline_ms=DEADLINE_MS)


def _know_versions(cluster: Cluster) -> None:
    """Records the schema versions that are published already."""
    for item in cluster.kv._store.scan(*TableInfoKey.under()):
        info = decode(TableInfo, item.value, key=item.key.decode())
        cluster.schema_versions[info.table_id] = info.schema_version


def _asked(tape: Tape) -> str:
    """Returns the procedure that the client was told: the first one of all."""
    return next(name for living in living_at(tape) for name in living)


def _agreement(cluster: Cluster) -> Agreement:
    """Returns the values as a server of today understands them, with what an older one left out."""
    log = cluster.kv._store.log_from(1)
    return history_of(Watched(one.revision, tuple(_understood(one.events))) for one in log)


def _understood(events: tuple[Event, ...]) -> Iterator[Event]:
    for event in events:
        if event.value is None:
            yield event
        else:
            value_type = family_of(event.key).value_type
            value = decode(value_type, event.value, key=event.key.decode())
            yield replace(event, value=encode(value))
