"""Children as a step sees them: each names its parent, which can make their ids again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from keys.model.records import ProcedureHistory
from metasrv_base.errors import NotFound
from procedures.engine.active_procedure import ActiveProcedure
from procedures.ports import ChildEnd

WAIT_MS = 60_000  # one look at a child that is not over; then it is looked at again
LOOK_MS = 250  # between counts of those under way, while the oldest of them does not end


class ProcedureHost(Protocol):
    """The manager, as a parent uses it."""

    async def submit_child(
        self, procedure: str, parent: str, kind: str, state: dict[str, object]
    ) -> None: ...

    def entry(self, procedure: str) -> ActiveProcedure | None: ...

    def living(self) -> Iterable[tuple[str, ActiveProcedure]]: ...

    async def find(self, procedure: str) -> ActiveProcedure | ProcedureHistory: ...

    async def wait(
        self, procedure: str, *, deadline_ms: int
    ) -> ActiveProcedure | ProcedureHistory: ...


@dataclass(slots=True)
class ChildProcedures:
    """The Children port of one parent, for as long as this leader runs it."""

    house: ProcedureHost
    parent: str
    _living: dict[str, ActiveProcedure] | None = field(default=None)
    """Active children by id; None: not read yet, and an earlier leader may have begun some."""

    async def submit(self, procedure: str, kind: str, state: dict[str, object]) -> None:
        await self.house.submit_child(procedure, self.parent, kind, state)
        entry = self.house.entry(procedure)
        if entry is not None:
            self._under_way()[procedure] = entry

    async def end_of(self, procedure: str) -> ChildEnd | None:
        try:
            procedure_or_history = await self.house.find(procedure)
        except NotFound:
            return None
        return (
            _end(procedure, procedure_or_history)
            if isinstance(procedure_or_history, ProcedureHistory)
            else None
        )

    async def under_way(self) -> tuple[str, ...]:
        return tuple(self._under_way())

    async def at_most(self, left: int) -> None:
        while len(living := self._under_way()) > left:
            await self.house.wait(next(iter(living)), deadline_ms=LOOK_MS)

    def _under_way(self) -> dict[str, ActiveProcedure]:
        if self._living is None:
            mine = self.house.living()
            living = {
                name: entry for name, entry in mine if entry.held.record.parent == self.parent
            }
        else:
            living = self._living
        self._living = {name: entry for name, entry in living.items() if not entry.over.is_set()}
        return self._living

    async def wait(self, procedures: Sequence[str]) -> tuple[ChildEnd, ...]:
        return tuple([await self._end_of(procedure) for procedure in procedures])

    async def _end_of(self, procedure: str) -> ChildEnd:
        while True:
            procedure_or_history = await self.house.wait(procedure, deadline_ms=WAIT_MS)
            if isinstance(procedure_or_history, ProcedureHistory):
                return _end(procedure, procedure_or_history)


def _end(procedure: str, history: ProcedureHistory) -> ChildEnd:
    error = history.last.error
    return ChildEnd(procedure, history.outcome, error.code if error else None, history.result)
