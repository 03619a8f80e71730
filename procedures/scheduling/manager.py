"""Runs every procedure of one term: recovers, takes submissions, grants locks, admits, steers.

Submit is durable before it is answered. One task owns a procedure. Who holds which lock is computed
from the records (locks.py), so the leader that comes after computes the same.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import structlog

from keys.commit.committer import Committer
from keys.model.records import ProcedureHistory
from keys.store.kv import Compare
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import MetaError, NotLeader, Unavailable, Unknown
from metasrv_base.log import lines_of_request
from procedures.context import Ports
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import Command, refused
from procedures.engine.owner import Owner
from procedures.engine.runner import Runner, StoredRecord
from procedures.engine.stager import Stager
from procedures.engine.submit import SubmitRequest, Submitted, Submitter
from procedures.locking.holding import LockTable
from procedures.machine import AdmissionLane, Kind, ProcedureState
from procedures.pause_gate import PauseGate
from procedures.scheduling.active_procedures import ActiveProcedures
from procedures.scheduling.admission import Limits
from procedures.scheduling.children import ChildProcedures
from procedures.scheduling.finder import Finder
from procedures.scheduling.intake import ProcedureIntake
from procedures.scheduling.recent import Recent
from procedures.scheduling.recovery import AT_ONCE
from procedures.scheduling.run_shielded import run_shielded
from procedures.scheduling.tenant_limits import TenantReservations

LOOK_MS = 1_000  # between looks at deadlines, and at who does not move
AUDIT_MS = 60_000  # between looks whether the store holds the procedures that are known here

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
        self._floor = ActiveProcedures(
            tenants=TenantReservations(ports.applied, ports.placement.nodes)
        )
        self._recent = Recent()
        self._told_of_ends: list[Callable[[ProcedureHistory], None]] = []
        self._tasks = asyncio.TaskGroup()
        self._is_open = False
        """Whether the manager is open: between the recovery of every record and the end of the
        term."""
        self._goes_on = False
        self._stager = Stager(ports, committer)
        self._moved = asyncio.Event()
        self._finder = Finder(ports, self._floor, self._recent)
        self._intake = ProcedureIntake(kinds, ports, self._floor)

    async def run(self, fence: Compare, ready: asyncio.Event) -> None:
        """Recovers every record, sets *ready*, then looks after them until the term ends.

        Nothing is admitted before every record has been read under the fence (G21). They are read
        once: within a term no record can appear that its leader does not know (P1).
        """
        async with self._tasks:
            try:
                await self._intake.recover(fence)
                self._is_open = True
                self._schedule()
                ready.set()
                while True:
                    for _ in range(AUDIT_MS // LOOK_MS):
                        await self._ports.clock.sleep_ms(LOOK_MS)
                        await self._look()
                    await self._intake.compare(fence)
                    self._schedule()
            finally:
                self._is_open = False

    # Asking ------------------------------------------------------------------------------------

    @property
    def gate(self) -> PauseGate:
        """The gate at which each procedure waits before its next step; closed while all are
        paused."""
        return self._ports.gate

    def on_end(self, tell: Callable[[ProcedureHistory], None]) -> None:
        """*tell* hears of every procedure that ends here."""
        self._told_of_ends.append(tell)

    def adjust(self, limits: Limits) -> None:
        """Changes the limits. Procedures that run beyond the new ones continue to their end."""
        self._limits = limits
        self._schedule()

    @property
    def locks(self) -> LockTable:
        return self._floor.locks

    @property
    def tenants(self) -> TenantReservations:
        return self._floor.tenants

    def living(self) -> tuple[tuple[str, ActiveProcedure], ...]:
        """Every procedure that is not over, in order of submission."""
        return tuple(self._floor.entries.items())

    def unfinished(self) -> Collection[str]:
        """Ids of procedures that are not over, and of those that are being submitted."""
        return {*self._floor.entries, *self._stager.under_way}

    def has_room(self, kind: Kind[Any]) -> bool:
        """Whether one more would be taken, unless it is a child."""
        return kind.lane is not AdmissionLane.DDL or not self._floor.is_full(self._limits)

    def has_place(self, kind: Kind[Any]) -> bool:
        """Whether one more that holds its locks would start at once."""
        waits = kind.steps[kind.first].waits
        return waits or self._floor.free_places(kind.lane, self._limits) > 0

    async def find(self, procedure: str) -> ActiveProcedure | ProcedureHistory:
        """Finds a procedure like `Finder.find`."""
        return await self._finder.find(procedure)

    async def wait(self, procedure: str, *, deadline_ms: int) -> ActiveProcedure | ProcedureHistory:
        """Waits for a procedure like `Finder.wait`."""
        return await self._finder.wait(procedure, deadline_ms=deadline_ms)

    async def changed(self, *, deadline_ms: int) -> None:
        """Returns when any procedure has moved, or *deadline_ms* have passed."""
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                await self._moved.wait()
        except TimeoutError:
            return

    # Submitting --------------------------------------------------------------------------------

    async def submit(
        self, kind: Kind[Any], state: ProcedureState, submission: SubmitRequest
    ) -> Submitted:
        """Durable when it returns. Raises Unavailable("too-many-procedures"): the queue is full;
        Conflict("tenant-limit") or Refused("above-tenant-limit"): a limit of its tenant would be
        passed.

        The same idempotency key and request give the same procedure, whoever asks and whenever.
        """
        is_large = self._stager.is_large(kind, state, submission)
        if is_large:
            locks, kept = await self._stager.locks(kind, state)
        else:
            locks = kept = kind.locks(state)
        if submission.parent is None and not self.has_room(kind):
            submitted = await self._submitter.known(submission)
            if submitted is None:
                raise Unavailable("too-many-procedures", limit=self._limits.queue_max)
            return submitted
        self._must_be_open()
        procedure, key = submission.procedure, submission.client.idempotency
        if submission.parent is None:
            refuses = partial(self._floor.tenants.refusal, kind, state, locks)
            submitted = await self._known_if_refused(submission, refuses)
            if submitted is not None:
                return submitted
            # no await since it was judged
            self._floor.tenants.reserve(procedure, kind, state, locks)
        overtakes = self._floor.announce(procedure, kept, key)
        submission = replace(submission, overtakes=overtakes)
        return await self._outlive(partial(self._submit, kind, state, submission, is_large))

    async def _known_if_refused(
        self, submission: SubmitRequest, refuses: Callable[[], MetaError | None]
    ) -> Submitted | None:
        """The procedure of its key, where a limit of its tenant refuses it: one of the same key
        may have taken the last place, and may be on its way to the store. None: there is room.
        Raises the refusal."""
        key = submission.client.idempotency
        while refuses() is not None:
            if (twin := self._floor.twin(key)) is not None:
                await twin.wait()
            submitted = await self._submitter.known(submission)
            if submitted is not None:
                return submitted
            self._must_be_open()
            refusal = refuses()
            if refusal is not None and self._floor.twin(key) is None:
                self._floor.tenants.refused[str(refusal.facts["limit"])] += 1
                raise refusal
        return None

    async def _submit(
        self, kind: Kind[Any], state: ProcedureState, submission: SubmitRequest, is_large: bool
    ) -> Submitted:
        floor = self._floor
        try:
            with self._stager.working_on(submission.procedure):
                if is_large:
                    state, submission = await self._stager.staged(kind, state, submission)
                submitted, held = await self._submitter.submit(kind, state, submission)
                if held is not None and held.procedure not in floor.entries:
                    floor.take_in(ActiveProcedure(held, kind=kind))
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
        submission = SubmitRequest(procedure, client, fingerprint="", parent=parent)
        await self.submit(self._kinds[kind], model, submission)

    # Steering ----------------------------------------------------------------------------------

    async def control(self, procedure: str, command: Command) -> ActiveProcedure | ProcedureHistory:
        """Returns once the control is stored. Raises as `require_allowed`; Unavailable if too many
        wait before it."""
        self._must_be_open()
        return await self._outlive(partial(self._ask, procedure, command))

    async def _ask(self, procedure: str, command: Command) -> ActiveProcedure | ProcedureHistory:
        while (entry := self.entry(procedure)) is None:
            procedure_or_history = await self.find(procedure)
            if isinstance(procedure_or_history, ProcedureHistory):
                raise refused(procedure, command.control, procedure_or_history.outcome)
        return await self._post(entry, command)

    async def _post(
        self, entry: ActiveProcedure, command: Command | None
    ) -> ActiveProcedure | ProcedureHistory:
        """Into its mailbox; answered by its owner."""
        letter = entry.put(command)
        self._wake(entry)
        return await letter.answer

    def entry(self, procedure: str) -> ActiveProcedure | None:
        return self._floor.entries.get(procedure)

    # For owners --------------------------------------------------------------------------------

    def moved(self, entry: ActiveProcedure, held: StoredRecord) -> None:
        before, entry.held = entry.held.record, held
        after = held.record
        if after.deadline_at_ms != before.deadline_at_ms:
            self._floor.expect(entry)
        if (after.poisoned, after.locks) != (before.poisoned, before.locks):
            self._floor.claim_again(entry)
            if after.poisoned and not before.poisoned:
                log.error("procedure_poisoned", procedure=held.procedure, **_facts(entry))
        self._schedule()

    def give_place(self, entry: ActiveProcedure) -> None:
        entry.rests = True
        self._schedule()

    def want_place(self, entry: ActiveProcedure) -> None:
        entry.wants_place = True
        self._floor.offer(entry)
        self._schedule()

    # Running -----------------------------------------------------------------------------------

    async def _outlive(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs *work* to its end even if the caller is cancelled, unless the term ends first."""
        return await run_shielded(self._tasks.create_task, work, Unknown(term=self._committer.term))

    def _must_be_open(self) -> None:
        """Raises Unavailable before every record has been read (G21)."""
        if not self._is_open:
            raise Unavailable(what="procedures", reason="this term has not begun, or is over")

    def _schedule(self) -> None:
        """Starts what may run. Called after every change of the records."""
        if not self._is_open:
            return
        if self._floor.look_again() and not self._goes_on:
            self._goes_on = True  # with more claims, once others have had their turn
            asyncio.get_running_loop().call_soon(self._go_on)
        for entry in self._floor.admit(self._limits):
            self._start(entry)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _go_on(self) -> None:
        self._goes_on = False
        self._schedule()

    def _start(self, entry: ActiveProcedure) -> None:
        """Starts *entry*, which was admitted, or resumes it after a rest."""
        if not entry.drives:
            entry.began_ms = self._ports.clock.wall_ms()
        self._floor.start(entry)
        self._wake(entry)

    def _wake(self, entry: ActiveProcedure) -> None:
        if entry.bell is None:
            self._begin(entry)
        else:
            entry.bell.set()

    def _begin(self, entry: ActiveProcedure) -> None:
        """The task that owns it from now on."""
        entry.bell = asyncio.Event()
        with lines_of_request(entry.held.record.client.request_id):
            entry.task = self._tasks.create_task(self._own(entry), name=entry.held.procedure)

    async def _own(self, entry: ActiveProcedure) -> None:
        """The one task of a procedure, until it rests, is over, or the term is."""
        assert entry.bell is not None
        procedure = entry.held.procedure
        over = None
        try:
            over = await Owner(self, entry, entry.bell, ChildProcedures(self, procedure)).own()
        except NotLeader:
            return  # the committer's own end ends the term, and with it this task group
        except Exception as error:
            entry.parked = f"{type(error).__name__}: see the log"
            log.exception("procedure_parked", procedure=procedure)
        self._floor.rest(entry)
        if over is not None:
            self._finish(entry, over)
        elif entry.letters:
            self._begin(entry)
        else:
            self._floor.expect(entry)
            self._floor.offer(entry)
        self._schedule()

    def _finish(self, entry: ActiveProcedure, history: ProcedureHistory) -> None:
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
        for letter in entry.letters:
            letter.hear_of_end(procedure, history)

    # Looking -----------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Each second: whose time is over, and who does not move."""
        now_ms = self._ports.clock.wall_ms()
        expired = self._floor.expired(self.gate.worked_ms(now_ms))
        await fan_out([partial(self._expire, entry) for entry in expired], at_once=AT_ONCE)
        for procedure, entry in self._floor.running.items():
            stalled = now_ms - entry.last_moved_ms() > self._limits.stalled_ms
            if stalled and not entry.stalled:
                log.warning("procedure_stalled", procedure=procedure, **_facts(entry))
            entry.stalled = stalled

    async def _expire(self, entry: ActiveProcedure) -> None:
        """Ends *entry*, whose time in the queue is over. If the store is silent, it is tried
        again later."""
        try:
            await self._post(entry, None)
        except NotLeader:
            raise
        except MetaError:
            self._floor.expect(entry)


def _facts(entry: ActiveProcedure) -> dict[str, str]:
    record = entry.held.record
    return {"kind": record.kind, "resource": record.resource.name, "step": record.step}
