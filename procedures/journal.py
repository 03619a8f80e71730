"""How a record moves: pure functions from a record and what happened to the next record."""

from collections.abc import Mapping
from typing import Any

from base.errors import MetaError
from keys.records import (
    TIMELINE_MAX,
    Beat,
    Outcome,
    Phase,
    ProcedureHistory,
    ProcedureRecord,
    StoredError,
    Submission,
)
from keys.txn import Stamp
from procedures.machine import Goto, Kind, ProcedureState, S


def begin(
    kind: Kind[S], state: S, client: Submission, stamp: Stamp, *, parent: str | None = None
) -> ProcedureRecord:
    """The record as it is submitted."""
    return ProcedureRecord(
        kind=kind.name,
        kind_format=kind.state.format,
        step=kind.first,
        phase=Phase.FORWARD,
        state=_dump(state),
        submission=stamp.submission,
        locks=kind.locks(state),
        resource=kind.resource(state),
        client=client,
        parent=parent,
        submitted_at_ms=stamp.at_ms,
        deadline_at_ms=stamp.at_ms + kind.deadline_ms,
    )


def follow(
    kind: Kind[S], record: ProcedureRecord, outcome: Goto[S], beat: Beat, stamp: Stamp
) -> ProcedureRecord:
    """The record after *outcome*; an edge that is not in the table is a bug."""
    assert record.phase is Phase.FORWARD
    assert kind.may_follow(outcome.step, record.step), f"{record.step} -> {outcome.step}"
    repeats = outcome.step == record.step
    return record.model_copy(
        update={
            "step": outcome.step,
            "state": _dump(outcome.state),
            "trail": record.trail if repeats else (*record.trail, record.step),
            "timeline": _with(record, beat),
            "catalog_version": stamp.catalog_version or record.catalog_version,
        }
    )


def turn_back(record: ProcedureRecord, error: MetaError | None) -> ProcedureRecord:
    """Undo from the step in flight, because of *error*, or because the client cancelled (None)."""
    assert record.phase is Phase.FORWARD
    stored = StoredError(code=error.code, facts=storable(error.facts)) if error else None
    return record.model_copy(update={"phase": Phase.UNDO, "error": stored, "cancel": error is None})


def undone(record: ProcedureRecord, beat: Beat) -> ProcedureRecord | None:
    """The record once its step has been undone: the step before it is next; None: all is undone."""
    assert record.phase is Phase.UNDO
    if not record.trail:
        return None
    return record.model_copy(
        update={
            "step": record.trail[-1],
            "trail": record.trail[:-1],
            "timeline": _with(record, beat),
        }
    )


def succeeded(
    kind: Kind[S], record: ProcedureRecord, result: Mapping[str, Any], beat: Beat, stamp: Stamp
) -> ProcedureHistory:
    """The end after the step in flight, which must be one that may be the last."""
    assert record.phase is Phase.FORWARD
    assert kind.may_end(record.step), f"{record.step} -> the end"
    return ProcedureHistory(
        outcome=Outcome.SUCCEEDED,
        last=record.model_copy(update={"timeline": _with(record, beat)}),
        result=dict(result),
        finished_at_ms=stamp.at_ms,
        catalog_version=stamp.catalog_version or record.catalog_version,
    )


def ended_undone(
    record: ProcedureRecord, beat: Beat, stamp: Stamp, *, had_effect: bool
) -> ProcedureHistory:
    """The end of an undo: cancelled, rolled back, or failed before its first effect."""
    assert record.phase is Phase.UNDO
    assert not record.trail, f"{record.trail} not undone"
    outcome = Outcome.ROLLED_BACK if had_effect else Outcome.FAILED
    return ProcedureHistory(
        outcome=Outcome.CANCELLED if record.cancel else outcome,
        last=record.model_copy(update={"timeline": _with(record, beat)}),
        result=None,
        finished_at_ms=stamp.at_ms,
        catalog_version=None,
    )


def storable(facts: Mapping[str, object]) -> dict[str, Any]:
    """Facts of an error as JSON: what is not a plain value is shown as text."""
    plain = (str, int, float, bool, type(None), list, tuple, dict)
    return {name: fact if isinstance(fact, plain) else str(fact) for name, fact in facts.items()}


def _with(record: ProcedureRecord, beat: Beat) -> tuple[Beat, ...]:
    return (*record.timeline, beat)[-TIMELINE_MAX:]


def _dump(state: ProcedureState) -> dict[str, Any]:
    return state.model_dump(mode="json")
