"""Takes in stored procedures: all of them when a term begins, and later those an audit finds."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from keys.store.kv import Compare
from metasrv_base.errors import Conflict, NotLeader, Unavailable
from procedures.context import Ports
from procedures.engine.active_procedure import ActiveProcedure
from procedures.machine import Kind
from procedures.scheduling.active_procedures import ActiveProcedures
from procedures.scheduling.audit import Audit
from procedures.scheduling.recovery import AT_ONCE, entries_of, read_records

PAUSE_MS = 200  # before a store that did not answer is asked again

log = structlog.get_logger()


@dataclass(slots=True)
class ProcedureIntake:
    """The intake of one term."""

    kinds: Mapping[str, Kind[Any]]
    ports: Ports
    floor: ActiveProcedures
    _audit: Audit = field(init=False)

    def __post_init__(self) -> None:
        self._audit = Audit(self.ports, self.floor)

    async def recover(self, fence: Compare) -> None:
        """Takes in every record, a slice at a time: whoever else has work goes in between."""
        entries = await self._read_all(fence)
        by_age = sorted(entries.values(), key=lambda entry: entry.held.record.submission)
        for number, entry in enumerate(by_age, start=1):
            self._take_in(entry)
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)

    async def compare(self, fence: Compare) -> None:
        """Takes in stored records unknown here. If the store is silent, the next call retries."""
        try:
            unknown = await self._audit.unknown(fence)
        except NotLeader:
            raise
        except (Unavailable, Conflict):
            return
        for entry in entries_of(unknown, self.kinds):
            self._take_in(entry)

    async def _read_all(self, fence: Compare) -> dict[str, ActiveProcedure]:
        """Asks until the store answers."""
        ports = self.ports
        entries: dict[str, ActiveProcedure] = {}
        while True:
            try:
                async for items in read_records(ports.kv, fence, deadline_ms=ports.deadline_ms):
                    for entry in entries_of(items, self.kinds):
                        entries[entry.held.procedure] = entry
                    await asyncio.sleep(0)
            except NotLeader:
                raise
            except (Unavailable, Conflict):  # silent, or compacted between two pages
                await ports.clock.sleep_ms(PAUSE_MS)
            else:
                return entries

    def _take_in(self, entry: ActiveProcedure) -> None:
        self.floor.take_in(entry)
        if (reason := entry.parked) is not None:
            log.error("procedure_parked", procedure=entry.held.procedure, reason=reason)
