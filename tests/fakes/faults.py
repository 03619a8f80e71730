"""Faults of one call of a server: it dies before or after, loses the answer, or meets a rival.

The ports of a server are wrapped (tests/fakes/faulty_ports.py). Every call is counted; at the call
that a plan names, the plan's mode happens.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeVar

from metasrv_base.errors import Refused, Unavailable, Unknown
from tests.fakes.datanodes.nodes import FakeNode

T = TypeVar("T")
Work = Callable[[], Awaitable[object]]


class Mode(StrEnum):
    """The fault at the call."""

    CRASH_BEFORE = "crash before"
    APPLIED_CRASH = "applied then crash"
    ANSWER_LOST = "answer lost"
    RIVAL = "rival elected"
    LATE = "applied late"
    """It is on its way when its server dies, and arrives after the next leader's work."""
    LATE_IN_TERM = "applied in the next term"
    """As LATE, but it arrives while the next leader works."""
    OVERTAKEN = "request overtaken"
    """An order that is taken for lost, and arrives behind the next request to its node."""
    LOST_REQUEST = "request lost"
    """It never arrives: the store's client knows, a node's does not."""
    REFUSED = "refused"
    """Certainly not done, and not because the world moved."""
    NO_SPACE = "no space"
    """The store is full from now on, for a while. Whoever asks is told that it perhaps was done."""
    NO_SPACE_DONE = "no space, done all the same"
    PAUSED_BEFORE = "paused before"
    """The server stands still for longer than its lease, and goes on as if nothing had been."""
    PAUSED_AFTER = "paused after"
    NODE_DIES = "node dies"
    """Not the server: the datanode that the plan names."""


KILLS = {Mode.CRASH_BEFORE, Mode.APPLIED_CRASH, Mode.LATE, Mode.LATE_IN_TERM}
FAILS = {
    Mode.ANSWER_LOST,
    Mode.OVERTAKEN,
    Mode.LOST_REQUEST,
    Mode.REFUSED,
    Mode.NO_SPACE,
    Mode.NO_SPACE_DONE,
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it was made: `site` is what runs below the port, innermost first."""

    port: str
    site: tuple[str, ...]
    writes: bool
    step: str = ""
    """For a commit: kind and step of each record that it moves, separated by `; `."""


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
    late: list[Work] = field(default_factory=list)
    """Requests that arrive when all is over."""
    late_in_term: list[Work] = field(default_factory=list)
    """Requests that arrive when the next leader is ready."""

    def meets(self, call: Call) -> bool:
        if not self.armed:
            return False
        self.calls.append(call)
        return len(self.calls) - 1 == self.at


class Fate(Protocol):
    """Faults that a server's world can inflict on it."""

    async def die(self) -> None:
        """Kills the calling server; never returns."""
        ...

    async def depose(self) -> None:
        """A rival wins the election now."""
        ...

    async def stop(self) -> None:
        """The calling server stands still for longer than its lease; a rival wins meanwhile."""
        ...

    async def fill(self) -> None:
        """The store takes no more puts for a while."""
        ...


async def through(plan: Plan, fate: Fate, call: Call, work: Callable[[], Awaitable[T]]) -> T:
    """*work*, unless the plan has something else in mind for this call."""
    if not plan.meets(call):
        return await work()
    return await befall(plan, fate, call, work)


async def befall(plan: Plan, fate: Fate, call: Call, work: Callable[[], Awaitable[T]]) -> T:
    """*work*, with the plan's mode. Raises what the caller's own side would make of it."""
    plan.happened = True
    if plan.mode in KILLS:
        return await _killed(plan, fate, work)
    if plan.mode in FAILS:
        return await _failed(plan, fate, call, work)
    match plan.mode:
        case Mode.RIVAL:
            await fate.depose()
        case Mode.PAUSED_BEFORE:
            await fate.stop()
        case Mode.PAUSED_AFTER:
            answer = await work()
            await fate.stop()
            return answer
        case Mode.NODE_DIES:
            assert plan.victim is not None
            plan.victim.die()
    return await work()


async def _failed(plan: Plan, fate: Fate, call: Call, work: Callable[[], Awaitable[T]]) -> T:
    """The server lives on, with an error."""
    if plan.mode in (Mode.ANSWER_LOST, Mode.NO_SPACE_DONE):
        await work()
    match plan.mode:
        case Mode.ANSWER_LOST:
            await fate.depose()
            raise Unknown() if call.writes and not plan.hides_doubt else Unavailable()
        case Mode.OVERTAKEN:
            plan.late.append(work)  # where no other request comes, it comes last
            raise Unknown()
        case Mode.LOST_REQUEST:
            raise Unknown() if call.port.startswith("nodes.send") else Unavailable()
        case Mode.REFUSED:
            raise Unavailable() if call.port == "jobs.move" else Refused("unauthenticated")
        case _:
            await fate.fill()
            raise Unknown(reason="no-space")


async def _killed(plan: Plan, fate: Fate, work: Callable[[], Awaitable[T]]) -> T:
    """The server dies; what it asked for is done before, later or never."""
    if plan.mode is Mode.APPLIED_CRASH:
        await work()
    if plan.mode is Mode.LATE:
        plan.late.append(work)
    if plan.mode is Mode.LATE_IN_TERM:
        plan.late_in_term.append(work)
    await fate.die()
    raise AssertionError("a dead server ran")
