"""Finds a procedure by its id: under way, just over, or in the history that is stored."""

import asyncio
from dataclasses import dataclass

from keys.commit.txn import snapshot
from keys.model.records import ProcedureHistory, ProcedureHistoryKey
from metasrv_base.errors import NotFound
from procedures.context import Ports
from procedures.engine.active_procedure import ActiveProcedure
from procedures.scheduling.active_procedures import ActiveProcedures
from procedures.scheduling.recent import Recent


@dataclass(frozen=True, slots=True)
class Finder:
    """The lookups of one term."""

    ports: Ports
    floor: ActiveProcedures
    recent: Recent

    async def find(self, procedure: str) -> ActiveProcedure | ProcedureHistory:
        """Raises NotFound if there never was one, or its history has been purged."""
        if procedure in self.floor.entries:
            return self.floor.entries[procedure]
        if procedure in self.recent:
            return self.recent[procedure]
        key = ProcedureHistoryKey(procedure)
        read = await snapshot(self.ports.kv, key, deadline_ms=self.ports.deadline_ms)
        history = read.get(key)
        if history is None:
            raise NotFound("procedure-not-found", procedure_id=procedure)
        return history

    async def wait(self, procedure: str, *, deadline_ms: int) -> ActiveProcedure | ProcedureHistory:
        """Waits until the procedure has ended or *deadline_ms* have passed; then returns it like
        `find`."""
        entry = self.floor.entries.get(procedure)
        if entry is not None:
            try:
                async with asyncio.timeout(deadline_ms / 1000):
                    await entry.over.wait()
            except TimeoutError:
                return entry
        return await self.find(procedure)
