"""What can happen to one call of a server: it dies before or after, loses the answer, or a rival.

The ports of a server are wrapped. Every call is counted and named by the code that makes it; at
the call that a plan names, the plan's mode happens.
"""

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeVar

from base.errors import Unavailable, Unknown
from base.wire.inputs import Borrowed
from base.wire.jobs import MoveJob, MoveResult
from base.wire.orders import Order, OrderResult
from keys.kv import Answer, Get, LeaseId, Page, Request, Watched
from keys.memory import MemoryKv
from keys.records import ProcedureKey
from procedures.ports import Jobs, Nodes, Progress, Sender
from tests.fakes.nodes import FakeNode

T = TypeVar("T")
OURS = ("procedures", "keys")


class Mode(StrEnum):
    """What happens at the call."""

    CRASH_BEFORE = "crash before"
    APPLIED_CRASH = "applied then crash"
    ANSWER_LOST = "answer lost"
    RIVAL = "rival elected"
    LATE = "applied late"
    """It is on its way when its server dies, and arrives after the next leader's work."""
    LOST_REQUEST = "request lost"
    """It never arrives: the store's client knows, a node's does not."""
    NODE_DIES = "node dies"
    """Not the server: the datanode that the plan names."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it was made: `site` is what runs below the port, innermost first."""

    port: str
    site: tuple[str, ...]
    writes: bool
    step: str = ""
    """Of a commit: kind and step of the record that it moves."""


@dataclass(slots=True)
class Plan:
    """At call number `at` of the armed server, `mode` happens. -1: never."""

    at: int = -1
    mode: Mode = Mode.CRASH_BEFORE
    victim: FakeNode | None = None
    calls: list[Call] = field(default_factory=list)
    armed: bool = False
    happened: bool = False
    hides_doubt: bool = False
    """A planted bug: a lost answer is told as a request that was never sent."""
    late: list[Callable[[], Awaitable[object]]] = field(default_factory=list)

    def meets(self, call: Call) -> bool:
        if not self.armed:
            return False
        self.calls.append(call)
        self.happened = self.happened or len(self.calls) - 1 == self.at
        return len(self.calls) - 1 == self.at


class Fate(Protocol):
    """What a server's world can do to it."""

    async def die(self) -> None:
        """Kills the calling server; never returns."""
        ...

    async def depose(self) -> None:
        """A rival wins the election now."""
        ...


async def through(plan: Plan, fate: Fate, call: Call, work: Callable[[], Awaitable[T]]) -> T:
    """*work*, unless the plan has something else in mind for this call."""
    if not plan.meets(call):
        return await work()
    match plan.mode:
        case Mode.CRASH_BEFORE:
            await fate.die()
        case Mode.APPLIED_CRASH:
            await work()
            await fate.die()
        case Mode.LATE:
            plan.late.append(work)
            await fate.die()
        case Mode.ANSWER_LOST:
            await work()
            await fate.depose()
            raise Unknown() if call.writes and not plan.hides_doubt else Unavailable()
        case Mode.LOST_REQUEST:
            raise Unknown() if call.port.startswith("nodes.send") else Unavailable()
        case Mode.RIVAL:
            await fate.depose()
        case Mode.NODE_DIES:
            assert plan.victim is not None
            plan.victim.die()
    return await work()


def site() -> tuple[str, ...]:
    """The functions of ours that are running, innermost first, without the ports themselves."""
    names, frame = [], sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        for package in OURS:
            _, found, inner = path.partition(f"/{package}/")
            if found and "/tests/" not in path:
                names.append(f"{inner.removesuffix('.py')}:{frame.f_code.co_name}")
        parent = frame.f_back
        if parent is None:
            break
        frame = parent
    return tuple(names)


@dataclass(slots=True)
class FaultyKv:
    """The store of one server. `fence` is its term: what it writes is checked against it."""

    kv: MemoryKv
    plan: Plan
    fate: Fate
    wrote: Callable[[Request], None]
    """Hears of every transaction that changed something."""
    alter: Callable[[Request], Request] = lambda request: request
    """A planted bug: what is sent instead."""

    async def txn(self, request: Request, *, deadline_ms: int) -> Answer:
        sent = self.alter(request)

        async def work() -> Answer:
            answer = await self.kv.txn(sent, deadline_ms=deadline_ms)
            if answer.succeeded and sent.writes:
                self.wrote(sent)
            return answer

        call = Call("kv.txn", site(), bool(request.writes), self._step_of(request))
        return await through(self.plan, self.fate, call, work)

    def _step_of(self, request: Request) -> str:
        start, end = ProcedureKey.under()
        for write in request.writes:
            held = self.kv._store.get(write.key) if start <= write.key < end else None
            if held is not None:
                record = json.loads(held.value)
                undo = "undo " if record["phase"] == "undo" else ""
                return f"{record['kind']}: {undo}{record['step']}"
        return ""

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> Page:
        call = Call("kv.range", site(), False)
        return await through(
            self.plan,
            self.fate,
            call,
            lambda: self.kv.range(get, deadline_ms=deadline_ms, revision=revision),
        )

    def watch(self, key: bytes, end: bytes, *, start_revision: int) -> AsyncIterator[Watched]:
        return self.kv.watch(key, end, start_revision=start_revision)

    async def grant(self, ttl_ms: int, *, deadline_ms: int) -> LeaseId:
        return await self.kv.grant(ttl_ms, deadline_ms=deadline_ms)

    async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
        return await self.kv.keep_alive(lease, deadline_ms=deadline_ms)

    async def revoke(self, lease: LeaseId, *, deadline_ms: int) -> None:
        await self.kv.revoke(lease, deadline_ms=deadline_ms)

    async def compact(self, revision: int, *, deadline_ms: int) -> None:
        await self.kv.compact(revision, deadline_ms=deadline_ms)

    async def close(self) -> None:
        await self.kv.close()


@dataclass(slots=True)
class FaultyNodes:
    nodes: Nodes
    plan: Plan
    fate: Fate

    async def send(
        self, node: str, orders: Sequence[Order], *, sender: Sender
    ) -> tuple[OrderResult, ...]:
        call = Call(f"nodes.send {orders[0].op}", site(), True)
        return await through(
            self.plan, self.fate, call, lambda: self.nodes.send(node, orders, sender=sender)
        )

    async def borrowed(self, node: str, region_id: str) -> Borrowed:
        call = Call("nodes.borrowed", site(), False)
        return await through(
            self.plan, self.fate, call, lambda: self.nodes.borrowed(node, region_id)
        )


@dataclass(slots=True)
class FaultyJobs:
    jobs: Jobs
    plan: Plan
    fate: Fate

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        call = Call("jobs.move", site(), True)
        return await through(
            self.plan, self.fate, call, lambda: self.jobs.move(job, progress=progress)
        )
