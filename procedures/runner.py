"""The only place where a procedure moves: run one step, then commit its effect and its record.

A step may run again after a crash, so its calls to nodes are idempotent; its writes happen once,
because they share a transaction with the record that says they happened, and with the fence of the
leader that computed them. That is the whole durability argument.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeAlias

from base.errors import MetaError, NotLeader
from keys.poison import Poison, PoisonKey
from keys.records import (
    Beat,
    Phase,
    ProcedureHistory,
    ProcedureHistoryKey,
    ProcedureKey,
)
from keys.records import (
    ProcedureRecord as Record,
)
from keys.txn import NOTHING, Stamp, Txn
from procedures import journal
from procedures.context import Context, Live, Ports
from procedures.journal import Why
from procedures.machine import Goto, Kind, S
from procedures.ports import Children, Commits
from procedures.retry import deadline_of, must_finish, rest_ms, retried, within


@dataclass(frozen=True, slots=True)
class Held:
    """A record as it is stored, and the revision at which it was stored."""

    procedure: str
    record: Record
    revision: int

    def txn(self) -> Txn:
        """Nobody else has moved the record: what every commit of this procedure compares."""
        return Txn().expecting(ProcedureKey(self.procedure), self.revision)


@dataclass(slots=True)
class Driven:
    """A procedure while it is driven: what is stored of it, and what is known beyond that."""

    held: Held
    live: Live = field(default_factory=Live)


Moved: TypeAlias = Held | ProcedureHistory


@dataclass(frozen=True, slots=True)
class Runner:
    """Moves one procedure at a time; holds nothing of any."""

    ports: Ports
    committer: Commits

    async def drive(
        self, kind: Kind[S], driven: Driven, children: Children, moved: Callable[[], None]
    ) -> ProcedureHistory | None:
        """To its end, or (None) until its undo is given up; *moved* is called after each commit
        but the last.

        Raises NotLeader when the term is over: the next leader drives on.
        """
        while True:
            live = driven.live
            live.attempt, live.last_error = 1, None
            context = self._context(driven, children)
            await self._may_go_on(context)
            await self._rest(kind, driven, context)
            record = driven.held.record
            try:
                step = partial(self._attempt, kind, driven, context)
                until_ms, insists = deadline_of(kind, record), must_finish(kind, record)
                after = await retried(step, self.ports, live, until_ms, insists=insists)
            except NotLeader:
                raise
            except MetaError as error:
                # A store that is away for a while, or a throttle that was stored meanwhile.
                back = partial(self._give_up, driven, error)
                after = await retried(back, self.ports, live, None, insists=True)
            if isinstance(after, ProcedureHistory):
                return after
            driven.held = after
            if after.record.poisoned:
                return None
            moved()

    async def _attempt(self, kind: Kind[S], driven: Driven, context: Context) -> Moved:
        return await self.advance(kind, driven.held, context, lambda: driven.held)

    async def _give_up(self, driven: Driven, error: MetaError) -> Held:
        held = driven.held
        if held.record.phase is Phase.UNDO:
            return await self.poison(held, error)
        return await self.turn_back(held, error)

    async def _rest(self, kind: Kind[S], driven: Driven, context: Context) -> None:
        """As long as the throttle says; it may be changed meanwhile."""
        while left_ms := rest_ms(kind, driven.held.record, self.ports.clock.wall_ms()):
            percent = driven.held.record.throttle_percent
            with context.waiting_for("throttle", f"{percent} %", left_ms):
                await context.live.rest(left_ms)

    async def _may_go_on(self, context: Context) -> None:
        """Waits, visibly, while an operator has paused all procedures."""
        gate = self.ports.gate
        while not gate.is_open:
            with context.waiting_for("maintenance", gate.reason):
                await gate.opened()

    async def advance(
        self,
        kind: Kind[S],
        held: Held,
        context: Context,
        latest: Callable[[], Held] | None = None,
    ) -> Moved:
        """One step forward, or one step of undo.

        *latest*: the record as it stands when the step has acted. A throttle may have been stored
        meanwhile; whatever moves a record between its steps ends the step first.
        """
        now = latest or (lambda: held)
        if held.record.phase is Phase.UNDO:
            return await self._undo(kind, held, context)
        state = kind.state.model_validate(held.record.state)
        began_ms = self.ports.clock.mono_ms()
        step = held.record.step
        act = kind.steps[step].act(state, context)
        outcome = await within(self.ports.clock, deadline_of(kind, held.record), step, act)
        beat = self._beat(held, began_ms)
        held = now()
        passed = partial(journal.passed, held.record, context.passages.all())
        if isinstance(outcome, Goto):
            goto = outcome
            return await self.store(
                held, lambda at: journal.follow(kind, passed(at), goto, beat, at), goto.txn
            )
        result = outcome.result
        return await self.end(
            held, lambda at: journal.succeeded(kind, passed(at), result, beat, at), outcome.txn
        )

    async def turn_back(self, held: Held, why: Why) -> Held:
        """From now on *held* is undone. The step in flight is the first to be."""
        return await self.store(held, lambda at: journal.turn_back(held.record, why, at))

    async def abandon(self, held: Held, why: Why) -> ProcedureHistory:
        """The end of one that never began."""
        return await self.end(held, lambda at: journal.abandon(held.record, why, at))

    async def poison(self, held: Held, error: MetaError) -> Held:
        """Its undo is given up. If its resource bears the poison of another already, this is tried
        until that one is cleared."""
        record = held.record
        key = PoisonKey.of(record.resource)
        effect = Txn().expecting(key, 0)
        effect = effect.put_stamped(
            key,
            lambda at: Poison(
                procedure=held.procedure,
                kind=record.kind,
                resource=record.resource,
                step=record.step,
                error=journal.stored_error(error),
                at_ms=at.at_ms,
            ),
        )
        return await self.store(held, lambda _: journal.poison(record), effect)

    async def _undo(self, kind: Kind[S], held: Held, context: Context) -> Moved:
        state = kind.state.model_validate(held.record.state)
        undo = kind.steps[held.record.step].undo
        began_ms = self.ports.clock.mono_ms()
        back = None
        if undo is not None:
            step, work = f"undo {held.record.step}", undo(state, context)
            back = await within(self.ports.clock, deadline_of(kind, held.record), step, work)
        beat = self._beat(held, began_ms)
        passed = partial(journal.passed, held.record, context.passages.all())
        if back is not None:
            return await self.store(
                held, lambda at: journal.partly_undone(passed(at), beat, at), back.txn
            )
        before = journal.undone(held.record, beat)
        if before is not None:
            return await self.store(held, lambda _: before)
        had_effect = undo is not None or bool(held.record.timeline)
        return await self.end(
            held, lambda at: journal.ended_undone(held.record, beat, at, had_effect=had_effect)
        )

    async def store(
        self, held: Held, make: Callable[[Stamp], Record], effect: Txn = NOTHING
    ) -> Held:
        """The effect and the record that says so, in one transaction."""
        key, made = ProcedureKey(held.procedure), lru_cache(maxsize=1)(make)
        txn = held.txn().put_stamped(key, made).also(effect)
        committed = await self.committer.commit(txn, procedure=held.procedure)
        return Held(held.procedure, made(committed.stamp), committed.revision)

    async def end(
        self, held: Held, make: Callable[[Stamp], ProcedureHistory], effect: Txn = NOTHING
    ) -> ProcedureHistory:
        """The effect, and the release of the record into history, in one transaction."""
        history, made = ProcedureHistoryKey(held.procedure), lru_cache(maxsize=1)(make)
        txn = held.txn().delete(ProcedureKey(held.procedure))
        txn = txn.expecting(history, 0).put_stamped(history, made).also(effect)
        committed = await self.committer.commit(txn, procedure=held.procedure)
        return made(committed.stamp)

    def _context(self, driven: Driven, children: Children) -> Context:
        held = driven.held
        return Context(
            self.ports,
            children,
            held.procedure,
            held.record.step,
            held.record.client,
            driven.live,
            wanted_rows_per_s=lambda: driven.held.record.throttle_rows_per_s,
        )

    def _beat(self, held: Held, began_ms: int) -> Beat:
        clock, undoing = self.ports.clock, held.record.phase is Phase.UNDO
        step = f"undo {held.record.step}" if undoing else held.record.step
        return Beat(step=step, at_ms=clock.wall_ms(), ms=clock.mono_ms() - began_ms)
