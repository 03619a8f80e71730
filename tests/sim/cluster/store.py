"""One server's way to the store: MemoryKv behind a network that loses requests and answers."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from keys.model.cluster import CandidateKey, LeaderKey
from keys.model.snapshot.pins import RevisionPinKey
from keys.store.kv import OUT_OF_SPACE, Get, KeyPage, LeaseId, Put, Request, TxnAnswer, Watched
from keys.store.memory import MemoryKv
from metasrv_base.errors import MetaError, Unavailable, Unknown
from tests.sim.cluster.message_fates import STORE, Fate, Weather
from tests.sim.loop import SimLoop, in_world

T = TypeVar("T")
SEAT = bytes(LeaderKey())
LOOK_MS = 200
BREAKS = 0.01  # the chance of a watch to end with an event, while it storms


class Ghost(Protocol):
    """Sees what is applied; the world's, not the server's."""

    def applied(self, host: str, request: Request, answer: TxnAnswer) -> None: ...

    def told_nothing(self, host: str, request: Request) -> None: ...


@dataclass(frozen=True)
class What:
    """Properties of a call that decide how it fails."""

    writes: bool = False
    puts: bool = False
    keys: tuple[bytes, ...] = ()
    """Keys that a transaction of a leader writes: a server that is doomed is struck with it."""


READ = What()


@dataclass
class FaultyStore:
    """Implements keys.store.kv.Kv for one process."""

    loop: SimLoop
    kv: MemoryKv
    weather: Weather
    host: str
    ghost: Ghost
    alter: Callable[[Request], Request] = field(default=lambda request: request)
    """A planted bug: what is sent instead."""

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        def work() -> TxnAnswer:
            answer = at_once(self.kv.txn(self.alter(request), deadline_ms=deadline_ms))
            self.ghost.applied(self.host, request, answer)
            return answer

        puts = any(isinstance(write, Put) for write in request.writes)
        try:
            writes = bool(request.writes)
            is_of_leader = writes and not is_unfenced(request)
            keys = tuple(write.key for write in request.writes) if is_of_leader else ()
            return await self._call(work, deadline_ms, What(writes, puts, keys))
        except Unknown:
            self.ghost.told_nothing(self.host, request)
            raise

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        def work() -> KeyPage:
            if 0 < revision < self.kv.revision and self.weather.is_compacted_under(self.host):
                at_once(self.kv.compact(self.kv.revision, deadline_ms=deadline_ms))
            return at_once(self.kv.range(get, deadline_ms=deadline_ms, revision=revision))

        return await self._call(work, deadline_ms)

    async def watch(
        self, key: bytes, end: bytes, *, start_revision: int
    ) -> AsyncGenerator[Watched, None]:
        downs = self.weather.downs
        async for watched in self.kv.watch(key, end, start_revision=start_revision):
            if self.weather.downs != downs:
                raise Unavailable(what="watch")
            while self.weather.is_cut(STORE, self.host):
                await self._pause(LOOK_MS)
            await self._pause(self.weather.way_ms(Fate.FINE))
            if self.weather.random.random() < BREAKS * self.weather.store_storm:
                self.weather.sometimes["a watch broke"] += 1
                raise Unavailable(what="watch")
            yield watched

    async def grant(self, ttl_ms: int, *, deadline_ms: int) -> LeaseId:
        def work() -> LeaseId:
            return at_once(self.kv.grant(ttl_ms, deadline_ms=deadline_ms))

        return await self._call(work, deadline_ms, What(writes=True, puts=True))

    async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
        def work() -> bool:
            return at_once(self.kv.keep_alive(lease, deadline_ms=deadline_ms))

        return await self._call(work, deadline_ms, What(writes=True))

    async def revoke(self, lease: LeaseId, *, deadline_ms: int) -> None:
        def work() -> None:
            at_once(self.kv.revoke(lease, deadline_ms=deadline_ms))

        await self._call(work, deadline_ms, What(writes=True))

    async def compact(self, revision: int, *, deadline_ms: int) -> None:
        """By a leader, in a life of a quarter of an hour."""

        def work() -> None:
            at_once(self.kv.compact(revision, deadline_ms=deadline_ms))

        await self._call(work, deadline_ms, What(writes=True))

    async def close(self) -> None:
        """Nothing is held open."""

    # ---- how it works

    async def _call(
        self,
        work: Callable[[], T],
        deadline_ms: int,
        what: What = READ,
    ) -> T:
        """Raises Unknown for a write of which nobody knows, Unavailable for what was not done."""
        if self.loop.is_over:
            raise Unavailable(what="store")
        fate = (
            self.weather.fate_of_write(self.host, what.keys)
            if what.keys
            else self.weather.fate(self.host, STORE)
        )
        answer = self.loop.create_future()
        if what.puts and self.weather.is_full:
            await self._without_space(work)
        if fate is Fate.REFUSED:
            raise Unavailable(what="store")
        if fate is not Fate.LOST:
            in_world(self.loop, self.weather.way_ms(fate), self._arrive, work, answer, fate)
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                found: T = await answer
                return found
        except TimeoutError as error:
            if fate is Fate.LATE:
                self.weather.sometimes["a request to the store arrived late"] += 1
            raise (Unknown() if what.writes else Unavailable(what="store")) from error

    async def _without_space(self, work: Callable[[], Any]) -> None:
        """It may have been done all the same, and does not say."""
        self.weather.sometimes["a put without space"] += 1
        if self.weather.random.random() < 0.5:
            lost = self.loop.create_future()
            in_world(self.loop, self.weather.way_ms(Fate.FINE), self._arrive, work, lost, Fate.LOST)
        await self._pause(self.weather.way_ms(Fate.FINE))
        raise Unknown(reason=OUT_OF_SPACE)

    def _arrive(self, work: Callable[[], T], answer: "asyncio.Future[T]", fate: Fate) -> None:
        done: T | None = None
        error: MetaError | None = None
        try:
            done = work()
        except MetaError as raised:
            error = raised
        if fate in (Fate.FINE, Fate.SLOW, Fate.LATE, Fate.TWICE) and not self.weather.is_cut(
            STORE, self.host
        ):
            way_ms = self.weather.way_ms(Fate.FINE)
            in_world(self.loop, way_ms, _tell, answer, done, error)

    async def _pause(self, ms: float) -> None:
        turn = self.loop.create_future()
        self.loop.call_later(ms / 1000, _tell, turn, None, None)
        await turn


def at_once(call: Coroutine[Any, Any, T]) -> T:
    """Returns the answer of MemoryKv: no call of it suspends."""
    try:
        call.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("the store waited")


def is_unfenced(request: Request) -> bool:
    """Whether it writes nothing but the seat, names of candidates and pins of revisions, which no
    fence guards."""
    ranges = (CandidateKey.under(), RevisionPinKey.under())
    return all(
        write.key == SEAT or any(start <= write.key < end for start, end in ranges)
        for write in request.writes
    )


def _tell(answer: "asyncio.Future[Any]", done: Any, error: MetaError | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(done)
    else:
        answer.set_exception(error)
