"""The only place where a procedure moves: run one step, then commit its effect and its record.

A step may run again after a crash, so its calls to nodes are idempotent; its writes happen once,
because they share a transaction with the record that says they happened, and with the fence of the
leader that computed them. That is the whole durability argument.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeAlias, TypeVar

from keys.commit.committer import Committed
from keys.commit.txn import NOTHING, Stamp, Txn
from keys.model.origin import Origin
from keys.model.poison import Poison, PoisonKey
from keys.model.records import (
    ProcedureHistory,
    ProcedureHistoryKey,
    ProcedureKey,
    ProcedurePhase,
    TimelineEntry,
)
from keys.model.records import (
    ProcedureRecord as Record,
)
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.values.frozen import frozen
from procedures.context import Context, Ports
from procedures.engine import record_transitions
from procedures.engine.record_transitions import Why
from procedures.engine.retry import Tries
from procedures.machine import Goto, Kind, S
from procedures.ports import Commits

T = TypeVar("T")


@frozen
class StoredRecord:
    """A record as it is stored, and the revision at which it was stored."""

    procedure: str
    record: Record
    revision: int

    def txn(self) -> Txn:
        """Returns a transaction that expects the record unchanged; every commit of the procedure
        has it."""
        return Txn().expecting(ProcedureKey(self.procedure), self.revision)


StepResult: TypeAlias = StoredRecord | ProcedureHistory
Commit: TypeAlias = Callable[[StoredRecord], Awaitable[StepResult]]
"""The transaction of a step that has acted, on the record as it stands by then."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Moves one procedure at a time; holds nothing of any."""

    ports: Ports
    committer: Commits

    async def advance(self, kind: Kind[S], held: StoredRecord, context: Context) -> StepResult:
        """Runs one step forward, or one step of undo, and commits it."""
        limit_ms = Tries().left_ms(kind, held.record, self.ports.clock.wall_ms())
        commit = await self.act(kind, held, context, limit_ms)
        return await commit(held)

    async def act(
        self, kind: Kind[S], held: StoredRecord, context: Context, limit_ms: int | None
    ) -> Commit:
        """Does all of a step but its transaction. A throttle may be stored meanwhile, so the commit
        is given the record as it stands then; what moves a record between its steps ends the step
        first."""
        if held.record.phase is ProcedurePhase.UNDO:
            return await self._undo(kind, held, context, limit_ms)
        state = kind.state.model_validate(held.record.state)
        began_ms = self.ports.clock.mono_ms()
        step = held.record.step
        outcome = await _within(limit_ms, step, kind.steps[step].act(state, context))
        beat = self._beat(held, began_ms)

        async def commit(held: StoredRecord) -> StepResult:
            passed = partial(record_transitions.passed, held.record, context.passages.all())
            if isinstance(outcome, Goto):
                goto = outcome
                return await self.store(
                    held,
                    lambda stamp: record_transitions.follow(kind, passed(stamp), goto, beat, stamp),
                    goto.txn,
                )
            result = outcome.result
            return await self.end(
                held,
                lambda stamp: record_transitions.succeeded(
                    kind, passed(stamp), result, beat, stamp
                ),
                outcome.txn,
            )

        return commit

    async def turn_back(self, held: StoredRecord, why: Why) -> StoredRecord:
        """Turns *held* to its undo, beginning with the step in flight."""
        return await self.store(
            held, lambda stamp: record_transitions.turn_back(held.record, why, stamp)
        )

    async def abandon(self, held: StoredRecord, why: Why) -> ProcedureHistory:
        """The end of one that never began."""
        return await self.end(
            held, lambda stamp: record_transitions.abandon(held.record, why, stamp)
        )

    async def poison(self, held: StoredRecord, error: MetaError) -> StoredRecord:
        """Gives the undo up and leaves a poison. If the resource has a poison of another
        procedure, retries until that one is cleared."""
        record = held.record
        key = PoisonKey.of(record.resource)
        effect = Txn().expecting(key, 0)
        effect = effect.put_stamped(
            key,
            lambda stamp: Poison(
                procedure=held.procedure,
                kind=record.kind,
                resource=record.resource,
                step=record.step,
                error=record_transitions.stored_error(error),
                at_ms=stamp.at_ms,
            ),
        )
        return await self.store(held, lambda _: record_transitions.poison(record), effect)

    async def _undo(
        self, kind: Kind[S], held: StoredRecord, context: Context, limit_ms: int | None
    ) -> Commit:
        state = kind.state.model_validate(held.record.state)
        undo = kind.steps[held.record.step].undo
        began_ms = self.ports.clock.mono_ms()
        back = None
        if undo is not None:
            back = await _within(limit_ms, f"undo {held.record.step}", undo(state, context))
        beat = self._beat(held, began_ms)

        async def commit(held: StoredRecord) -> StepResult:
            passed = partial(record_transitions.passed, held.record, context.passages.all())
            if back is not None:
                return await self.store(
                    held,
                    lambda stamp: record_transitions.partly_undone(passed(stamp), beat, stamp),
                    back.txn,
                )
            before = record_transitions.undone(held.record, beat)
            if before is not None:
                return await self.store(held, lambda _: before)
            had_effect = undo is not None or bool(held.record.timeline)
            return await self.end(
                held,
                lambda stamp: record_transitions.ended_undone(
                    held.record, beat, stamp, had_effect=had_effect
                ),
            )

        return commit

    async def store(
        self, held: StoredRecord, make: Callable[[Stamp], Record], effect: Txn = NOTHING
    ) -> StoredRecord:
        """The effect and the record that says so, in one transaction."""
        # The committer stamps the record; what was stored is returned, and not made again.
        key, made = ProcedureKey(held.procedure), lru_cache(maxsize=1)(make)
        txn = held.txn().put_stamped(key, made).also(effect)
        committed = await self._commit(held, txn)
        return StoredRecord(held.procedure, made(committed.stamp), committed.revision)

    async def end(
        self, held: StoredRecord, make: Callable[[Stamp], ProcedureHistory], effect: Txn = NOTHING
    ) -> ProcedureHistory:
        """The effect, and the release of the record into history, in one transaction."""
        history, made = ProcedureHistoryKey(held.procedure), lru_cache(maxsize=1)(make)
        txn = held.txn().delete(ProcedureKey(held.procedure))
        txn = txn.expecting(history, 0).put_stamped(history, made).also(effect)
        committed = await self._commit(held, txn)
        return made(committed.stamp)

    async def _commit(self, held: StoredRecord, txn: Txn) -> Committed:
        origin = None
        if txn.entries:
            origin = Origin.of(held.record)
        return await self.committer.commit(txn, procedure=held.procedure, origin=origin)

    def _beat(self, held: StoredRecord, began_ms: int) -> TimelineEntry:
        clock, undoing = self.ports.clock, held.record.phase is ProcedurePhase.UNDO
        step = f"undo {held.record.step}" if undoing else held.record.step
        return TimelineEntry(step=step, at_ms=clock.wall_ms(), ms=clock.mono_ms() - began_ms)


async def _within(limit_ms: int | None, step: str, work: Awaitable[T]) -> T:
    """Ends *work* after *limit_ms*. Raises Unavailable("deadline-exceeded").

    What it had begun may still happen: it is a step, so it is undone or run again.
    """
    limit = asyncio.timeout(None if limit_ms is None else limit_ms / 1000)
    try:
        async with limit:
            return await work
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise Unavailable("deadline-exceeded", step=step) from error
    finally:
        del limit  # it knows the task, and the task its error: a cycle, left to gc
