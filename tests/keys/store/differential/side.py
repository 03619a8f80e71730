"""One of two stores under the same operations; its answers without what may differ between them."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from keys.store.kv import Compare, Delete, Get, KeyValue, Kv, LeaseId, Put, Request, Watched
from metasrv_base.errors import MetaError
from tests.keys.store.differential.operations import (
    Compact,
    Grant,
    KeepAlive,
    Operation,
    Read,
    Revoke,
    Transact,
    Watch,
    Written,
)

DEADLINE_MS = 10_000
FIRST = 2  # MemoryKv's revision after the put with which every sequence begins
TTL_MS = 3_600_000  # no sequence lasts so long
NOT_GRANTED = LeaseId(1 << 40)


@dataclass(frozen=True, slots=True)
class Now:
    """The state of MemoryKv before an operation: relative words are resolved against it."""

    revision: int
    compares: tuple[int, ...] = ()
    """The revisions that a transaction's compares expect."""


@dataclass
class Side:
    """`shift`: what its revisions are above MemoryKv's."""

    kv: Kv
    shift: int
    leases: list[LeaseId] = field(default_factory=list)

    async def run(self, operation: Operation, now: Now) -> object:
        """The outcome, comparable with the other side's."""
        try:
            return await self._run(operation, now)
        except MetaError as error:
            return type(error).__name__, error.code

    async def _run(self, operation: Operation, now: Now) -> object:
        match operation:
            case Transact():
                return await self._transact(operation, now)
            case Read(get, age):
                return await self.look(get, 0 if age is None else self._at(now, age))
            case Watch():
                return await self._watch(operation, now)
            case Compact(age):
                await self.kv.compact(self._at(now, age), deadline_ms=DEADLINE_MS)
                return None
            case Grant():
                self.leases.append(await self.kv.grant(TTL_MS, deadline_ms=DEADLINE_MS))
                return len(self.leases)
            case Revoke(lease):
                await self.kv.revoke(self._lease(lease), deadline_ms=DEADLINE_MS)
                return None
            case KeepAlive(lease):
                return await self.kv.keep_alive(self._lease(lease), deadline_ms=DEADLINE_MS)
            case _:
                assert_never(operation)

    async def look(self, get: Get, revision: int = 0) -> object:
        (moved,) = self._gets((get,))
        page = await self.kv.range(moved, deadline_ms=DEADLINE_MS, revision=revision)
        return self._shown(page.items), page.revision - self.shift, page.more

    async def _transact(self, asked: Transact, now: Now) -> object:
        compares = tuple(
            Compare(one.key, self._revision(revision), one.end, one.or_older)
            for one, revision in zip(asked.compares, now.compares, strict=True)
        )
        reads, on_refusal = self._gets(asked.reads), self._gets(asked.on_refusal)
        request = Request(compares, self._writes(asked.writes), reads, on_refusal)
        answer = await self.kv.txn(request, deadline_ms=DEADLINE_MS)
        ranges = [self._shown(found) for found in answer.ranges]
        return answer.succeeded, answer.revision - self.shift, ranges

    async def _watch(self, asked: Watch, now: Now) -> list[Watched]:
        last = await self.kv.txn(
            Request(writes=(Put(asked.key, b"last"),)), deadline_ms=DEADLINE_MS
        )
        found: list[Watched] = []
        start = self._at(now, asked.age)
        watch: Any = self.kv.watch(asked.key, asked.end, start_revision=start)
        async with aclosing(watch) as opened, asyncio.timeout(DEADLINE_MS / 1000):
            async for each in opened:
                found += [self._moved(each)] if each.events else []
                if each.revision >= last.revision:
                    break
        return found

    def _revision(self, ours: int) -> int:
        """0 stays what it is: no revision."""
        return ours and ours + self.shift

    def _gets(self, gets: tuple[Get, ...]) -> tuple[Get, ...]:
        return tuple(get._replace(newer_than=self._revision(get.newer_than)) for get in gets)

    def _at(self, now: Now, age: int) -> int:
        return max(FIRST, now.revision - age) + self.shift

    def _lease(self, number: int) -> LeaseId:
        return self.leases[number] if number < len(self.leases) else NOT_GRANTED

    def _writes(self, asked: Mapping[bytes, Written]) -> tuple[Put | Delete, ...]:
        return tuple(
            Delete(key) if one.value is None else Put(key, one.value, self._held(one.lease))
            for key, one in asked.items()
        )

    def _held(self, number: int) -> LeaseId | None:
        return self.leases[number] if number < len(self.leases) else None

    def _shown(self, items: tuple[KeyValue, ...]) -> list[KeyValue]:
        return [
            item._replace(
                create_revision=item.create_revision - self.shift,
                mod_revision=item.mod_revision - self.shift,
                lease=item.lease and 1 + self.leases.index(LeaseId(item.lease)),
            )
            for item in items
        ]

    def _moved(self, watched: Watched) -> Watched:
        events = [replace(e, mod_revision=e.mod_revision - self.shift) for e in watched.events]
        return Watched(watched.revision - self.shift, tuple(events))
