"""Controls: who may ask for one, and the fenced write that each of them is.

One task owns a procedure (P1). Nobody else moves its record: a control is a letter in its
mailbox, and is carried out by the owner (owner.py).
"""

from functools import partial
from typing import Protocol

from keys.commit.txn import Txn, snapshot
from keys.model.poison import PoisonKey
from keys.model.records import ProcedureHistory, ProcedureRecord
from procedures.context import Ports
from procedures.engine import record_transitions
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import (
    Command,
    Control,
    State,
    is_fulfilled,
    refused,
    require_allowed,
)
from procedures.engine.runner import Runner, StepResult


class Steered(Protocol):
    """The manager, as far as somebody who asks for a control needs it."""

    @property
    def runner(self) -> Runner: ...

    async def find(self, procedure: str) -> ActiveProcedure | ProcedureHistory: ...


async def find_controllable(host: Steered, procedure: str, control: Control) -> ActiveProcedure:
    """Returns the procedure as it stands: the control is allowed there, or fulfilled.

    Raises NotFound, or Conflict as `require_allowed`.
    """
    entry = await host.find(procedure)
    if isinstance(entry, ProcedureHistory):
        raise refused(procedure, control, entry.outcome)
    if not is_fulfilled(entry.facts, control):
        require_allowed(entry.facts, control, procedure)
    return entry


def moves_its_record(entry: ActiveProcedure, command: Command) -> bool:
    """A retry only wakes what rests, unless its undo was given up."""
    return command.control is not Control.RETRY or entry.state is State.POISONED


async def store(runner: Runner, entry: ActiveProcedure, command: Command) -> StepResult:
    """The write of a control; in a dry run *runner* is one over a draft."""
    held = entry.held
    mark = command.mark(runner.ports.clock.wall_ms())
    record = held.record
    match command.control:
        case Control.CANCEL if entry.never_began:
            return await runner.abandon(held, mark)
        case Control.CANCEL:
            return await runner.turn_back(held, mark)
        case Control.PAUSE:
            return await runner.store(held, partial(record_transitions.pause, record, mark))
        case Control.RESUME:
            return await runner.store(held, partial(record_transitions.resume, record, mark))
        case Control.THROTTLE:
            slowed = record_transitions.throttle(record, mark, command.percent, command.rows_per_s)
            return await runner.store(held, lambda _: slowed)
        case Control.RETRY:
            effect = await _without_poison(runner.ports, record)
            return await runner.store(
                held, partial(record_transitions.undo_again, record, mark), effect
            )
        case Control.CLEAR:
            effect = await _without_poison(runner.ports, record)
            return await runner.end(held, partial(record_transitions.cleared, record, mark), effect)


async def _without_poison(ports: Ports, record: ProcedureRecord) -> Txn:
    key = PoisonKey.of(record.resource)
    return Txn.on(await snapshot(ports.kv, key, deadline_ms=ports.deadline_ms)).delete(key)


def has_expired(entry: ActiveProcedure, now_ms: int) -> bool:
    """Whether it has waited for its locks or its place until its deadline; *now_ms* is
    `Gate.worked_ms`."""
    record, facts = entry.held.record, entry.facts
    waits = facts.state in (State.QUEUED, State.WAITING)
    return waits and not facts.has_passed and record.due_ms <= now_ms
