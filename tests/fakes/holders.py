"""Holders of schema leases, as a term's SchemaSync port sees them: who uses which version."""

import asyncio
from dataclasses import dataclass, field

from keys.model.transitions import LateHolder, Went
from metasrv_base.clock import Clock
from metasrv_base.errors import Unavailable
from procedures.ports import Behind, Drain

LEASE_MS = 15_000


@dataclass
class FakeHolder:
    """A frontend: it hears of every version at once, and its transactions keep old ones."""

    uses: dict[int, int] = field(default_factory=dict)
    """Table id -> the oldest schema version that an open transaction is bound to."""
    silent_since_ms: int | None = None
    """Monotonic; it died, or is cut off: its lease ends, and then it is not waited for."""


@dataclass
class FakeHolders:
    """The SchemaSync port of every term of a world. Without holders nobody is waited for."""

    clock: Clock
    holders: dict[str, FakeHolder] = field(default_factory=dict)
    unsound: set[int] = field(default_factory=set)
    """Ids of tables of which an old version is in use again."""
    waited: list[tuple[int, int | None]] = field(default_factory=list)
    """(table, schema version) of every wait that ended, in order."""
    p99_ms: float | None = None
    """Latency of statements at the slowest holder."""
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    def uses(self, holder: str, table_id: int, schema_version: int) -> None:
        """A transaction on *holder* binds the table."""
        self.holders.setdefault(holder, FakeHolder()).uses[table_id] = schema_version

    def lets_go(self, holder: str, table_id: int) -> None:
        del self.holders[holder].uses[table_id]
        self._wake()

    def dies(self, holder: str) -> None:
        self.holders[holder].silent_since_ms = self.clock.mono_ms()
        self._wake()

    def behind(self, table_id: int, schema_version: int | None) -> tuple[Behind, ...]:
        now = self.clock.mono_ms()
        found = []
        for name, holder in sorted(self.holders.items()):
            since = holder.silent_since_ms
            left = LEASE_MS if since is None else since + LEASE_MS - now
            older = schema_version is not None and (
                holder.uses.get(table_id, schema_version) < schema_version
            )
            if left > 0 and (older or since is not None):
                found.append(Behind(name, 0, 1, left, "t-1" if older else None))
        return tuple(found)

    def statement_p99_ms(self) -> float | None:
        return self.p99_ms

    def must_be_sound(self, table_id: int) -> None:
        if table_id in self.unsound:
            raise Unavailable("schema-audit-failed", holder="fe-1", schema_version=1, floor=2)

    async def drained(self, table_id: int, schema_version: int | None) -> Drain:
        began_ms, late = self.clock.mono_ms(), dict[str, Behind]()
        while behind := self.behind(table_id, schema_version):
            late |= {one.holder: one for one in behind}
            left_ms = min(one.expires_in_ms for one in behind)
            self._moved.clear()
            try:
                async with asyncio.timeout(left_ms / 1000):
                    await self._moved.wait()
            except TimeoutError:
                continue
        self.waited.append((table_id, schema_version))
        took_ms = self.clock.mono_ms() - began_ms
        living = [one for one, holder in self.holders.items() if holder.silent_since_ms is None]
        return Drain(
            len(living),
            tuple(
                LateHolder(
                    holder=one.holder,
                    ms=took_ms,
                    went=Went.FOLLOWED if one.holder in living else Went.REMOVED,
                    transaction=one.transaction,
                )
                for one in late.values()
            ),
        )

    def _wake(self) -> None:
        self._moved.set()
