"""A procedure as the wire shows it, from its entry while it lives and its history after. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from keys.model.records import ProcedureHistory, ProcedureRecord, Resource, StoredError
from metasrv.service.bodies.shapes import time_of
from metasrv.service.bodies.transition_shapes import transition_body
from metasrv_base.wire.api.procedures import (
    BeatBody,
    ControlBody,
    ProcedureBody,
    ProcedureError,
    ProgressBody,
    ResourceBody,
    WaitingBody,
)
from metasrv_base.wire.problem.problems import KINDS, detail_of, safe
from procedures.context import Live
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import Control, State, allowed
from procedures.kinds.registry import KINDS as PROCEDURES


def living_body(
    procedure: str, entry: ActiveProcedure, now_ms: int, children: Iterable[str] = ()
) -> ProcedureBody:
    """Returns the body of a procedure that has not ended. *children* are those that have not
    ended."""
    record, live = entry.held.record, entry.live
    may = allowed(entry.facts)
    return _body(
        procedure,
        record,
        {
            "state": entry.state.value,
            "done": False,
            "progress": _progress(live, now_ms),
            "waiting_for": _waiting(entry, record),
            "stalled": entry.stalled,
            "cancelable": Control.CANCEL in may,
            "point_of_no_return": entry.has_passed,
            "allowed_actions": tuple(
                control.value for control in may if control is not Control.CLEAR
            ),
            "attempt": live.attempt,
            "children": _children(record, children),
            "finished_at": None,
            "result": None,
            "error": _living_error(entry, record),
            "catalog_version": record.catalog_version,
        },
    )


def ended_body(procedure: str, history: ProcedureHistory) -> ProcedureBody:
    record = history.last
    return _body(
        procedure,
        record,
        {
            "state": history.outcome.value,
            "done": True,
            "progress": None,
            "waiting_for": (),
            "stalled": False,
            "cancelable": False,
            "point_of_no_return": False,
            "allowed_actions": (),
            "attempt": 1,
            "children": _children(record, ()),
            "finished_at": time_of(history.finished_at_ms),
            "result": history.result,
            "error": _stored_error(record),
            "catalog_version": history.catalog_version,
        },
    )


def procedure_etag(entry: ActiveProcedure | ProcedureHistory) -> str:
    """Moves whenever what is shown does, but for clocks that merely run."""
    if isinstance(entry, ProcedureHistory):
        return f'"{entry.outcome.value}"'
    live = entry.live
    parts = (entry.held.revision, entry.state.value, live.attempt, live.phase, live.done)
    return '"' + ".".join(str(part) for part in parts) + '"'


def resource_body(resource: Resource) -> ResourceBody:
    return ResourceBody(type=resource.type, id=resource.id, name=resource.name)


def _body(procedure: str, record: ProcedureRecord, rest: Mapping[str, Any]) -> ProcedureBody:
    started = _started_ms(record)
    return ProcedureBody(
        id=procedure,
        kind=record.kind,
        resource=resource_body(record.resource),
        change=_change(record),
        step=record.step,
        resumed=record.resumed,
        parent_id=record.parent,
        submitted_by=record.client.submitted_by,
        statement=record.client.statement,
        submitted_at=time_of(record.submitted_at_ms),
        started_at=None if started is None else time_of(started),
        timeline=tuple(
            BeatBody(step=beat.step, at=time_of(beat.at_ms), ms=beat.ms) for beat in record.timeline
        ),
        transitions=tuple(transition_body(transition) for transition in record.transitions),
        controls=tuple(
            ControlBody(
                action=control.action,
                by=control.by,
                at=time_of(control.at_ms),
                reason=control.reason,
            )
            for control in record.controls
        ),
        throttle_percent=record.throttle_percent,
        throttle_rows_per_s=record.throttle_rows_per_s,
        **rest,
    )


def _started_ms(record: ProcedureRecord) -> int | None:
    """The time at which its first step began; None: it has not finished one."""
    if record.started_at_ms is not None:
        return record.started_at_ms
    if not record.timeline:
        return None
    first = record.timeline[0]
    return max(record.submitted_at_ms, first.at_ms - first.ms)


def _progress(live: Live, now_ms: int) -> ProgressBody | None:
    if not live.phase:
        return None
    elapsed_s = max(0, now_ms - live.started_at_ms) / 1000
    rate = live.done / elapsed_s if elapsed_s else 0.0
    if live.rate_per_s is not None:
        rate = live.rate_per_s
    left = max(0, live.total - live.done)
    return ProgressBody(
        phase=live.phase,
        done=live.done,
        total=live.total,
        unit=live.unit,
        rate_per_s=round(rate, 3),
        eta_s=round(left / rate) if rate else None,
        limit_per_s=live.pace.rows_per_s,
    )


def _waiting(entry: ActiveProcedure, record: ProcedureRecord) -> tuple[WaitingBody, ...]:
    since = time_of(record.submitted_at_ms)
    locks = [
        WaitingBody(kind="lock", holder=blocked.by, key=blocked.key, since=since)
        for blocked in entry.blocked
    ]
    if entry.state is State.QUEUED:
        locks.append(WaitingBody(kind="admission", holder="running procedures", since=since))
    return (
        *locks,
        *(
            WaitingBody(
                kind=wait.kind,
                holder=wait.holder,
                since=time_of(wait.since_ms),
                expires_in_s=None if wait.expires_in_ms is None else -(-wait.expires_in_ms // 1000),
                have=wait.have,
                need=wait.need,
                transaction=wait.transaction,
                transaction_age_ms=wait.transaction_age_ms,
            )
            for wait in entry.live.waits
        ),
    )


def _living_error(entry: ActiveProcedure, record: ProcedureRecord) -> ProcedureError | None:
    if entry.parked is not None:
        return ProcedureError(code="internal", detail=entry.parked)
    if record.error is None and entry.live.last_error is not None:
        return _error(entry.live.last_error, entry.live.last_facts)
    return _stored_error(record)


def error_body(stored: StoredError) -> ProcedureError:
    return _error(stored.code, stored.facts)


def _stored_error(record: ProcedureRecord) -> ProcedureError | None:
    return None if record.error is None else error_body(record.error)


def _error(code: str, facts: Mapping[str, object]) -> ProcedureError:
    kind = KINDS.get(code, KINDS["internal"])
    shown = {name: safe(fact) for name, fact in facts.items()}
    return ProcedureError(code=kind.code, detail=detail_of(kind, shown), facts=shown)


def _change(record: ProcedureRecord) -> str | None:
    """The words of its kind; None for a state that this version cannot read, and for a request that
    had nothing to change (`if_exists`)."""
    kind = PROCEDURES.get(record.kind)
    if kind is None or record.kind_format > kind.state.format or not record.state:
        return None
    return kind.change(record.state)


def _children(record: ProcedureRecord, living: Iterable[str]) -> tuple[str, ...]:
    """Returns the ids of children that its record names, and of those under way that name it. The
    list by parent has the others, which are over."""
    kind = PROCEDURES.get(record.kind)
    named = () if kind is None else kind.shown_children(record.state)
    return tuple(dict.fromkeys((*named, *living)))
