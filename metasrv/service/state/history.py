"""Procedures that are over, from the newest backwards: ids are UUIDv7, so their order is that of
time.

It is read in windows of time, so that a look at the newest costs what it sees, not what there ever
was.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from keys.key import Range
from keys.model.records import ProcedureHistory, ProcedureHistoryKey
from keys.store.kv import Get, KeyPage, KeyValue, ReadableStore
from keys.store.readable import readable, skip_silently
from keys.store.scan import scan
from metasrv_base.ids import uuid7, wall_ms_of

WINDOW_MS = 60_000  # the first: what people ask for is mostly what has just been
WINDOW_KEYS = 256  # a window that holds more is made shorter, down to a millisecond
READ_AT_ONCE = 64  # histories between two yields of the event loop: some 5 ms of creates
FIRST_ID = "0"
LAST_ID = "g"
"""Ids below and above every other one."""

Ended: TypeAlias = Mapping[str, ProcedureHistory]


@dataclass(frozen=True, slots=True)
class History:
    """The procedures that are over, with ids from `first` to `end`, exclusive; `now_ms` is no
    younger."""

    kv: ReadableStore
    deadline_ms: int
    first: str
    end: str
    now_ms: int

    async def windows(self) -> AsyncIterator[tuple[str, Ended]]:
        """Yields the start of each window that is not empty, and its procedures, newest first; then
        the last window, to `first`.

        Windows grow while nothing is found; where too much is, the middle between there and the end
        is tried, so that a gap of years costs some forty reads.
        """
        page = await self._keys(self.first, self.end, limit=1)
        oldest, revision = (_id_of(page.items[0]) if page.items else self.end), page.revision
        end, width_ms, too_far_ms = self.end, WINDOW_MS, -1
        while end > oldest:
            end_ms = self.now_ms if end == LAST_ID else wall_ms_of(end)
            first_ms = max(end_ms - width_ms, (too_far_ms + end_ms) // 2, 0)
            first = max(first_id(first_ms), oldest)
            keys = await self._keys(first, end, limit=WINDOW_KEYS, revision=revision)
            if keys.more and first_ms > too_far_ms:
                too_far_ms = first_ms
                continue
            if keys.items:
                yield first, await self._read(first, end, revision)
                growth = 2 if len(keys.items) < WINDOW_KEYS // 4 else 1
                width_ms, too_far_ms = max(end_ms - first_ms, 1) * growth, -1
            else:
                width_ms *= 4
            end = first
        yield self.first, {}

    async def _keys(self, first: str, end: str, *, limit: int, revision: int = 0) -> KeyPage:
        get = Get(_key(first), _key(end), limit=limit, keys_only=True)
        return await self.kv.range(get, deadline_ms=self.deadline_ms, revision=revision)

    async def _read(self, first: str, end: str, revision: int) -> Ended:
        keys = Range(_key(first), _key(end))
        items, _ = await scan(self.kv, keys, deadline_ms=self.deadline_ms, revision=revision)
        ended: dict[str, ProcedureHistory] = {}
        for number, row in enumerate(
            readable(ProcedureHistoryKey, ProcedureHistory, items, skip_silently), start=1
        ):
            ended[row.key.procedure] = row.value
            if number % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        return ended


def first_id(wall_ms: int) -> str:
    return uuid7(wall_ms, bytes(10))


def _key(procedure: str) -> bytes:
    return ProcedureHistoryKey.under().start + procedure.encode()


def _id_of(item: KeyValue) -> str:
    """The id in a key, also of a key that is no history's."""
    return item.key.removeprefix(ProcedureHistoryKey.under().start).decode("utf-8", "replace")
