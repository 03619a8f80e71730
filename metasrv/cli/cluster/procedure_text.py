"""A procedure as people read it: what was asked, how far it is, what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from metasrv.cli.errors.offenders import offending_rows
from metasrv.cli.output import show, show_table, value_text
from metasrv.cli.progress import ID_LENGTH, SHORT, wait_name

if TYPE_CHECKING:
    from metasrv.sdk.control.procedure import OnProgress
    from metasrv.sdk.sync import Client
    from metasrv_base.wire.api.procedures import (
        ControlBody,
        ProcedureBody,
        ProgressBody,
        WaitingBody,
    )
    from metasrv_base.wire.api.transitions import TransitionBody

CHECK = "check_table"
"""The kind whose result lists faults."""
KINDS = (
    *("create_catalog", "alter_catalog", "drop_catalog", "create_schema", "drop_schema"),
    *("create_placement", "alter_placement", "rename_placement", "drop_placement"),
    *("create_tablespace", "alter_tablespace", "rename_tablespace", "drop_tablespace"),
    *("create_table", "alter_table", "rename_table", "truncate_table", "drop_table"),
    *("undrop_table", "purge_table", "import_table", "check_table"),
    *("create_index", "validate_index", "drop_index"),
    *("failover_node", "failover_table", "lose_regions", "decommission_node", "batch"),
    *("change_copies", "add_copy", "remove_copy", "move_copy", "switch_leader", "drain_node"),
    *("move_dropped", "remove_orphans"),
)
"""Kinds, as in procedures/kinds/registry.py, which needs the packages of a server."""
PAUSED = "paused"
STATES = (
    *("queued", "waiting", "running", "retrying", PAUSED, "cancelling", "rolling_back"),
    *("poisoned", "parked", "succeeded", "cancelled", "rolled_back", "failed"),
)
"""States, as in metasrv_base/wire/api/procedures.py, whose models a TAB need not import."""
TRANSITIONS = ("schema", "published", "what", "regions", "drained after", "holders", "late")


def transition_row(transition: TransitionBody) -> tuple[object, ...]:
    """One version of a schema: what moved, and when every holder was there."""
    what = [f"{shift.name} {shift.before} -> {shift.after}" for shift in transition.shifts]
    late = [
        f"{who.holder} {who.went} after {who.waited_ms} ms"
        + ("" if who.transaction is None else f" ({who.transaction})")
        for who in transition.late
    ]
    drained = None if transition.drain_ms is None else f"{transition.drain_ms} ms"
    regions = f"{transition.regions} in {transition.told_ms} ms"
    return (
        transition.schema_version,
        transition.published_at,
        what,
        regions,
        drained,
        transition.holders,
        late,
    )


def show_procedures(procedures: list[ProcedureBody], *, is_wide: bool = False) -> None:
    """A line for each, with the shortest ids that `procedure get` takes for these; wide, with whole
    ids, and when each ended."""
    all_ids = [procedure.id for procedure in procedures]
    ids = all_ids if is_wide else short_ids(all_ids)
    head = ("id", "kind", "resource", "state", "step", "submitted", "by")
    rows = [
        (
            id,
            procedure.kind,
            _object_words(procedure),
            procedure.state,
            procedure.step,
            procedure.submitted_at,
            procedure.submitted_by,
            *((procedure.finished_at,) if is_wide else ()),
        )
        for id, procedure in zip(ids, procedures, strict=True)
    ]
    show_table((*head, "finished") if is_wide else head, rows, optional=("by", "submitted"))


def end_of(
    client: Client, started: ProcedureBody, wait_s: float, tell: OnProgress
) -> ProcedureBody:
    """Waits for the end of a procedure that was started with `wait_s=0`: so the answer comes at
    once, and a command that is interrupted can name what goes on."""
    tell(started)
    return client.procedures.wait(started.id, wait_s, tell)


def show_end(ended: ProcedureBody, as_json: bool) -> None:
    show(ended, as_json, lambda: show_procedures([ended]))


def _object_words(procedure: ProcedureBody) -> str:
    """`main.public.cities by_name`"""
    return " ".join(filter(None, (procedure.resource.name, procedure.change)))


def short_ids(ids: Sequence[str]) -> list[str]:
    """The shortest prefixes of one length that differ, 13 characters or more."""
    length = SHORT
    while length < ID_LENGTH and len({id[:length] for id in ids}) < len(set(ids)):
        length += 1
    return [id[:length].rstrip("-") for id in ids]


def wait_words(wait: WaitingBody) -> str:
    """`schema_lease of fe-2 since ..., at version 16 of 17, for t-9 (2.5 s old), 8 s at most`"""
    words = [f"{wait_name(wait, is_whole=True)} since {wait.since}"]
    if wait.need is not None:
        words.append(f"at version {'-' if wait.have is None else wait.have} of {wait.need}")
    if wait.transaction is not None:
        words.append(f"for {wait.transaction} ({(wait.transaction_age_ms or 0) / 1000:.1f} s old)")
    if wait.expires_in_s is not None:
        words.append(f"{wait.expires_in_s} s at most")
    return ", ".join(words)


def progress_words(progress: ProgressBody, state: str) -> str:
    """`420,000 of 1,000,000 rows, 35,000 a second, 17 s left`; while paused, only how far."""
    words = [f"{progress.done:,} of {progress.total:,} {progress.unit}"]
    if state == PAUSED:
        return words[0]
    if progress.rate_per_s:
        words.append(f"{progress.rate_per_s:,.0f} a second")
    if progress.eta_s is not None:
        words.append(f"{progress.eta_s} s left")
    return ", ".join(words)


def request_words(statement: dict[str, object] | None) -> str | None:
    """The body of the request, without what it left open; of a procedure that the cluster began
    by itself, the reason."""
    if statement is None:
        return None
    body = statement["body"] if "method" in statement else statement
    if not isinstance(body, dict):
        return None if body is None else value_text(body)
    chosen = {name: value for name, value in body.items() if value not in (None, False, [], {})}
    return value_text(chosen) if chosen else None


def control_words(control: ControlBody) -> str:
    """`pause by ada at ...: disk is full`"""
    reason = f": {control.reason}" if control.reason else ""
    return f"{control.action} by {control.by} at {control.at}{reason}"


def throttle_words(procedure: ProcedureBody) -> str | None:
    """`rests 50 % of the time, 2,000 rows a second at most`; None: no throttle."""
    words = []
    if procedure.throttle_percent:
        words.append(f"rests {procedure.throttle_percent} % of the time")
    if procedure.throttle_rows_per_s is not None:
        words.append(f"{procedure.throttle_rows_per_s:,} rows a second at most")
    return ", ".join(words) or None


def show_findings(procedure: ProcedureBody) -> None:
    """The rows that are in the way of a change, or the faults that a check found."""
    lines = list(offending_rows(procedure.error.facts)) if procedure.error else []
    if procedure.kind == CHECK and procedure.result is not None:
        from metasrv_base.wire.node.checks import TableCheckBody

        for fault in TableCheckBody.model_validate(procedure.result).faults:
            facts = fault.model_dump(mode="json", exclude={"rule"}).items()
            facts_shown = {name: fact for name, fact in facts if fact}
            lines.append(f"  {fault.rule}: {value_text(facts_shown)}")
    if lines:
        typer.echo("\n" + "\n".join(lines))


def facts_of(procedure: ProcedureBody) -> dict[str, object]:
    progress, resource = procedure.progress, procedure.resource
    return {
        "id": procedure.id,
        "kind": procedure.kind,
        "resource": f"{resource.type} {resource.name} ({resource.id})",
        "change": procedure.change,
        "state": f"{procedure.state}{', stalled' if procedure.stalled else ''}",
        "step": f"{procedure.step}, attempt {procedure.attempt}",
        "progress": progress_words(progress, procedure.state) if progress else None,
        "waits for": [wait_words(wait) for wait in procedure.waiting_for] or None,
        "throttle": throttle_words(procedure),
        "request": request_words(procedure.statement),
        "controls": "; ".join(map(control_words, procedure.controls)) or None,
        "actions": procedure.allowed_actions or None,
        "submitted": f"{procedure.submitted_at} by {procedure.submitted_by}",
        "started": procedure.started_at,
        "finished": procedure.finished_at,
        "catalog version": procedure.catalog_version,
        "error": f"{procedure.error.code}: {procedure.error.detail}" if procedure.error else None,
        "children": procedure.children or None,
    }
