"""A leader's look at whether the store holds the procedures that it knows, and no others.

Within a term no record can appear that its leader does not know (P1), so as a rule this
is one read of a number. It finds a fault of ours, or a hand in the store.
"""

from dataclasses import dataclass

import structlog

from keys.model.records import ProcedureKey
from keys.store.kv import Compare, Get, KeyValue
from keys.store.scan import WHOLE, pages
from metasrv_base.errors import Corrupt
from procedures.context import Ports
from procedures.scheduling.active_procedures import ActiveProcedures
from procedures.scheduling.recovery import read_under

NAMED_MAX = 16  # procedures in one line of the log
KEYS = WHOLE._replace(keys_only=True)

log = structlog.get_logger()


@dataclass(slots=True)
class Audit:
    """The audit of one term: finds stored procedures that this server does not run."""

    ports: Ports
    floor: ActiveProcedures
    _differed: bool = False
    _strange: int = 0
    """Keys that are no procedure's: reported when the term began, and left."""

    async def unknown(self, fence: Compare) -> tuple[KeyValue, ...]:
        """Records that are stored, and nobody here runs: read only when two counts in a row could
        not be explained by what is on its way.

        Raises NotLeader, Unavailable, or Conflict if the store is compacted between two pages.
        """
        await read_under(self.ports.kv, fence, deadline_ms=self.ports.deadline_ms)
        differed, self._differed = self._differed, not await self._is_explained()
        if not (differed and self._differed):
            return ()
        unknown = await self._look()
        self._differed = False
        return unknown

    async def _is_explained(self) -> bool:
        """Submissions and ends may be on their way before, while and after the store counts."""
        floor, (start, end) = self.floor, ProcedureKey.under()
        arriving, announced = len(floor.arriving), floor.announced
        expected = len(floor.entries) + self._strange
        counted = await self.ports.kv.range(
            Get(start, end, count_only=True), deadline_ms=self.ports.deadline_ms
        )
        came = arriving + floor.announced - announced
        owned = sum(entry.task is not None for entry in floor.entries.values())
        least = len(floor.entries) + self._strange - owned - came
        return least <= counted.count <= expected + came

    async def _look(self) -> tuple[KeyValue, ...]:
        """Returns records in the store that memory lacks. Reads all keys, and values of unknown
        ones only."""
        floor, kv, deadline_ms = self.floor, self.ports.kv, self.ports.deadline_ms
        before, stored, self._strange = set(floor.entries), set[str](), 0
        async for page in pages(kv, ProcedureKey.under(), deadline_ms=deadline_ms, like=KEYS):
            for item in page.items:
                try:
                    stored.add(ProcedureKey.parse(item.key).procedure)
                except Corrupt:
                    self._strange += 1
        unknown = [procedure for procedure in stored if not self._is_known(procedure)]
        gone = [
            procedure
            for procedure in before - stored
            if procedure in floor.entries and floor.entries[procedure].task is None
        ]
        items: list[KeyValue] = []
        for procedure in unknown:  # what has ended meanwhile is not there any more
            get = Get(bytes(ProcedureKey(procedure)))
            items += (await kv.range(get, deadline_ms=deadline_ms)).items
        if items or gone:
            log.error(
                "procedures_differ",
                unknown=[ProcedureKey.parse(item.key).procedure for item in items[:NAMED_MAX]],
                gone=sorted(gone)[:NAMED_MAX],
            )
        return tuple(items)

    def _is_known(self, procedure: str) -> bool:
        return procedure in self.floor.entries or procedure in self.floor.arriving
