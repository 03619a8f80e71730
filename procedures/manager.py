"""Runs every procedure of one term: recovers, takes submissions, grants locks, admits, steers.

Submit is durable before it is answered. One task owns a procedure. Who holds which lock is computed
from the records (locks.py), so the leader that comes after computes the same.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import structlog

from base.errors import Conflict, NotFound, NotLeader, Unavailable, Unknown
from base.log import lines_of_request
from keys.committer import Committer
from keys.kv import Compare
from keys.records import ProcedureHistory, ProcedureHistoryKey, ProcedureKey
from keys.txn import snapshot
from procedures.admission import Limits
from procedures.context import Ports
from procedures.entry import Entry
from procedures.family import ChildrenOf
from procedures.floor import Floor
from procedures.gate import Gate
from procedures.holding import LockTable
from procedures.machine import Kind, Lane, ProcedureState
from procedures.outlive import outlive
from procedures.recent import Recent
from procedures.recovery import entries_of, read_records
from procedures.runner import Held, Moved, Runner
from procedures.steering import Command, Steering, has_expired
from procedures.submit import Submission, Submitted, Submitter

SWEEP_MS = 5_000  # between looks at the store for records that nobody here runs
LOOK_MS = 1_000  # between looks at deadlines, and at who does not move
PAUSE_MS = 200  # before a store that did not answer is asked again

# What a client required of its own procedure; its children are asked for by the parent.
_NOT_INHERITED = dict.fromkeys(("idempotency", "if_version", "table_id", "expected_epoch"))

T = TypeVar("T")

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
        self.runner = Runner(ports, committer)
        self._submitter = Submitter(ports, committer)
        self._floor = Floor()
        self._recent = Recent()
        self._told_of_ends: list[Callable[[ProcedureHistory], None]] = []
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
                    for _ in range(SWEEP_MS // LOOK_MS):
                        await self._ports.clock.sleep_ms(LOOK_MS)
                        await self._look()
                    await self._sweep(fence)
                    self._schedule()
            finally:
                self._is_open = False

    # Asking ------------------------------------------------------------------------------------

    @property
    def gate(self) -> Gate:
        """Where each waits before its next step; open, but for a pause of all of them."""
        return self._ports.gate

    def on_end(self, tell: Callable[[ProcedureHistory], None]) -> None:
        """*tell* hears of every procedure that ends here."""
        self._told_of_ends.append(tell)

    def adjust(self, limits: Limits) -> None:
        """Other bounds from now on; what runs beyond them runs to its end."""
        self._limits = limits
        self._schedule()

    @property
    def locks(self) -> LockTable:
        return self._floor.locks

    def living(self) -> tuple[tuple[str, Entry], ...]:
        """Every procedure that is not over, in order of submission."""
        entries = self._floor.entries.items()
        return tuple(sorted(entries, key=lambda item: item[1].held.record.submission))

    def has_room(self, kind: Kind[Any]) -> bool:
        """Whether one more would be taken, unless it is a child."""
        return kind.lane is not Lane.DDL or not self._floor.is_full(self._limits)

    def has_place(self, kind: Kind[Any]) -> bool:
        """Whether one more that holds its locks would start at once."""
        waits = kind.steps[kind.first].waits
        return waits or self._floor.free_places(kind.lane, self._limits) > 0

    async def find(self, procedure: str) -> Entry | ProcedureHistory:
        """Raises NotFound if there never was one, or its history has been purged."""
        if procedure in self._floor.entries:
            return self._floor.entries[procedure]
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
        entry = self._floor.entries.get(procedure)
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
        if submission.parent is None and not self.has_room(kind):
            known = await self._submitter.known(submission)
            if known is None:
                raise Unavailable("too-many-procedures", limit=self._limits.queue_max)
            return known
        self._must_be_open()
        overtakes = self._floor.announce(submission.procedure, kind.locks(state))
        wish = replace(submission, overtakes=overtakes)
        return await self._outlive(partial(self._submit, kind, state, wish))

    async def _submit(
        self, kind: Kind[Any], state: ProcedureState, submission: Submission
    ) -> Submitted:
        floor = self._floor
        try:
            submitted, held = await self._submitter.submit(kind, state, submission)
            if held is not None and held.procedure not in floor.entries:
                floor.take_in(Entry(held, kind=kind))
        finally:
            floor.arrived(submission.procedure, submission.overtakes)
            self._schedule()
        return submitted

    async def submit_child(
        self, procedure: str, parent: str, kind: str, state: dict[str, object]
    ) -> None:
        """Does nothing if a procedure of that id exists or has existed."""
        if procedure in self._floor.entries or procedure in self._recent:
            return
        client = self._floor.entries[parent].held.record.client.model_copy(update=_NOT_INHERITED)
        model = self._kinds[kind].state.model_validate(state)
        submission = Submission(procedure, client, fingerprint="", parent=parent)
        await self.submit(self._kinds[kind], model, submission)

    # Steering ----------------------------------------------------------------------------------

    async def control(self, procedure: str, command: Command) -> Entry | ProcedureHistory:
        """Answered once it is stored. Raises as `Steering.apply`."""
        self._must_be_open()
        return await self._outlive(partial(Steering(self).apply, procedure, command))

    def entry(self, procedure: str) -> Entry | None:
        return self._floor.entries.get(procedure)

    async def stop(self, entry: Entry) -> None:
        task = entry.task
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self._floor.rest(entry)

    async def read_again(self, entry: Entry) -> None:
        procedure = entry.held.procedure
        key, history = ProcedureKey(procedure), ProcedureHistoryKey(procedure)
        seen = await snapshot(self._ports.kv, key, history, deadline_ms=self._ports.deadline_ms)
        if entry.is_run or entry.over.is_set():
            return  # its task has moved it, and knows more than what was read
        record, ended = seen.get(key), seen.get(history)
        if record is not None:
            read = Held(procedure, record, seen.mod_revision(key))
            self.take_over(entry, max(read, entry.held, key=lambda held: held.revision))
        elif ended is not None:
            self.take_over(entry, ended)

    def take_over(self, entry: Entry, after: Moved) -> None:
        if isinstance(after, ProcedureHistory):
            self._finish(entry, after)
            return
        entry.held = after
        self._floor.claim_again(entry)

    def release(self, entry: Entry) -> None:
        self._floor.offer(entry)
        self._schedule()

    # Running -----------------------------------------------------------------------------------

    async def _outlive(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """To its end, unless the term ends first: what is stored is also known here."""
        return await outlive(self._tasks.create_task, work, Unknown(term=self._committer.term))

    def _must_be_open(self) -> None:
        """Raises Unavailable before every record has been read (G21)."""
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
            if procedure in self._floor.entries or procedure in self._recent:
                continue
            if procedure in self._floor.arriving:
                continue
            self._floor.take_in(entry)
            if entry.parked is not None:
                log.error("procedure_parked", procedure=procedure, reason=entry.parked)

    def _schedule(self) -> None:
        """Starts what may run. Called after every change of the records."""
        if not self._is_open:
            return
        for entry in self._floor.admit(self._limits):
            self._start(entry)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _start(self, entry: Entry) -> None:
        procedure = entry.held.procedure
        entry.began_ms = self._ports.clock.wall_ms()
        with lines_of_request(entry.held.record.client.request_id):
            entry.task = self._tasks.create_task(self._own(entry), name=procedure)
        self._floor.running[procedure] = entry

    async def _own(self, entry: Entry) -> None:
        """The one task of a procedure, from its start to its end or the term's."""
        assert entry.kind is not None
        procedure = entry.held.procedure
        children = ChildrenOf(self, procedure)
        try:
            after = await self.runner.drive(entry.kind, entry, children, self._schedule)
        except NotLeader:
            return  # the committer's own end ends the term, and with it this task group
        except Exception as error:
            self._floor.rest(entry)
            entry.parked = f"{type(error).__name__}: see the log"
            log.exception("procedure_parked", procedure=procedure)
        else:
            self._floor.rest(entry)
            if after is not None:
                self._finish(entry, after)
                return
            self._floor.claim_again(entry)
            log.error("procedure_poisoned", procedure=procedure, **_facts(entry))
        self._schedule()

    def _finish(self, entry: Entry, history: ProcedureHistory) -> None:
        procedure = entry.held.procedure
        self._recent.add(procedure, history)
        self._floor.forget(entry)
        log.info(
            "procedure_ended",
            procedure=procedure,
            kind=history.last.kind,
            outcome=history.outcome,
            term=self._committer.term,
            duration_ms=history.finished_at_ms - history.last.submitted_at_ms,
        )
        for tell in self._told_of_ends:
            tell(history)
        entry.over.set()
        self._schedule()

    # Looking -----------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Each second: whose time is over, and who does not move."""
        now_ms = self._ports.clock.wall_ms()
        for entry in list(self._floor.entries.values()):
            if has_expired(entry, now_ms) and not entry.controlled:
                await Steering(self).expire(entry)
        for procedure, entry in self._floor.running.items():
            stalled = now_ms - entry.last_moved_ms() > self._limits.stalled_ms
            if stalled and not entry.stalled:
                log.warning("procedure_stalled", procedure=procedure, **_facts(entry))
            entry.stalled = stalled


def _facts(entry: Entry) -> dict[str, str]:
    record = entry.held.record
    return {"kind": record.kind, "resource": record.resource.name, "step": record.step}
