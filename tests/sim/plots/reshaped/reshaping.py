"""A client that also renames its table, drops it and brings it back, and empties it, beside all
other changes of its shape."""

from dataclasses import dataclass, field

from tests.sim.checks.oracle import Written
from tests.sim.clients.changes import Alterer
from tests.sim.clients.client import pursued
from tests.sim.clients.ddl import Known

DROPPED_MS = 6_000
UNDROPS_MAX = 30
RENAMED = "a table that was renamed beside its users"
UNDROPPED = "a table that was undropped beside its users"
EMPTIED = "a table that was truncated beside its users"


@dataclass
class Reshaper(Alterer):
    known: Known = field(default_factory=lambda: Known("shaped"))
    """The table as other operators know it."""

    async def change(self) -> None:
        drawn = self.session.random.random()
        if drawn < 0.08:
            await self._rename()
        elif drawn < 0.17:
            await self._drop()
        elif drawn < 0.24:
            await self._truncate()
        else:
            await super().change()

    async def _rename(self) -> None:
        self.changes += 1
        tables, name = self.session.tables, self._name("shaped")
        end = await pursued(
            self.session, lambda key: tables.rename(self.table.name, name, idempotency_key=key)
        )
        if end.error is None:
            self.session.count(RENAMED)
            self.table.name = self.known.name = name

    async def _drop(self) -> None:
        """For a while; its regions may have moved meanwhile."""
        self.changes += 1
        tables, name = self.session.tables, self.table.name
        end = await pursued(self.session, lambda key: tables.drop(name, idempotency_key=key))
        if end.error is not None:
            return
        for _ in range(UNDROPS_MAX):
            await self.session.think(DROPPED_MS)
            back = await pursued(
                self.session,
                lambda key: tables.undrop(name, self.table.table_id, idempotency_key=key),
            )
            if back.error is None:
                self.session.count(UNDROPPED)
                return
        self.session.wrong(f"{name} cannot be undropped: {back.error}")

    async def _truncate(self) -> None:
        self.changes += 1
        tables, name, table = self.session.tables, self.table.name, self.table
        now = self.session.now
        written: list[Written] = [table.rows.begin_truncate(now)]
        written += [column.values.begin_truncate(now) for column in table.columns.values()]
        end = await pursued(self.session, lambda key: tables.truncate(name, idempotency_key=key))
        if end.error is None:
            self.session.count(EMPTIED)
        for one in written:
            one.ended = self.session.now if end.error is None else one.ended
            one.refused = end.error is not None
