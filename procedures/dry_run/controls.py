"""The dry run of a control: its very write, over a draft of the store."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

from keys.model.records import ProcedureHistory
from procedures.dry_run.overlay_store import OverlayStore
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import Command, Control, is_fulfilled
from procedures.engine.runner import Runner, StoredRecord
from procedures.engine.steering import Steered, find_controllable, moves_its_record, store
from procedures.locking.holding import LockTable
from procedures.machine import Kind


class ControlHost(Steered, Protocol):
    """The manager, as far as its foresight needs it."""

    @property
    def locks(self) -> LockTable: ...

    def has_place(self, kind: Kind[Any]) -> bool:
        """Whether one more of that kind could run now."""
        ...


@dataclass(slots=True)
class Foreseen(ActiveProcedure):
    """A procedure as it would be; nobody owns it."""

    would_run: bool = False

    @property
    def is_run(self) -> bool:
        return self.would_run


async def foresee(
    host: ControlHost, procedure: str, command: Command
) -> ActiveProcedure | ProcedureHistory:
    """Returns the answer that a control would get now. It stores nothing and ends no task.

    Raises the errors that the control would raise.
    """
    entry = await find_controllable(host, procedure, command.control)
    if is_fulfilled(entry.facts, command.control):
        return entry
    held = entry.held
    if moves_its_record(entry, command):
        ports = host.runner.ports
        after = await store(Runner(ports, OverlayStore(ports.kv, ports.clock)), entry, command)
        if isinstance(after, ProcedureHistory):
            return after
        held = after
    return _after(host, entry, held, command.control)


def _after(
    host: ControlHost, entry: ActiveProcedure, held: StoredRecord, control: Control
) -> Foreseen:
    """Returns the procedure after *control*: a running one continues unless the control ends its
    task; a waiting one begins if it is not blocked and is admitted."""
    blocked = host.locks.blocked(held.procedure)
    stops = control in (Control.CANCEL, Control.PAUSE)
    may_begin = not blocked and _finds_place(host, entry)
    return Foreseen(
        held=held,
        live=replace(entry.live, waiting=[], waiting_now=tuple) if stops else entry.live,
        kind=entry.kind,
        waits=bool(blocked),
        blockers=lambda: blocked,
        began_ms=entry.began_ms,
        stalled=entry.stalled and not stops,
        would_run=not stops and (entry.is_run or may_begin),
    )


def _finds_place(host: ControlHost, entry: ActiveProcedure) -> bool:
    return entry.kind is not None and (entry.only_waits or host.has_place(entry.kind))
