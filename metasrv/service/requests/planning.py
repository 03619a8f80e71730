"""Dry runs: the plan of a change as things are now, with all that stands in its way."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keys.model.records import ClientRequirements, Lock, ProcedureHistory
from metasrv.leadership.term import Term
from metasrv.service.state.history import FIRST_ID, LAST_ID, History
from procedures.dry_run.dry_run import DryRunRequest, dry_run
from procedures.dry_run.estimates import ASSUMED, Estimates, Rate, measured
from procedures.dry_run.plan import Blocker, Obstacle, Plan
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import State
from procedures.kinds.registry import KINDS
from procedures.machine import Kind, ProcedureState
from procedures.scheduling.manager import Manager

LOOKED_AT_MAX = 1_024  # procedures that are over, for the reorgs among them


async def plan_of(
    term: Term, kind: Kind[Any], state: ProcedureState, client: ClientRequirements
) -> Plan:
    """Plans the change, without storing anything or asking a node. Raises Unavailable if etcd does
    not answer."""
    estimates = Estimates(term.nodes.size_of, await _rate_of(term, kind, state))
    plan = await dry_run(KINDS, DryRunRequest(kind, state, client), term.ports, estimates)
    for member in plan.family:
        member.blockers[:0] = _holders(member.locks, term.manager)
    plan.blockers[:0] = _admission_blockers(kind, term.manager)
    return plan


async def _rate_of(term: Term, kind: Kind[Any], state: ProcedureState) -> Rate:
    """The rate at which the last reorgs read; an assumed one for a kind that reads no rows."""
    if not kind.is_paced:
        return ASSUMED
    ports = term.ports
    history = History(ports.kv, ports.deadline_ms, FIRST_ID, LAST_ID, ports.clock.wall_ms())
    ended: list[ProcedureHistory] = []
    async for _, window in history.windows():
        ended += [window[procedure] for procedure in sorted(window, reverse=True)]
        if len(ended) >= LOOKED_AT_MAX:
            break
    return measured(ended, kind.resource(state))


def _admission_blockers(kind: Kind[Any], manager: Manager) -> Iterator[Blocker]:
    """Yields the blockers that every request meets now. Named as in `waiting_for`."""
    if not manager.gate.is_open:
        yield Blocker(Obstacle.MAINTENANCE, manager.gate.reason)
    if not manager.has_room(kind):
        yield Blocker(Obstacle.ADMISSION, "too-many-procedures", waits=False)
    elif not manager.has_place(kind):
        yield Blocker(Obstacle.ADMISSION, "running procedures")


def _holders(locks: Sequence[Lock], manager: Manager) -> Iterator[Blocker]:
    """Procedures that hold its locks, or wait before it; not those that it would overtake (P2)."""
    overtaken = manager.locks.overtaken_by(tuple(locks), {})
    for procedure, key in manager.locks.conflicts(locks):
        entry = manager.entry(procedure)
        if entry is not None and procedure not in overtaken:
            yield Blocker(obstacle_of(entry), procedure, key)


def obstacle_of(entry: ActiveProcedure) -> Obstacle:
    """Whether waiting alone helps against one that has a lock."""
    return _AT_REST.get(entry.state, Obstacle.LOCK)


_AT_REST: Mapping[State, Obstacle] = {
    State.PAUSED: Obstacle.PAUSED,
    State.POISONED: Obstacle.POISON,
}
