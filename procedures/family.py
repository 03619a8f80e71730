"""Children as a step sees them: submitted under ids its record holds, and waited for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from base.errors import NotFound
from keys.records import ProcedureHistory
from procedures.entry import Entry
from procedures.ports import ChildEnd

WAIT_MS = 60_000  # one look at a child that is not over; then it is looked at again


class House(Protocol):
    """Where procedures live: the manager, as a parent needs it."""

    async def submit_child(
        self, procedure: str, parent: str, kind: str, state: dict[str, object]
    ) -> None: ...

    async def find(self, procedure: str) -> Entry | ProcedureHistory: ...

    async def wait(self, procedure: str, *, deadline_ms: int) -> Entry | ProcedureHistory: ...


@dataclass(frozen=True, slots=True)
class ChildrenOf:
    """The Children port of one parent."""

    house: House
    parent: str

    async def submit(self, procedure: str, kind: str, state: dict[str, object]) -> None:
        await self.house.submit_child(procedure, self.parent, kind, state)

    async def exists(self, procedure: str) -> bool:
        try:
            await self.house.find(procedure)
        except NotFound:
            return False
        return True

    async def wait(self, procedures: Sequence[str]) -> tuple[ChildEnd, ...]:
        return tuple([await self._end_of(procedure) for procedure in procedures])

    async def _end_of(self, procedure: str) -> ChildEnd:
        while True:
            found = await self.house.wait(procedure, deadline_ms=WAIT_MS)
            if isinstance(found, ProcedureHistory):
                error = found.last.error
                code = error.code if error else None
                return ChildEnd(procedure, found.outcome, code, found.result)
