"""Ids that are never reused: reserved in blocks by the leader, handed out from memory."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from keys.commit.committer import Committer, StaleRead
from keys.commit.txn import Txn, snapshot
from keys.model.cluster import Sequence, SequenceKey
from keys.model.placing.placements import DEFAULT_PLACEMENT_ID
from keys.store.kv import Kv
from metasrv_base.errors import MetaError

BLOCK = 1024  # ids reserved at once; a leader that ends leaves at most this gap
FIRST: Mapping[str, int] = {
    "table_id": 1024,
    "schema_id": 1024,
    "catalog_id": 1024,
    "placement_id": DEFAULT_PLACEMENT_ID + 1,
}
BOOTSTRAPPED = ("table_id", "schema_id", "catalog_id")
"""Sequences that stand from the bootstrap on; another one is made when its first block is
reserved."""


@dataclass(eq=False, slots=True)
class _Reservation:
    """A reservation on its way to the store, for all callers that wait for it."""

    over: asyncio.Event = field(default_factory=asyncio.Event)
    error: MetaError | None = None
    """The error; None also if the caller that sent it was cancelled."""


@dataclass(slots=True)
class _Block:
    next: int = 0
    end: int = 0
    coming: _Reservation | None = None


@dataclass(slots=True)
class Sequences:
    """The id sequences of one term. Safe for concurrent callers: an id is taken without an
    `await`."""

    kv: Kv
    committer: Committer
    deadline_ms: int
    _blocks: dict[str, _Block] = field(default_factory=dict)

    async def next(self, name: str) -> int:
        """Raises what the committer raises; an id that was handed out is never handed out again."""
        block = self._blocks.setdefault(name, _Block())
        while block.next >= block.end:
            await self._refill(name, block)
        block.next += 1
        return block.next - 1

    async def peek(self, name: str) -> int:
        """The id that `next` would give now; reserves nothing, so it may be another's by then."""
        block = self._blocks.get(name, _Block())
        if block.next < block.end:
            return block.next
        key = SequenceKey(name)
        stored = (await snapshot(self.kv, key, deadline_ms=self.deadline_ms)).get(key)
        return stored.next if stored else FIRST[name]

    async def _refill(self, name: str, block: _Block) -> None:
        """Reserves a block. One caller does so for all: of several that compare one key all but
        one would be refused, and each refusal sends a whole batch again."""
        if (coming := block.coming) is not None:
            await coming.over.wait()
            if coming.error is not None:
                raise coming.error
            return
        coming = block.coming = _Reservation()
        try:
            await self._reserve(name, block)
        except MetaError as error:
            coming.error = error
            raise
        finally:
            block.coming = None
            coming.over.set()

    async def _reserve(self, name: str, block: _Block) -> None:
        key = SequenceKey(name)
        read = await snapshot(self.kv, key, deadline_ms=self.deadline_ms)
        stored = read.get(key)
        first = stored.next if stored else FIRST[name]
        try:
            await self.committer.commit(Txn.on(read).put(key, Sequence(next=first + BLOCK)))
        except StaleRead:
            return  # what was read is old: the next look tells
        block.next, block.end = first, first + BLOCK
