"""Clients, leaders that follow one another, and a network between them and the store.

What the network does to each call is given beforehand, so a run depends on nothing else: on
MemoryKv the same case is the same history. `judge` asks of the store's own history whether every
client was told the truth.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import cast

from keys.commit.bootstrap import bootstrap_request
from keys.commit.change import change
from keys.commit.committer import Committed, Committer
from keys.commit.log_head import read_log_head
from keys.commit.txn import Txn, snapshot
from keys.key import Range
from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.cluster import LeaderKey, LeaderRecord, SequenceKey
from keys.model.cluster import Sequence as Counter
from keys.model.log import CatalogUpdate, SchemaCreated, SchemaDropped
from keys.store.kv import Compare, Kv, Put, Request, TxnAnswer
from keys.value import encode
from metasrv_base.errors import Conflict, NotLeader, Refused, Unavailable, Unknown
from tests.fakes.clock import FakeClock

DEADLINE_MS = 3_000
COUNTER = SequenceKey("shared")


class Fate(StrEnum):
    """The fault of one transaction that writes."""

    SOUND = "sound"
    NEVER_SENT = "never sent"
    REQUEST_LOST = "request lost"
    ANSWER_LOST = "answer lost"
    LATE = "late"
    """It arrives some calls later, perhaps after others that were sent after it."""
    RIVAL = "a rival wins first"
    RIVAL_AFTER = "answer lost, then a rival wins"


@dataclass(frozen=True, slots=True)
class Weather:
    """`calls`: how many calls pass before what is late arrives."""

    fate: Fate
    calls: int = 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """One change: of schema `parent`, of its `child`, or of the counter that all share.

    A child may be made only while its parent is there; a parent goes only without children. An
    `audit` changes nothing, while the parent has no children; a `watch` nothing, while none is
    made. A `forget` removes a key, and writes nothing.
    """

    op: str
    parent: int = 0
    child: int | None = None
    pause: int = 0
    """Turns that others get between reading and committing."""

    @property
    def key(self) -> SchemaNameKey:
        child = "" if self.child is None else f"_{self.child}"
        return SchemaNameKey("main", f"s{self.parent}{child}")

    @property
    def parent_key(self) -> SchemaNameKey:
        return SchemaNameKey("main", f"s{self.parent}")

    @property
    def children(self) -> Range:
        start = bytes(self.parent_key)
        return Range(start + b"_", start + b"`")


Case = tuple[Sequence[Sequence[Attempt]], Sequence[Weather]]
"""The attempts of each client, in order; and the faults of the calls, in order."""


@dataclass(slots=True)
class Network:
    """Implements as much of Kv as a committer uses, over a sound store."""

    kv: Kv
    weather: list[Weather]
    rival: Callable[[], Awaitable[None]]
    blind: bool = False
    """A planted bug: what is not known is told as never sent."""
    late: list[tuple[int, Request]] = field(default_factory=list)
    seen: set[Fate] = field(default_factory=set)
    writes_max: int = 0

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        await asyncio.sleep(0)
        if not request.writes:
            return await self.kv.txn(request, deadline_ms=deadline_ms)
        await self.deliver(calls=1)
        now = self.weather.pop(0) if self.weather else Weather(Fate.SOUND)
        self.seen.add(now.fate)
        answer = await self._meets(now, request)
        await asyncio.sleep(0)
        if answer is None:
            raise Unavailable() if self.blind else Unknown()
        return answer

    async def _meets(self, now: Weather, request: Request) -> TxnAnswer | None:
        match now.fate:
            case Fate.NEVER_SENT:
                raise Unavailable()
            case Fate.REQUEST_LOST:
                return None
            case Fate.LATE:
                self.late.append((now.calls, request))
                return None
            case Fate.RIVAL:
                await self.rival()
        answer = await self.kv.txn(request, deadline_ms=DEADLINE_MS)
        if now.fate is Fate.RIVAL_AFTER:
            await self.rival()
        return None if now.fate in {Fate.ANSWER_LOST, Fate.RIVAL_AFTER} else answer

    async def deliver(self, *, calls: int) -> None:
        """Lets *calls* calls pass; what is due arrives, and nobody hears the answer."""
        left = [(due - calls, request) for due, request in self.late]
        self.late = [(due, request) for due, request in left if due > 0]
        for _, request in sorted((one for one in left if one[0] <= 0), key=lambda one: one[0]):
            await self.kv.txn(request, deadline_ms=DEADLINE_MS)


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to one client about one change. `outcome` None: not done."""

    number: int
    txn: Txn
    outcome: Committed | Unknown | None

    @property
    def marker(self) -> SequenceKey:
        """Written by this change alone, and never removed; of one that forgets, removed by it."""
        return marker(self.number)

    @property
    def forgets(self) -> bool:
        return self.txn.writes[bytes(self.marker)] is None


def marker(number: int) -> SequenceKey:
    return SequenceKey(f"op{number}")


@dataclass
class World:
    """One run. After it: what was told, what the leaders' listeners heard."""

    kv: Kv
    case: Case
    blind: bool = False
    clock: FakeClock = field(default_factory=FakeClock)
    told: list[Told] = field(default_factory=list)
    heard: list[list[int]] = field(default_factory=list)
    """The versions heard from each leader, in order."""
    terms: int = 0
    _won: asyncio.Queue[Committer] = field(default_factory=asyncio.Queue)

    async def run(self) -> None:
        """Raises a group of what a leader or a client ended with, if that is no answer."""
        clients, weather = self.case
        self.net = Network(self.kv, list(weather), self._elect_rival, self.blind)
        self._numbers = count()
        self.start_revision = (await snapshot(self.kv, COUNTER, deadline_ms=DEADLINE_MS)).revision
        async with asyncio.TaskGroup() as world:
            reigns = world.create_task(self._reigns())
            first = await self._elect()
            made = bootstrap_request(first, "c", self.clock.wall_ms())
            assert (await self.kv.txn(made, deadline_ms=DEADLINE_MS)).succeeded
            await self._lead(first)
            async with asyncio.TaskGroup() as asking:
                for attempts in clients:
                    asking.create_task(self._client(attempts))
            await self.net.deliver(calls=1_000)
            reigns.cancel()

    async def _client(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            txn = await self._planned(attempt)
            if txn is None:
                continue
            number = next(self._numbers)
            txn = await self._marked(attempt, txn, number)
            for _ in range(attempt.pause):
                await asyncio.sleep(0)
            try:
                outcome: Committed | Unknown | None = await self.committer.commit(
                    txn, procedure=str(number)
                )
            except Unknown as error:
                outcome = error
            except (Conflict, Refused, Unavailable):
                outcome = None
            self.told.append(Told(number, txn, outcome))

    async def _marked(self, attempt: Attempt, txn: Txn, number: int) -> Txn:
        """With what tells of this change alone."""
        key, value = marker(number), Counter(next=number)
        if attempt.op != "forget":
            return txn.expecting(key, 0).put(key, value)
        there = Request(writes=(Put(bytes(key), encode(value)),))
        made = await self.kv.txn(there, deadline_ms=DEADLINE_MS)
        return txn.expecting(key, made.revision).delete(key)

    async def _planned(self, attempt: Attempt) -> Txn | None:
        """Returns the transaction for *attempt* by what the store holds now; None: nothing."""
        if attempt.op == "forget":
            return Txn()
        if attempt.op == "audit":
            return Txn().while_empty(attempt.children)
        if attempt.op == "watch":
            seen = await snapshot(self.kv, attempt.parent_key, deadline_ms=DEADLINE_MS)
            return Txn().while_unchanged(attempt.children, seen.revision)
        if attempt.op == "count":
            counted = await snapshot(self.kv, COUNTER, deadline_ms=DEADLINE_MS)
            old = counted.get(COUNTER)
            return Txn.on(counted).put(COUNTER, Counter(next=old.next + 1 if old else 1))
        keys = {bytes(key): key for key in (attempt.key, attempt.parent_key)}.values()
        seen = await snapshot(self.kv, *keys, deadline_ms=DEADLINE_MS)
        there = seen.get(attempt.key) is not None
        if attempt.op == "create" and not there:
            if attempt.child is not None and seen.get(attempt.parent_key) is None:
                return None
            info = SchemaInfo(schema_id=1, catalog="main", name=attempt.key.schema, created_at_ms=1)
            return change(seen, SchemaCreated(info=info))
        if attempt.op == "drop" and there:
            txn = change(seen, SchemaDropped(catalog="main", name=attempt.key.schema))
            return txn if attempt.child is not None else txn.while_empty(attempt.children)
        return None

    # ---- leaders

    async def _elect(self) -> Compare:
        self.terms += 1
        key = bytes(LeaderKey())
        value = encode(LeaderRecord(server=f"m{self.terms}", url="http://127.0.0.1:1", lease="1"))
        won = await self.kv.txn(Request(writes=(Put(key, value),)), deadline_ms=DEADLINE_MS)
        return Compare(key, won.revision)

    async def _elect_rival(self) -> None:
        await self._lead(await self._elect())

    async def _lead(self, fence: Compare) -> None:
        line = await read_log_head(self.kv, fence, deadline_ms=DEADLINE_MS)
        committer = Committer(cast(Kv, self.net), self.clock, line, deadline_ms=DEADLINE_MS)
        versions: list[int] = []

        def hear(update: CatalogUpdate, _revision: int) -> None:
            versions.append(update.version)

        committer.on_update(hear)
        self.heard.append(versions)
        self.committer = committer
        self._won.put_nowait(committer)

    async def _reigns(self) -> None:
        async with asyncio.TaskGroup() as leaders:
            while True:
                leaders.create_task(self._reign(await self._won.get()))

    async def _reign(self, committer: Committer) -> None:
        with suppress(NotLeader):
            await committer.run()
