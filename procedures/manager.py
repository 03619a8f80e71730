"""Runs every procedure of one term: recovers, takes submissions, grants locks, admits, cancels.

Submit is durable before it is answered. One task owns a procedure. Who holds which lock is computed
from the records (locks.py), so the leader that comes after computes the same.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, TypeVarTuple

import structlog

from base.errors import Conflict, MetaError, NotFound, NotLeader, Unavailable, Unknown
from keys.committer import Committer, StaleRead
from keys.kv import Compare
from keys.records import Lock, ProcedureHistory, ProcedureHistoryKey, ProcedureKey
from keys.txn import snapshot
from procedures.admission import Candidate, Limits, admit
from procedures.context import Ports
from procedures.entry import Entry
from procedures.family import ChildrenOf
from procedures.gate import Gate
from procedures.holding import LockTable
from procedures.machine import Kind, Lane, ProcedureState
from procedures.recovery import entries_of, read_records
from procedures.runner import Held, Runner
from procedures.submit import Submission, Submitted, Submitter

SWEEP_MS = 5_000  # between looks at the store for records that nobody here runs
PAUSE_MS = 200  # before a store that did not answer is asked again
RECENT_MAX = 1_024  # ended procedures kept in memory, for clients that ask at once

# What a client required of its own procedure; its children are asked for by the parent.
_NOT_INHERITED = dict.fromkeys(("idempotency", "if_version", "table_id", "expected_epoch"))

T = TypeVar("T")
Args = TypeVarTuple("Args")

log = structlog.get_logger()


class Manager:
    """Alive as long as the term whose committer it uses."""

    def __init__(
        self, kinds: Mapping[str, Kind[Any]], ports: Ports, committer: Committer, limits: Limits
    ) -> None:
        self._kinds = kinds
        self._ports = ports
        self._committer = committer
        self._limits = limits
        self._runner = Runner(ports, committer)
        self._submitter = Submitter(ports, committer)
        self._entries: dict[str, Entry] = {}
        self._recent: dict[str, ProcedureHistory] = {}
        self._locks = LockTable()
        self._arriving: dict[str, tuple[Lock, ...]] = {}
        """Submissions on their way to the store; they count for the queue."""
        self._held_back: Counter[str] = Counter()
        """Not started now: somebody that goes before them is on its way to the store."""
        self._tasks = asyncio.TaskGroup()
        self._is_open = False
        """Between the recovery of every record and the end of the term."""
        self._moved = asyncio.Event()

    async def run(self, fence: Compare, ready: asyncio.Event) -> None:
        """Recovers every record, sets *ready*, then sweeps until the term ends.

        Nothing is admitted before every record has been read under the fence (G21).
        """
        async with self._tasks:
            try:
                await self._sweep(fence)
                self._is_open = True
                self._schedule()
                ready.set()
                while True:
                    await self._ports.clock.sleep_ms(SWEEP_MS)
                    await self._sweep(fence)
                    self._schedule()
            finally:
                self._is_open = False

    # Asking ------------------------------------------------------------------------------------

    @property
    def gate(self) -> Gate:
        """Where each waits before its next step; open, but for a pause of all of them."""
        return self._ports.gate

    def adjust(self, limits: Limits) -> None:
        """Other bounds from now on; what runs beyond them runs to its end."""
        self._limits = limits
        self._schedule()

    def living(self) -> tuple[tuple[str, Entry], ...]:
        """Every procedure that is not over, in order of submission."""
        entries = self._entries.items()
        return tuple(sorted(entries, key=lambda item: item[1].held.record.submission))

    async def find(self, procedure: str) -> Entry | ProcedureHistory:
        """Raises NotFound if there never was one, or its history has been purged."""
        if procedure in self._entries:
            return self._entries[procedure]
        if procedure in self._recent:
            return self._recent[procedure]
        key = ProcedureHistoryKey(procedure)
        seen = await snapshot(self._ports.kv, key, deadline_ms=self._ports.deadline_ms)
        history = seen.get(key)
        if history is None:
            raise NotFound("procedure-not-found", procedure_id=procedure)
        return history

    async def wait(self, procedure: str, *, deadline_ms: int) -> Entry | ProcedureHistory:
        """As `find`, once it is over or *deadline_ms* have passed."""
        entry = self._entries.get(procedure)
        if entry is not None:
            try:
                async with asyncio.timeout(deadline_ms / 1000):
                    await entry.over.wait()
            except TimeoutError:
                return entry
        return await self.find(procedure)

    async def changed(self, *, deadline_ms: int) -> None:
        """Returns when any procedure has moved, or *deadline_ms* have passed."""
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                await self._moved.wait()
        except TimeoutError:
            return

    # Submitting --------------------------------------------------------------------------------

    async def submit(
        self, kind: Kind[Any], state: ProcedureState, submission: Submission
    ) -> Submitted:
        """Durable when it returns. Raises Unavailable("too-many-procedures"): the queue is full.

        The same idempotency key and request give the same procedure, whoever asks and whenever.
        """
        if kind.lane is Lane.DDL and submission.parent is None and self._is_full():
            known = await self._submitter.known(submission)
            if known is None:
                raise Unavailable("too-many-procedures", limit=self._limits.queue_max)
            return known
        self._must_be_open()
        locks = kind.locks(state)
        overtakes = self._locks.overtaken_by(locks, self._arriving)
        self._arriving[submission.procedure] = locks
        self._held_back.update(overtakes)
        wish = replace(submission, overtakes=overtakes)
        return await self._outlive(self._submit, kind, state, wish)

    async def _submit(
        self, kind: Kind[Any], state: ProcedureState, submission: Submission
    ) -> Submitted:
        """Nobody whom it goes before is started while it is on its way."""
        try:
            submitted, held = await self._submitter.submit(kind, state, submission)
            if held is not None and held.procedure not in self._entries:
                self._take_in(Entry(held, kind=kind))
        finally:
            self._arriving.pop(submission.procedure, None)
            self._held_back -= Counter(submission.overtakes)
            self._schedule()
        return submitted

    def _take_in(self, entry: Entry) -> None:
        self._entries[entry.held.procedure] = entry
        self._see(self._locks.add(entry.claim))

    def _see(self, changed: Iterable[str]) -> None:
        """Whose reasons to wait are others now."""
        for procedure in changed:
            self._entries[procedure].blocked = self._locks.blocked(procedure)

    def _is_full(self) -> bool:
        ddl = (e for e in self._entries.values() if e.kind is None or e.kind.lane is Lane.DDL)
        return len(self._arriving) + sum(1 for _ in ddl) >= self._limits.queue_max

    async def submit_child(
        self, procedure: str, parent: str, kind: str, state: dict[str, object]
    ) -> None:
        """Does nothing if a procedure of that id exists or has existed."""
        if procedure in self._entries or procedure in self._recent:
            return
        client = self._entries[parent].held.record.client.model_copy(update=_NOT_INHERITED)
        model = self._kinds[kind].state.model_validate(state)
        submission = Submission(procedure, client, fingerprint="", parent=parent)
        await self.submit(self._kinds[kind], model, submission)

    # Cancelling --------------------------------------------------------------------------------

    async def cancel(self, procedure: str) -> Entry:
        """Answered once the wish is stored. Again: the same answer.

        The step in flight is stopped; if it commits all the same, its outcome stands, and the
        record is judged anew. Raises Conflict("past-point-of-no-return") or, if it is over or
        this server does not know it, Conflict("action-not-allowed").
        """
        return await self._outlive(self._cancel, procedure)

    async def _cancel(self, procedure: str) -> Entry:
        while True:
            entry = self._entries.get(procedure)
            if entry is None or entry.kind is None:
                await self.find(procedure)
                raise Conflict("action-not-allowed", procedure_id=procedure, action="cancel")
            if entry.controlled:
                await self.changed(deadline_ms=self._ports.deadline_ms)
                continue
            if entry.held.record.cancel:
                return entry
            if not entry.cancelable:
                raise Conflict("past-point-of-no-return", procedure_id=procedure)
            await self._turn_back(entry)

    async def _turn_back(self, entry: Entry) -> None:
        """Stores the wish, unless a commit that was on its way has moved the record."""
        entry.controlled = True
        try:
            await self._stop(entry)
            if entry.cancelable and not entry.over.is_set():
                entry.held = await self._runner.turn_back(entry.held, None)
                entry.parked = None
        except StaleRead:
            await self._read_again(entry)
        finally:
            entry.controlled = False
            self._schedule()

    async def _stop(self, entry: Entry) -> None:
        """Ends the task that owns *entry*, so that its caller owns it."""
        task = entry.task
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        entry.task = None

    async def _read_again(self, entry: Entry) -> None:
        procedure = entry.held.procedure
        key, history = ProcedureKey(procedure), ProcedureHistoryKey(procedure)
        seen = await snapshot(self._ports.kv, key, history, deadline_ms=self._ports.deadline_ms)
        record, ended = seen.get(key), seen.get(history)
        if record is not None:
            entry.held = Held(procedure, record, seen.mod_revision(key))
        elif ended is not None:
            self._finish(entry, ended)

    # Running -----------------------------------------------------------------------------------

    async def _outlive(self, work: Callable[[*Args], Coroutine[Any, Any, T]], *args: *Args) -> T:
        """Runs *work* to its end even if whoever asked hangs up: what is stored is also known here.

        Raises Unavailable before every record has been read (G21), Unknown if the term ends first.
        """
        self._must_be_open()
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                result = await work(*args)
            except MetaError as error:
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(result)

        def lost(_: "asyncio.Task[None]") -> None:
            if not answer.done():
                answer.set_exception(Unknown(term=self._committer.term))

        self._tasks.create_task(run()).add_done_callback(lost)
        return await answer

    def _must_be_open(self) -> None:
        if not self._is_open:
            raise Unavailable(what="procedures", reason="this term has not begun, or is over")

    async def _sweep(self, fence: Compare) -> None:
        """As `_take_up`, until the store answers."""
        while True:
            try:
                await self._take_up(fence)
            except NotLeader:
                raise
            except (Unavailable, Conflict):  # silent, or compacted between two pages
                await self._ports.clock.sleep_ms(PAUSE_MS)
            else:
                return

    async def _take_up(self, fence: Compare) -> None:
        """Every record that nobody here runs: all of them at first, later a late submission."""
        items = await read_records(self._ports.kv, fence, deadline_ms=self._ports.deadline_ms)
        found = entries_of(items, self._kinds)
        for entry in sorted(found, key=lambda one: one.held.record.submission):
            procedure = entry.held.procedure
            if procedure in self._entries or procedure in self._recent:
                continue
            if procedure in self._arriving:
                continue
            self._take_in(entry)
            if entry.parked is not None:
                log.error("procedure_parked", procedure=procedure, reason=entry.parked)

    def _schedule(self) -> None:
        """Grants locks, then starts what may run. Called after every change of the records."""
        if not self._is_open:
            return
        candidates = []
        for procedure, entry in self._entries.items():
            if procedure in self._held_back or entry.blocked or entry.controlled:
                continue
            if entry.parked or entry.kind is None:
                continue
            candidates.append(
                Candidate(
                    procedure,
                    entry.held.record.submission,
                    entry.kind.lane,
                    entry.task is not None,
                    entry.only_waits,
                )
            )
        for procedure in admit(candidates, self._limits):
            self._start(self._entries[procedure])
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _start(self, entry: Entry) -> None:
        entry.task = self._tasks.create_task(self._own(entry), name=entry.held.procedure)

    async def _own(self, entry: Entry) -> None:
        """The one task of a procedure, from its start to its end or the term's."""
        assert entry.kind is not None
        procedure = entry.held.procedure
        children = ChildrenOf(self, procedure)
        try:
            history = await self._runner.drive(entry.kind, entry, children, self._schedule)
        except NotLeader:
            return  # the committer's own end ends the term, and with it this task group
        except Exception as error:
            entry.parked, entry.task = f"{type(error).__name__}: see the log", None
            log.exception("procedure_parked", procedure=procedure)
        else:
            self._finish(entry, history)

    def _finish(self, entry: Entry, history: ProcedureHistory) -> None:
        procedure = entry.held.procedure
        self._recent[procedure] = history
        while len(self._recent) > RECENT_MAX:
            self._recent.pop(next(iter(self._recent)))
        changed = self._locks.remove(procedure)
        del self._entries[procedure]
        self._see(changed)
        log.info(
            "procedure_ended",
            procedure=procedure,
            kind=history.last.kind,
            outcome=history.outcome,
            term=self._committer.term,
            duration_ms=history.finished_at_ms - history.last.submitted_at_ms,
        )
        entry.over.set()
        self._schedule()
