"""A writer that goes on while nodes die, and remembers what it was told of each row.

Every id is given once and inserted on the condition that it is new. `ok`: acknowledged; it must be
there, once, as it was sent. `maybe`: the answer was lost. `fail`: refused, or never attempted; it
must not be there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from metasrv.sdk.rows.table import AsyncTable
from metasrv_base.clock import SystemClock
from metasrv_base.errors import MetaError, Unknown

BATCH = 20
PAUSE_MS = 20
STATEMENT_MS = 1_500
"""Shorter than a failover, so that some outcomes stay unknown and some writes are never tried."""


@dataclass
class Writer:
    """One line of batches; `first` keeps the ids of several writers apart."""

    table: AsyncTable
    first: int = 0
    statement_ms: int = STATEMENT_MS
    told: dict[int, str] = field(default_factory=dict)
    begun: int = 0
    """Batches so far."""
    acknowledged: int = 0
    """The number of the last one that was told `ok`."""
    acknowledged_ms: list[int] = field(default_factory=list)
    """When, on this process's clock."""
    codes: Counter[str] = field(default_factory=Counter)
    _stopped: bool = False

    def __post_init__(self) -> None:
        self._clock = SystemClock()

    def stop(self) -> None:
        self._stopped = True

    async def run(self) -> None:
        while not self._stopped:
            await self.write()
            await self._clock.sleep_ms(PAUSE_MS)

    async def write(self) -> None:
        """One batch, over all regions; what each region said holds for its rows alone."""
        start = self.first + len(self.told)
        ids = range(start, start + BATCH)
        self.begun += 1
        number = self.begun
        rows = [{"id": id, "word": word_of(id)} for id in ids]
        self._note(ids, "maybe")
        try:
            await self.table.insert(rows, deadline_ms=self.statement_ms)
        except MetaError as error:
            self.codes[str(error)[:200]] += 1
            if not isinstance(error, Unknown) and not _is_partly_done(error):
                self._note(ids, "fail")
        else:
            self._note(ids, "ok")
            self.acknowledged = number
            self.acknowledged_ms.append(self._clock.mono_ms())

    def _note(self, ids: Iterable[int], told: str) -> None:
        for id in ids:
            self.told[id] = told

    def gap_ms(self) -> int:
        """The longest time without an acknowledgement."""
        pairs = zip(self.acknowledged_ms, self.acknowledged_ms[1:], strict=False)
        return max((after - before for before, after in pairs), default=0)

    def count(self, told: str) -> int:
        return sum(one == told for one in self.told.values())

    def __str__(self) -> str:
        counts = ", ".join(f"{self.count(told)} {told}" for told in ("ok", "maybe", "fail"))
        return f"rows {counts}; longest silence {self.gap_ms()} ms; {dict(self.codes)}"


def word_of(id: int) -> str:
    return f"word {id}"


def _is_partly_done(error: MetaError) -> bool:
    regions = error.facts.get("regions")
    return isinstance(regions, list) and any(r["outcome"] != "not-applied" for r in regions)


def wrong_rows(rows: Iterable[Mapping[str, Any]], writers: Iterable[Writer]) -> list[str]:
    """Returns the rows of a full scan that contradict the answers to the writers."""
    told = {id: said for writer in writers for id, said in writer.told.items()}
    wrong: list[str] = []
    seen: set[int] = set()
    for row in rows:
        id = row["id"]
        if id in seen:
            wrong.append(f"row {id} is there twice")
        seen.add(id)
        if row["word"] != word_of(id):
            wrong.append(f"row {id} says {row['word']}")
        if told.get(id, "never sent") not in ("ok", "maybe"):
            wrong.append(f"row {id} is there, and was {told.get(id, 'never sent')}")
    lost = [id for id, said in told.items() if said == "ok" and id not in seen]
    return wrong + [f"row {id} was acknowledged and is lost" for id in lost]
