"""Transitions of a stored record: pure functions from a record and an event to the next record."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from keys.commit.txn import Stamp
from keys.model.records import (
    CONTROLS_MAX,
    TIMELINE_MAX,
    ClientRequirements,
    Controlled,
    ProcedureHistory,
    ProcedureOutcome,
    ProcedurePhase,
    ProcedureRecord,
    StoredError,
    TimelineEntry,
)
from metasrv_base.errors import MetaError
from metasrv_base.wire.node.offenders import first_within
from procedures.elements.transition_notes import TransitionNote, kept
from procedures.machine import Goto, Kind, ProcedureState, S

FACTS_CHARS_MAX = 16_384  # of an error, as JSON

Why: TypeAlias = MetaError | Controlled
"""The cause of an undo: an error, or a cancel."""


def begin(
    kind: Kind[S], state: S, client: ClientRequirements, stamp: Stamp, *, parent: str | None = None
) -> ProcedureRecord:
    """The record as it is submitted."""
    return ProcedureRecord(
        kind=kind.name,
        kind_format=kind.state.format,
        step=kind.first,
        phase=ProcedurePhase.FORWARD,
        state=_dump(state),
        submission=stamp.submission,
        locks=kind.locks(state),
        resource=kind.resource(state),
        client=client,
        parent=parent,
        submitted_at_ms=stamp.at_ms,
        deadline_at_ms=stamp.at_ms + kind.deadline_ms,
    )


def submitted(
    kind: Kind[Any],
    first: ProcedureRecord,
    stamp: Stamp,
    overtakes: tuple[str, ...],
    stood_ms: int,
) -> ProcedureRecord:
    """*first*, as it began, with what is known once it is stored."""
    return first.model_copy(
        update={
            "submission": stamp.submission,
            "submitted_at_ms": stamp.at_ms,
            "deadline_at_ms": stamp.at_ms + kind.deadline_ms,
            "overtakes": overtakes,
            "stood_ms": stood_ms,
        }
    )


def follow(
    kind: Kind[S], record: ProcedureRecord, outcome: Goto[S], beat: TimelineEntry, stamp: Stamp
) -> ProcedureRecord:
    """The record after *outcome*; an edge that is not in the table is a bug."""
    assert record.phase is ProcedurePhase.FORWARD
    assert kind.may_follow(outcome.step, record.step), f"{record.step} -> {outcome.step}"
    locks = record.locks if outcome.keeps is None else outcome.keeps
    assert set(locks) <= set(record.locks), "a lock that it never had"
    return record.model_copy(
        update={
            "step": outcome.step,
            "kind_format": kind.state.format,
            "state": _dump(outcome.state),
            "locks": locks,
            "trail": _trail(kind, record, outcome.step),
            "timeline": _with(record, beat),
            "catalog_version": stamp.catalog_version or record.catalog_version,
        }
    )


def _trail(kind: Kind[S], record: ProcedureRecord, following: str) -> tuple[str, ...]:
    """Past the point of no return nobody walks it backwards: a step that goes round again is in it
    once, so that a record does not grow with its rounds."""
    trail = record.trail
    goes_round = record.step in trail and kind.has_passed(trail)
    return trail if following == record.step or goes_round else (*trail, record.step)


def passed(
    record: ProcedureRecord, passages: Iterable[TransitionNote], stamp: Stamp
) -> ProcedureRecord:
    """The record with what its step saw of transitions; *stamp* is of the commit that ends it."""
    transitions = kept(record.transitions, passages, stamp)
    if transitions == record.transitions:
        return record
    return record.model_copy(update={"transitions": transitions})


def turn_back(record: ProcedureRecord, why: Why, stamp: Stamp) -> ProcedureRecord:
    """Undo from the step in flight. It is not paused any more."""
    assert record.phase is ProcedurePhase.FORWARD
    turned: dict[str, Any] = {
        "phase": ProcedurePhase.UNDO,
        "turned_at_ms": stamp.at_ms,
        "paused_at_ms": None,
    }
    return record.model_copy(update={**turned, **_why(record, why)})


def abandon(record: ProcedureRecord, why: Why, stamp: Stamp) -> ProcedureHistory:
    """The end of one that never began: there is nothing to undo."""
    assert record.phase is ProcedurePhase.FORWARD
    assert not record.timeline
    last = record.model_copy(update={"paused_at_ms": None, **_why(record, why)})
    return ProcedureHistory(
        outcome=ProcedureOutcome.CANCELLED if last.cancel else ProcedureOutcome.FAILED,
        last=last,
        result=None,
        finished_at_ms=stamp.at_ms,
        catalog_version=None,
    )


def _why(record: ProcedureRecord, why: Why) -> dict[str, Any]:
    if isinstance(why, Controlled):
        return {"error": None, "cancel": True, "controls": _asked(record, why)}
    return {"error": stored_error(why), "cancel": False}


def stored_error(error: MetaError) -> StoredError:
    """Facts that are long are cut: a record has little room for them
    (procedures/engine/sizes.py). Short ones are whole; of a list its first entries are kept.
    """
    facts = storable(error.facts)
    chars = {name: _chars(fact) for name, fact in facts.items()}
    left = FACTS_CHARS_MAX
    for position, name in enumerate(sorted(chars, key=chars.__getitem__)):
        most = left // (len(chars) - position)
        if chars[name] > most:
            facts[name] = _cut(facts[name], most)
        left -= min(chars[name], most)
    return StoredError(code=error.code, facts=facts)


def _cut(fact: object, most: int) -> object:
    if isinstance(fact, list | tuple):
        return first_within(fact, most)
    text = fact if isinstance(fact, str) else json.dumps(fact, default=str)
    return f"{text[:most]}... ({len(text)} characters)"


def _chars(fact: object) -> int:
    return len(json.dumps(fact, default=str))


def pause(record: ProcedureRecord, mark: Controlled, stamp: Stamp) -> ProcedureRecord:
    assert record.phase is ProcedurePhase.FORWARD
    update = {"paused_at_ms": stamp.at_ms, "controls": _asked(record, mark)}
    return record.model_copy(update=update)


def resume(record: ProcedureRecord, mark: Controlled, stamp: Stamp) -> ProcedureRecord:
    """The time it was paused is not its own: its deadline moves."""
    assert record.paused_at_ms is not None
    update = {
        "paused_at_ms": None,
        "deadline_at_ms": record.deadline_at_ms + max(0, stamp.at_ms - record.paused_at_ms),
        "controls": _asked(record, mark),
    }
    return record.model_copy(update=update)


def throttle(
    record: ProcedureRecord, mark: Controlled, percent: int, rows_per_s: int | None
) -> ProcedureRecord:
    update = {
        "throttle_percent": percent,
        "throttle_rows_per_s": rows_per_s,
        "controls": _asked(record, mark),
    }
    return record.model_copy(update=update)


def poison(record: ProcedureRecord) -> ProcedureRecord:
    """Marks the record as poisoned: its undo is given up until a person intervenes."""
    assert record.phase is ProcedurePhase.UNDO
    return record.model_copy(update={"poisoned": True})


def undo_again(record: ProcedureRecord, mark: Controlled, stamp: Stamp) -> ProcedureRecord:
    assert record.poisoned
    update = {
        "poisoned": False,
        "turned_at_ms": stamp.at_ms,
        "controls": _asked(record, mark),
    }
    return record.model_copy(update=update)


def cleared(record: ProcedureRecord, mark: Controlled, stamp: Stamp) -> ProcedureHistory:
    """The end of one whose undo was finished by hand; *mark* says by whom, and why that is so."""
    assert record.poisoned
    return ProcedureHistory(
        outcome=ProcedureOutcome.CANCELLED if record.cancel else ProcedureOutcome.ROLLED_BACK,
        last=record.model_copy(update={"controls": _asked(record, mark)}),
        result=None,
        finished_at_ms=stamp.at_ms,
        catalog_version=None,
    )


def _asked(record: ProcedureRecord, mark: Controlled) -> tuple[Controlled, ...]:
    return (*record.controls, mark)[-CONTROLS_MAX:]


def partly_undone(record: ProcedureRecord, beat: TimelineEntry, stamp: Stamp) -> ProcedureRecord:
    """The record once a part of its step has been undone."""
    assert record.phase is ProcedurePhase.UNDO
    version = stamp.catalog_version or record.catalog_version
    return record.model_copy(update={"timeline": _with(record, beat), "catalog_version": version})


def undone(record: ProcedureRecord, beat: TimelineEntry) -> ProcedureRecord | None:
    """The record once its step has been undone: the step before it is next; None: all is undone."""
    assert record.phase is ProcedurePhase.UNDO
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
    kind: Kind[S],
    record: ProcedureRecord,
    result: Mapping[str, Any],
    beat: TimelineEntry,
    stamp: Stamp,
) -> ProcedureHistory:
    """The end after the step in flight, which must be one that may be the last."""
    assert record.phase is ProcedurePhase.FORWARD
    assert kind.may_end(record.step), f"{record.step} -> the end"
    return ProcedureHistory(
        outcome=ProcedureOutcome.SUCCEEDED,
        last=record.model_copy(update={"timeline": _with(record, beat)}),
        result=dict(result),
        finished_at_ms=stamp.at_ms,
        catalog_version=stamp.catalog_version or record.catalog_version,
    )


def ended_undone(
    record: ProcedureRecord, beat: TimelineEntry, stamp: Stamp, *, had_effect: bool
) -> ProcedureHistory:
    """The end of an undo: cancelled, rolled back, or failed before its first effect."""
    assert record.phase is ProcedurePhase.UNDO
    assert not record.trail, f"{record.trail} not undone"
    outcome = ProcedureOutcome.ROLLED_BACK if had_effect else ProcedureOutcome.FAILED
    return ProcedureHistory(
        outcome=ProcedureOutcome.CANCELLED if record.cancel else outcome,
        last=record.model_copy(update={"timeline": _with(record, beat)}),
        result=None,
        finished_at_ms=stamp.at_ms,
        catalog_version=None,
    )


def storable(facts: Mapping[str, object]) -> dict[str, Any]:
    """Facts of an error as JSON: what is not a plain value is shown as text."""
    plain = (str, int, float, bool, type(None), list, tuple, dict)
    return {name: fact if isinstance(fact, plain) else str(fact) for name, fact in facts.items()}


def _with(record: ProcedureRecord, beat: TimelineEntry) -> tuple[TimelineEntry, ...]:
    return (*record.timeline, beat)[-TIMELINE_MAX:]


def _dump(state: ProcedureState) -> dict[str, Any]:
    return state.model_dump(mode="json")
