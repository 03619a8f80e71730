"""The one task that owns a procedure: it runs the steps, and carries out what is asked of it.

A control interrupts what a step does or waits for, never its commit: the outcome of a commit is
known before anything else is done (P1). So nobody goes on from a record that has moved
beside him; if a compare says that it has, the record is read again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from keys.commit.committer import StaleRead
from keys.commit.txn import snapshot
from keys.model.records import ProcedureHistory, ProcedureHistoryKey, ProcedureKey, ProcedurePhase
from metasrv_base.errors import MetaError, NotLeader, Unavailable
from procedures.context import Context, Live
from procedures.engine.active_procedure import ActiveProcedure, Letter
from procedures.engine.control import Command, Control, is_fulfilled, refused, require_allowed
from procedures.engine.retry import (
    Tries,
    is_bound_to_finish,
    is_definite,
    pause_ms,
    rest_ms,
    rested_ms,
)
from procedures.engine.runner import Commit, Runner, StepResult, StoredRecord
from procedures.engine.steering import has_expired, moves_its_record, store
from procedures.machine import Kind
from procedures.ports import Children

GONE = "its record is gone, and there is no history of it"

T = TypeVar("T")


class OwnerHost(Protocol):
    """The manager, as an owner needs it."""

    @property
    def runner(self) -> Runner: ...

    def moved(self, entry: ActiveProcedure, held: StoredRecord) -> None:
        """*held* is stored of it now."""
        ...

    def give_place(self, entry: ActiveProcedure) -> None:
        """Gives the place of *entry* to another procedure while it rests."""
        ...

    def want_place(self, entry: ActiveProcedure) -> None:
        """Requests a place for *entry*; its bell rings once it has one."""
        ...


@dataclass(slots=True)
class Owner:
    """Drives one entry, from the moment at which there is work to do until there is none."""

    house: OwnerHost
    entry: ActiveProcedure
    bell: asyncio.Event
    children: Children
    _over: ProcedureHistory | None = None
    _turned: bool = False
    """A control, or what was read again, has ended the step that was tried."""
    _is_stale: bool = False
    """True while the stored record is known to differ from what `entry` holds."""

    async def own(self) -> ProcedureHistory | None:
        """The end of the procedure. None: it rests or waits, and nothing is asked of it.

        Raises NotLeader when the term is over: the next leader goes on.
        """
        entry = self.entry
        while self._over is None:
            if entry.letters:
                await self._answer(entry.letters.pop(0))
            elif entry.drives and not entry.is_at_rest:
                await self._step()
            else:
                return None
        return self._over

    # Steps -------------------------------------------------------------------------------------

    async def _step(self) -> None:
        """Tries what comes next until it has moved the record, or a control has."""
        entry, live, ports = self.entry, self.entry.live, self.house.runner.ports
        tries, failure = Tries(), None
        live.attempt, live.last_error, self._turned = 1, None, False
        while not self._turned and self._over is None:
            try:
                return await self._try(tries, failure)
            except NotLeader:
                raise
            except MetaError as error:
                self._is_stale = self._is_stale or self._is_of_mine(error)
                tries.definite += is_definite(error)
                now_ms = ports.gate.worked_ms(ports.clock.wall_ms())
                if failure is None and tries.are_over(self._kind, entry.held.record, error, now_ms):
                    failure, tries = _with_last(error, live), Tries()
                    continue
                live.attempt = tries.attempt + 1
                live.last_error, live.last_facts = error.code, error.facts
                await self._rest(tries, pause_ms(error, tries.attempt, ports.rng.random()))
                tries.attempt += 1

    async def _try(self, tries: Tries, failure: MetaError | None) -> None:
        """Makes one attempt, or, with *failure*, gives the step up."""
        if self._is_stale:
            await self._read_again()
        elif failure is not None:
            self._take(await self._give_up(failure))
        elif not self.entry.rests or await self._has_place():
            commit = await self._attended(partial(self._act, tries))
            if commit is not None:
                self._take(await commit(self.entry.held))

    async def _act(self, tries: Tries) -> Commit:
        """The step, once it may run."""
        kind, held, clock = self._kind, self.entry.held, self.house.runner.ports.clock
        context = self._context()
        await self._may_go_on(context)
        if tries.attempt == 1:
            await self._rest_throttled(context)
        began_ms = clock.mono_ms()
        now_ms = context.ports.gate.worked_ms(clock.wall_ms())
        limit_ms = tries.left_ms(kind, held.record, now_ms)
        try:
            return await self.house.runner.act(kind, held, context, limit_ms)
        finally:
            tries.spent_ms += clock.mono_ms() - began_ms

    async def _may_go_on(self, context: Context) -> None:
        """Waits, visibly, while an operator has paused all procedures."""
        gate = context.ports.gate
        while not gate.is_open:
            with context.waiting_for("maintenance", gate.reason):
                await gate.opened()

    async def _rest_throttled(self, context: Context) -> None:
        """Rests as long as the throttle requires; the throttle may change meanwhile."""
        clock, entry = context.ports.clock, self.entry
        began_ms = clock.mono_ms() - rested_ms(entry.held.record, clock.wall_ms())
        while (left_ms := rest_ms(self._kind, entry.held.record) + began_ms - clock.mono_ms()) > 0:
            percent = entry.held.record.throttle_percent
            with context.waiting_for("throttle", f"{percent} %", left_ms):
                await entry.live.rest(left_ms)

    async def _rest(self, tries: Tries, ms: int) -> None:
        """Rests between two attempts. A step that is retried until it succeeds gives its place
        back."""
        entry, clock = self.entry, self.house.runner.ports.clock
        if is_bound_to_finish(self._kind, entry.held.record) and not entry.takes_none:
            self.house.give_place(entry)
        began_ms = clock.mono_ms()
        await self._attended(partial(entry.live.rest, ms))
        tries.spent_ms += clock.mono_ms() - began_ms

    async def _has_place(self) -> bool:
        """Waits for one. False: a control came first, and the step is not to be tried."""
        self.house.want_place(self.entry)
        while self.entry.rests and not self._turned:
            if self.entry.letters:
                await self._answer(self.entry.letters.pop(0))
            else:
                self.bell.clear()
                await self.bell.wait()
        return not self._turned

    async def _give_up(self, failure: MetaError) -> StoredRecord:
        held, runner = self.entry.held, self.house.runner
        if held.record.phase is ProcedurePhase.UNDO:
            return await runner.poison(held, failure)
        return await runner.turn_back(held, failure)

    async def _attended(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Returns or raises what *work* does, and answers letters meanwhile. Returns None if a
        letter has ended *work*."""
        letters, bell = self.entry.letters, self.bell
        going = asyncio.gather(_outcome(work), return_exceptions=True)
        going.add_done_callback(lambda _: bell.set())
        try:
            while letters or not going.done():
                if letters:
                    await self._answer(letters.pop(0), going)
                    if self._turned or self._over is not None:
                        return None
                else:
                    bell.clear()
                    await bell.wait()
        except asyncio.CancelledError:
            await _stopped(going)
            raise
        finally:
            going.cancel()  # nothing, once it is over
        (result,) = going.result()
        if isinstance(result, BaseException):
            try:
                raise result
            finally:
                del result, going  # this frame stands in its traceback: a cycle, left to gc
        return result

    # Letters -----------------------------------------------------------------------------------

    async def _answer(self, letter: Letter, going: "asyncio.Future[Any] | None" = None) -> None:
        """Carries it out, and stops what is *going* on if the record has turned."""
        try:
            entry = await self._carry_out(letter.command)
            if going is not None and (self._turned or self._over is not None):
                await _stopped(going)
        except MetaError as error:
            letter.fail(error)
            if isinstance(error, NotLeader):
                raise
        else:
            letter.tell(entry)
        finally:
            letter.answer.cancel()  # nothing, once it is answered

    async def _carry_out(self, command: Command | None) -> ActiveProcedure | ProcedureHistory:
        """Applies *command*; idempotent. Raises as `require_allowed`, and errors of the store."""
        if command is None:
            return await self._expire()
        entry, control = self.entry, command.control
        while self._over is None:
            if is_fulfilled(entry.facts, control):
                return entry
            require_allowed(entry.facts, control, entry.held.procedure)
            try:
                if moves_its_record(entry, command):
                    self._take(await store(self.house.runner, entry, command))
            except StaleRead as error:
                if self._is_of_mine(error):
                    await self._read_again()
                continue
            self._turned = self._turned or control in (Control.CANCEL, Control.PAUSE)
            entry.parked = None
            entry.live.woken.set()
            return self._over or entry
        raise refused(entry.held.procedure, control, self._over.outcome)

    async def _expire(self) -> ActiveProcedure | ProcedureHistory:
        """Ends a procedure whose deadline passed while it waited for its locks or a place."""
        entry, runner = self.entry, self.house.runner
        ports = runner.ports
        if has_expired(entry, ports.gate.worked_ms(ports.clock.wall_ms())):
            waits = [blocked.by for blocked in entry.blocked] or "a place among those that run"
            error = Unavailable("deadline-exceeded", waiting_for=waits)
            back = runner.abandon if entry.never_began else runner.turn_back
            try:
                self._take(await back(entry.held, error))
            except StaleRead:
                await self._read_again()
        return self._over or entry

    # The record --------------------------------------------------------------------------------

    def _take(self, after: StepResult) -> None:
        if isinstance(after, ProcedureHistory):
            self._over = after
        else:
            self.house.moved(self.entry, after)

    async def _read_again(self) -> None:
        """Takes over the stored record or history of the procedure, whoever wrote it. Parks the
        entry if the store holds neither."""
        procedure, ports = self.entry.held.procedure, self.house.runner.ports
        key, history = ProcedureKey(procedure), ProcedureHistoryKey(procedure)
        stored = await snapshot(ports.kv, key, history, deadline_ms=ports.deadline_ms)
        record, ended = stored.get(key), stored.get(history)
        self._is_stale, self._turned = False, True
        if record is not None:
            self._take(StoredRecord(procedure, record, stored.mod_revision(key)))
        elif ended is not None:
            self._take(ended)
        else:
            self.entry.parked = GONE

    def _is_of_mine(self, error: MetaError) -> bool:
        """Whether it says that the record has moved beside us."""
        key = str(ProcedureKey(self.entry.held.procedure))
        return isinstance(error, StaleRead) and error.facts.get("key") == key

    @property
    def _kind(self) -> Kind[Any]:
        assert self.entry.kind is not None
        return self.entry.kind

    def _context(self) -> Context:
        entry, held = self.entry, self.entry.held
        return Context(
            self.house.runner.ports,
            self.children,
            held.procedure,
            held.record.step,
            held.record.client,
            entry.live,
            wanted_rows_per_s=lambda: entry.held.record.throttle_rows_per_s,
            has_passed=entry.has_passed,
        )


async def _outcome(work: Callable[[], Awaitable[T]]) -> T | MetaError:
    """An error that a step may raise is no failure of the task that runs it."""
    try:
        return await work()
    except MetaError as error:
        return error


def _with_last(error: MetaError, live: Live) -> MetaError:
    """The error for which a step is given up. A deadline says why the attempt before had failed."""
    if error.code != "deadline-exceeded" or live.last_error is None:
        return error.with_traceback(None)
    last = {"last_error": live.last_error, "last_facts": dict(live.last_facts)}
    return Unavailable(error.code, **{**error.facts, **last})


async def _stopped(going: "asyncio.Future[Any]") -> None:
    """Ends it, if it is not over, and waits until it has."""
    if not going.done():
        going.cancel()
        await asyncio.wait([going])
        going.exception()  # that it was ended: looked at
