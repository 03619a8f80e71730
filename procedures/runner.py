"""The only place where a procedure moves: run one step, then commit its effect and its record.

A step may run again after a crash, so its calls to nodes are idempotent; its writes happen once,
because they share a transaction with the record that says they happened, and with the fence of the
leader that computed them. That is the whole durability argument.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from base.errors import MetaError, NotLeader
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
from keys.txn import Stamp, Txn
from procedures import journal
from procedures.context import Context, Live, Ports
from procedures.machine import Goto, Kind, S
from procedures.ports import Children, Commits
from procedures.retry import attempts, deadline_of


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
    ) -> ProcedureHistory:
        """To its end; *moved* is called after each commit but the last.

        Raises NotLeader when the term is over: the next leader drives on.
        """
        while True:
            held, live = driven.held, driven.live
            live.attempt, live.last_error = 1, None
            context = self._context(held, children, live)
            await self._may_go_on(context)
            try:
                step = attempts(self.ports, live, deadline_of(kind, held.record))
                after: Moved = await step(self.advance, kind, held, context)
            except NotLeader:
                raise
            except MetaError as error:
                back = attempts(self.ports, live, None)  # a store that is away for a while
                after = await back(self.turn_back, held, error)
            if isinstance(after, ProcedureHistory):
                return after
            driven.held = after
            moved()

    async def _may_go_on(self, context: Context) -> None:
        """Waits, visibly, while an operator has paused all procedures."""
        gate = self.ports.gate
        while not gate.is_open:
            with context.waiting_for("maintenance", gate.reason):
                await gate.opened()

    async def advance(self, kind: Kind[S], held: Held, context: Context) -> Moved:
        """One step forward, or one step of undo."""
        if held.record.phase is Phase.UNDO:
            return await self._undo(kind, held, context)
        state = kind.state.model_validate(held.record.state)
        began_ms = self.ports.clock.mono_ms()
        outcome = await kind.steps[held.record.step].act(state, context)
        beat = self._beat(held, began_ms)
        if isinstance(outcome, Goto):
            goto = outcome
            return await self._store(
                held, lambda at: journal.follow(kind, held.record, goto, beat, at), goto.txn
            )
        result = outcome.result
        return await self._end(
            held, lambda at: journal.succeeded(kind, held.record, result, beat, at), outcome.txn
        )

    async def turn_back(self, held: Held, error: MetaError | None) -> Held:
        """From now on *held* is undone. The step in flight is the first to be."""
        return await self._store(held, lambda _: journal.turn_back(held.record, error), Txn())

    async def _undo(self, kind: Kind[S], held: Held, context: Context) -> Moved:
        state = kind.state.model_validate(held.record.state)
        undo = kind.steps[held.record.step].undo
        began_ms = self.ports.clock.mono_ms()
        if undo is not None:
            await undo(state, context)
        beat = self._beat(held, began_ms)
        before = journal.undone(held.record, beat)
        if before is not None:
            return await self._store(held, lambda _: before, Txn())
        had_effect = undo is not None or bool(held.record.timeline)
        return await self._end(
            held,
            lambda at: journal.ended_undone(held.record, beat, at, had_effect=had_effect),
            Txn(),
        )

    async def _store(self, held: Held, make: Callable[[Stamp], Record], effect: Txn) -> Held:
        """The effect and the record that says so, in one transaction."""
        key = ProcedureKey(held.procedure)
        txn = held.txn().put_stamped(key, make).also(effect)
        committed = await self.committer.commit(txn, procedure=held.procedure)
        return Held(held.procedure, make(committed.stamp), committed.revision)

    async def _end(
        self, held: Held, make: Callable[[Stamp], ProcedureHistory], effect: Txn
    ) -> ProcedureHistory:
        """The effect, and the release of the record into history, in one transaction."""
        history = ProcedureHistoryKey(held.procedure)
        txn = held.txn().delete(ProcedureKey(held.procedure))
        txn = txn.expecting(history, 0).put_stamped(history, make).also(effect)
        committed = await self.committer.commit(txn, procedure=held.procedure)
        return make(committed.stamp)

    def _context(self, held: Held, children: Children, live: Live) -> Context:
        record = held.record
        return Context(self.ports, children, held.procedure, record.step, record.client, live)

    def _beat(self, held: Held, began_ms: int) -> Beat:
        clock, undoing = self.ports.clock, held.record.phase is Phase.UNDO
        step = f"undo {held.record.step}" if undoing else held.record.step
        return Beat(step=step, at_ms=clock.wall_ms(), ms=clock.mono_ms() - began_ms)
