"""The one task that changes an open region: what waits together is written and synced together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import structlog

from dataplane.region.copies.leader_view import CopyName
from dataplane.region.disk.lost import is_lost
from dataplane.region.engine.group import Applied
from dataplane.region.engines.engine import ServedRegion
from metasrv_base.errors import Conflict, MetaError, Unavailable, Unknown
from metasrv_base.wire.node.batches import BatchHeader

QUEUE_MAX = 256
"""Writes and changes that wait for one region; beyond it a writer is told to come again."""
GROUP_BYTES_MAX = 16 << 20
"""Rows synced at once, as they are logged, unless one batch has more: bounds memory and the time
the first of a group waits for the last."""
STALLED_MS = 10_000
"""A group that has been at the disk, or has waited for copies, for longer: a write that comes now
is refused, and not made to wait."""
CLOSED = "the region is closed here"
FAULT = "a fault of the node; the region must be opened again"

T = TypeVar("T")

log = structlog.get_logger()


@dataclass(eq=False, slots=True)
class Write:
    header: BatchHeader
    rows: pa.RecordBatch
    answer: asyncio.Future[Applied]


@dataclass(eq=False, slots=True)
class ExclusiveTask:
    """Anything else that must not run beside a write; `stops`: the last thing ever done here."""

    act: Callable[[], Awaitable[Any]]
    answer: asyncio.Future[Any] | None
    """The future of the caller; None if nobody waits."""
    stops: bool = False


Answers = list[asyncio.Future[Any] | None]
"""The answers of what runs; None: nobody waits, or not any more."""
Batches = list[tuple[BatchHeader, pa.RecordBatch]]
"""The batches of a group; their memory is freed when they are taken out."""


class GroupWrites(Protocol):
    @property
    def waits_for(self) -> Sequence[CopyName]:
        """The copies for which a group waits now; empty: it is at the disk, or there is none."""
        ...

    async def apply(self, batches: Batches) -> list[Applied | MetaError]:
        """Writes a group, as `RegionWrites.apply`. Takes out the batches once they are ordered."""
        ...


@dataclass(eq=False)
class RegionOwner:
    """`has_lease` is asked before a group is ordered and again before it is acknowledged (P4)."""

    region_id: int
    region: ServedRegion
    has_lease: Callable[[], bool]
    now_ms: Callable[[], int]
    writes: GroupWrites | None = None
    """Writes the groups of a region with copies; None: the region's own writer does, in a
    thread."""
    stopped_by: MetaError | None = None
    """The reason why this opening serves no more; None: it serves."""
    groups: int = 0
    """Groups written: each was one sync."""
    written_ms: int | None = None
    """The time of the last write; None: there was none since the log was last closed."""
    began_ms: int | None = None
    """The time at which the group that is being written was started; None: no group is."""
    is_tidy: bool = False
    """Whether what crashes and failed jobs left in the root was removed in this opening."""
    _queue: asyncio.Queue[Write | ExclusiveTask] = field(
        default_factory=lambda: asyncio.Queue(maxsize=QUEUE_MAX)
    )
    _held_back: Write | ExclusiveTask | None = None
    _running: Answers = field(default_factory=list)
    """The answers of the writes, or of the task, that run now; empty: the region waits for some."""
    _refusal: MetaError | None = None
    """The answer to whoever would wait behind what runs now, which may take long; None: all wait.
    """

    @property
    def queued(self) -> int:
        return self._queue.qsize()

    async def write(self, header: BatchHeader, rows: pa.RecordBatch) -> Applied:
        """Durable when it returns. Unavailable: not attempted. Unknown: perhaps done; the same
        statement sent again, here or to the next leader, tells."""
        self.must_take_writes()
        self._must_have_room(rows)
        write = Write(header, rows, asyncio.get_running_loop().create_future())
        try:
            self._queue.put_nowait(write)
        except asyncio.QueueFull:
            raise Unavailable(what="the region", reason="its queue is full") from None
        try:
            return await write.answer
        finally:
            del write, rows  # an error holds this frame, and the answer holds the error

    def must_take_writes(self) -> None:
        """Raises what a write is answered that comes now, however small."""
        self.must_serve()
        self._must_not_stall()
        self._must_have_turn()

    def _must_not_stall(self) -> None:
        """Raises Unavailable while copies, or the disk, have kept a group for too long."""
        taken_ms = 0 if self.began_ms is None else self.now_ms() - self.began_ms
        if taken_ms < STALLED_MS:
            return
        copies = () if self.writes is None else self.writes.waits_for
        if copies:
            what, nodes = f"region {self.region_id}", [copy.node for copy in copies]
            reason = "it waits for its copies"
            raise Unavailable(what=what, reason=reason, nodes=nodes, waited_ms=taken_ms)
        what, root = f"the disk of region {self.region_id}", self.region.place.root
        raise Unavailable(what=what, reason="it is slow", root=root, at_disk_ms=taken_ms)

    def _must_have_room(self, rows: pa.RecordBatch) -> None:
        """Raises Unavailable while the node's memory is full, or the region takes no such batch."""
        if self.region.place.budget.is_full:
            limit = self.region.place.budget.bytes_max
            raise Unavailable(what="the node", reason="its memory is full", limit_bytes=limit)
        self.region.must_have_room(rows)

    async def change(self, act: Callable[[], T], stops: bool = False) -> T:
        """Runs `act` in its turn, in a thread. Returns or raises what `act` does."""
        return await self.change_on_loop(partial(asyncio.to_thread, act), stops)

    async def change_on_loop(self, act: Callable[[], Awaitable[T]], stops: bool = False) -> T:
        """Runs `act` in its turn, on the event loop, as `change`: for what waits for other
        nodes."""
        self.must_serve()
        if not stops:
            self._must_have_turn()
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        await self._queue.put(ExclusiveTask(act, answer, stops))
        return await answer

    def end(self, error: MetaError) -> None:
        """Stops for ever: a part beside the queue has found that this opening is over."""
        self.stopped_by = self.stopped_by or error
        if self._queue.empty():
            self._queue.put_nowait(ExclusiveTask(_nothing, None))

    def doubt(self, error: MetaError, refusal: MetaError) -> None:
        """Answers with *error* whoever waits for what runs now, which goes on: it may be long until
        its outcome is known. What waits behind it, or comes meanwhile, is answered with *refusal*
        and not done; but an end of the region stays.

        Each has an error of its own, which nothing here keeps: one that was raised holds the frames
        of whoever was answered, and so their rows, and the doubt may be long."""
        for index, answer in enumerate(self._running):
            _fail(answer, _anew(error))
            self._running[index] = None
        self._refusal = refusal
        waiting = [] if self._held_back is None else [self._held_back]
        while not self._queue.empty():
            waiting.append(self._queue.get_nowait())
        self._held_back = None
        for item in waiting:
            if isinstance(item, ExclusiveTask) and (item.stops or item.answer is None):
                self._queue.put_nowait(item)
            else:
                _fail(item.answer, _anew(refusal))

    def _must_have_turn(self) -> None:
        """Raises the refusal where a turn behind what runs now may be far away."""
        if self._refusal is not None:
            raise _anew(self._refusal)

    def must_serve(self) -> None:
        """Raises the error that ended this opening. Every request after the end is not done."""
        if self.stopped_by is None:
            return
        if is_lost(self.stopped_by):
            raise Unavailable("region-lost", region_id=self.region_id)
        if isinstance(self.stopped_by, Conflict):
            raise Conflict(self.stopped_by.code, **self.stopped_by.facts)
        raise Unavailable(what=f"region {self.region_id}", reason="it must be opened again")

    async def run(self) -> None:
        """Runs changes and groups until a change that stops, a fence, a lost disk or a lost outcome
        ends it.

        A fault of our own ends this opening and no other: one batch must not end the node.
        """
        try:
            while self.stopped_by is None:
                await self._run_turn()
        except Exception:
            log.exception("region_owner_failed", region_id=self.region_id)
            self.stopped_by = Unavailable(what=f"region {self.region_id}", reason=FAULT)
            for answer in self._running:
                _fail(answer, Unknown(reason=FAULT))
            self._running = []
        await self._refuse_waiting()

    async def _run_turn(self) -> None:
        """Runs what comes next, and keeps nothing of it: its rows may be large, and are not
        counted once they are answered."""
        group = await self._next()
        if isinstance(group, ExclusiveTask):
            self._running = [group.answer]
            await self._run_change(group)
        else:
            self._running = [write.answer for write in group]
            batches = [(write.header, write.rows) for write in group]
            group.clear()
            await self._run_group(batches, self._running)
        self._running, self._refusal = [], None

    async def _next(self) -> ExclusiveTask | list[Write]:
        """One change, or the writes that wait now, up to GROUP_BYTES_MAX."""
        held, self._held_back = self._held_back, None
        first = held if held is not None else await self._queue.get()
        if isinstance(first, ExclusiveTask):
            return first
        group, sized = [first], self.region.writer.logged_bytes
        # Takes a while: not of one that comes alone.
        group_bytes = 0 if self._queue.empty() else sized(first.rows)
        while not self._queue.empty():
            item = self._queue.get_nowait()
            if not isinstance(item, ExclusiveTask):
                group_bytes += sized(item.rows)
            if isinstance(item, ExclusiveTask) or group_bytes > GROUP_BYTES_MAX:
                self._held_back = item
                break
            group.append(item)
        return group

    async def _run_change(self, change: ExclusiveTask) -> None:
        try:
            done = await change.act()
        except MetaError as error:
            self.stopped_by = self.stopped_by or self.region.stopped
            _fail(change.answer, error)
        else:
            if change.answer is not None and not change.answer.done():
                change.answer.set_result(done)
        if change.stops:
            self.stopped_by = self.stopped_by or Conflict("stale-epoch", reason=CLOSED)

    async def _run_group(self, batches: Batches, answers: Answers) -> None:
        if not self.has_lease():
            _fail_all(answers, no_lease(self.region_id))
            return
        self.began_ms = self.now_ms()
        try:
            if self.writes is None:
                outcomes = await asyncio.to_thread(self.region.writer.apply, batches)
            else:
                outcomes = await self.writes.apply(batches)
        except MetaError as error:
            self.stopped_by = self.stopped_by or self.region.stopped
            lost = error if isinstance(error, Unavailable) else Unknown(reason=error.code)
            _fail_all(answers, lost)
            return
        finally:
            self.began_ms = None
        self.groups += 1
        self.written_ms = self.now_ms()
        if any(isinstance(outcome, Unknown) for outcome in outcomes):
            self.stopped_by = self.stopped_by or self.region.stopped
        if not self.has_lease():
            _fail_all(answers, Unknown(reason="the lease of the region ended while it was written"))
            return
        for answer, outcome in zip(answers, outcomes, strict=True):
            if isinstance(outcome, MetaError):
                _fail(answer, outcome)
            elif answer is not None and not answer.done():
                answer.set_result(outcome)

    async def _refuse_waiting(self) -> None:
        while self._held_back is not None or not self._queue.empty():
            item = self._held_back or self._queue.get_nowait()
            self._held_back = None
            _fail(item.answer, Unavailable(what=f"region {self.region_id}", reason=CLOSED))
            await asyncio.sleep(0)  # who waited for a place in the queue takes it now


async def _nothing() -> None:
    """Wakes the queue."""


def no_lease(region_id: int) -> MetaError:
    return Unavailable(what=f"region {region_id}", reason="this node holds no lease of it now")


def _anew(error: MetaError) -> MetaError:
    """The same error, raised nowhere yet."""
    return type(error)(error.code, **error.facts)


def _fail_all(answers: Answers, error: MetaError) -> None:
    for answer in answers:
        _fail(answer, error)


def _fail(answer: asyncio.Future[Any] | None, error: MetaError) -> None:
    if answer is not None and not answer.done():
        answer.set_exception(error)
