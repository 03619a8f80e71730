"""A store that counts what it is asked, and a cluster that has so many tables before it is led."""

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.service.filled import Filling, write_tables
from keys.commit.log_head import read_log_head
from keys.store.kv import Compare, Delete, Get, KeyPage, KeyValue, Put, Request, TxnAnswer
from keys.store.memory import MemoryKv
from metasrv_base.clock import Clock
from tests.metasrv.api.fakes import ShiftedClock
from tests.metasrv.api.rig import DEADLINE_MS, Given


@dataclass
class Counts:
    """Counts of several calls together."""

    calls: int = 0
    keys: int = 0
    """Compared, written, asked for and answered."""
    size_bytes: int = 0
    """Bytes of those keys, and of values both ways."""

    def add(self, keys: Iterable[bytes], values: Iterable[bytes] = ()) -> None:
        known = list(keys)
        self.keys += len(known)
        self.size_bytes += sum(map(len, known)) + sum(map(len, values))

    def answered(self, items: Iterable[KeyValue]) -> None:
        found = list(items)
        self.add((one.key for one in found), (one.value for one in found))


class CountedKv(MemoryKv):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.counts = Counts()
        if isinstance(clock, ShiftedClock):
            clock.holds = True  # what a server does by the clock is not what is counted

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        self.counts.calls += 1
        self.counts.add(one.key for one in request.compares)
        self.counts.add((one.key for one in request.writes), _values(request.writes))
        self.counts.add(one.key for one in request.reads)
        answer = await super().txn(request, deadline_ms=deadline_ms)
        for items in answer.ranges:
            self.counts.answered(items)
        return answer

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        self.counts.calls += 1
        self.counts.add([get.key])
        page = await super().range(
            get, deadline_ms=deadline_ms, revision=revision, serializable=serializable
        )
        self.counts.answered(page.items)
        return page


def _values(writes: Iterable[Put | Delete]) -> Iterable[bytes]:
    return (one.value for one in writes if isinstance(one, Put))


def with_tables(count: int) -> Given:
    """Returns a store with tables of one region each, on nodes that do not exist."""

    async def given(kv: MemoryKv, fence: Compare) -> None:
        line = await read_log_head(kv, fence, deadline_ms=DEADLINE_MS)
        await write_tables(kv, Filling(count, regions=1), line, now_ms=line.at_ms)

    return given
