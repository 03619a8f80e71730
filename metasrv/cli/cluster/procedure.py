"""`metasrv procedure`: what changes, how far it is, and what it waits for."""

from getpass import getuser
from typing import Annotated, cast

import typer

from metasrv.cli.options import WAIT_S, AsJson, Url, WaitS, service
from metasrv.cli.output import said, show, show_facts, show_json, show_table
from metasrv.cli.problem_words import offending_rows
from metasrv.cli.progress import procedure_bar
from metasrv.sdk.control.operations import ProcedureFilters
from metasrv_base.wire.api.control import PERCENT_MAX, ThrottleRequest
from metasrv_base.wire.api.procedures import ProcedureBody, ProgressBody, WaitingBody
from metasrv_base.wire.api.transitions import TransitionBody
from metasrv_base.wire.node.checks import TableCheckBody

app = typer.Typer(no_args_is_help=True)
IdArg = Annotated[str, typer.Argument(metavar="ID")]
Reason = Annotated[str | None, typer.Option(help="Kept in its history.")]
By = Annotated[str, typer.Option(help="Who says so; kept in its history.")]
USER = getuser()
CHECK = "check_table"  # the kind whose result lists faults


@app.command("list")
def list_(  # noqa: PLR0913  # a parameter is an option of the command
    state: Annotated[str, typer.Option(help="As `running`; several with commas.")] = "",
    kind: Annotated[str, typer.Option(help="As `create_table`; several with commas.")] = "",
    resource: Annotated[str, typer.Option(help="As `main.public.t` or `table:1024`.")] = "",
    parent: Annotated[str, typer.Option(help="Id of the procedure that began them.")] = "",
    since: Annotated[str, typer.Option(help="As 2013-01-31T23:59:59Z: then or later.")] = "",
    until: Annotated[str, typer.Option(help="As --since, and before.")] = "",
    stalled: Annotated[
        bool | None, typer.Option("--stalled/--moving", help="Without progress for long, or not.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1)] = 50,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Newest first."""
    given = {
        "state": state,
        "kind": kind,
        "resource": resource,
        "parent": parent,
        "since": since,
        "until": until,
        "stalled": stalled,
    }
    asked = {name: value for name, value in given.items() if value not in ("", None)}
    only = cast(ProcedureFilters, asked)
    with service(metasrv, as_json) as client:
        found = client.procedures.list(limit, **only)
    show(found, as_json, lambda: show_procedures(found))


@app.command("get")
def get(id: IdArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """One procedure, with its timeline."""
    with service(metasrv, as_json) as client:
        found = client.procedures.get(id)
    if as_json:
        show_json(found)
        return
    show_facts(facts_of(found))
    if found.transitions:
        typer.echo()
        show_table(TRANSITIONS, map(transition_row, found.transitions))
    if found.timeline:
        typer.echo()
        show_table(("step", "ended", "ms"), [(one.step, one.at, one.ms) for one in found.timeline])
    show_findings(found)


@app.command("watch")
def watch(id: IdArg, wait: WaitS = WAIT_S, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Follow it to its end. Exit 0: it succeeded."""
    with service(metasrv, as_json) as client, procedure_bar(id) as tell:
        found = client.procedures.wait(id, wait, tell)
    if as_json:
        show_json(found)
        return
    show_facts(facts_of(found))
    show_findings(found)


def _control(
    id: str,
    action: str,
    said: tuple[str, str | None, ThrottleRequest | None],
    url: str | None,
    as_json: bool,
) -> None:
    by, reason, throttle = said
    with service(url, as_json) as client:
        found = client.procedures.control(id, action, by, reason, throttle)
    show(found, as_json, lambda: typer.echo(f"{found.id}: {found.state}"))


@app.command("cancel")
def cancel(
    id: IdArg, reason: Reason = None, by: By = USER, metasrv: Url = None, as_json: AsJson = False
) -> None:
    """Ask for it to be undone; past its point of no return it is refused."""
    _control(id, "cancel", (by, reason, None), metasrv, as_json)


@app.command("pause")
def pause(
    id: IdArg, reason: Reason = None, by: By = USER, metasrv: Url = None, as_json: AsJson = False
) -> None:
    """Stop it where it stands. It keeps its locks, and its deadline moves."""
    _control(id, "pause", (by, reason, None), metasrv, as_json)


@app.command("resume")
def resume(
    id: IdArg, reason: Reason = None, by: By = USER, metasrv: Url = None, as_json: AsJson = False
) -> None:
    """Let a paused one go on."""
    _control(id, "resume", (by, reason, None), metasrv, as_json)


@app.command("retry")
def retry(
    id: IdArg, reason: Reason = None, by: By = USER, metasrv: Url = None, as_json: AsJson = False
) -> None:
    """Try again now; of a poisoned one, its undo."""
    _control(id, "retry", (by, reason, None), metasrv, as_json)


@app.command("throttle")
def throttle(  # noqa: PLR0913  # a parameter is an option of the command
    id: IdArg,
    percent: Annotated[int, typer.Argument(min=0, max=PERCENT_MAX)] = 0,
    rows_per_s: Annotated[
        int | None, typer.Option(min=1, help="Of a reorg; else it finds its own rate.")
    ] = None,
    by: By = USER,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """The share of time that the steps which move data rest; 0: none."""
    request = ThrottleRequest(percent=percent, rows_per_s=rows_per_s)
    _control(id, "throttle", (by, None, request), metasrv, as_json)


@app.command("locks")
def locks(metasrv: Url = None, as_json: AsJson = False) -> None:
    """Who holds what, and who waits for it."""
    with service(metasrv, as_json) as client:
        found = client.procedures.locks()
    if as_json:
        show_json(found)
        return
    rows = [
        (lock.key, place.mode, held, place.kind, place.procedure_id)
        for lock in found
        for held, places in (("holds", lock.holders), ("waits", lock.queue))
        for place in places
    ]
    show_table(("key", "mode", "", "kind", "procedure"), rows)


@app.command("poisons")
def poisons(metasrv: Url = None, as_json: AsJson = False) -> None:
    """What failed changes have left half undone."""
    with service(metasrv, as_json) as client:
        found = client.procedures.poisons()
    if as_json:
        show_json(found)
        return
    rows = [
        (f"{one.resource.type}:{one.resource.id}", one.resource.name, one.kind, one.error.detail)
        for one in found
    ]
    show_table(("resource", "name", "left by", "error"), rows)


@app.command("clear")
def clear(
    resource: Annotated[str, typer.Argument(help="As `poisons` shows it: `table:1024`.")],
    reason: Annotated[str, typer.Option(help="What was mended, and how.")],
    by: By = USER,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Clear a poison: the undo has been finished by hand."""
    with service(metasrv, as_json) as client:
        found = client.procedures.clear_poison(resource, reason, by)
    show(found, as_json, lambda: typer.echo(f"{found.id}: {found.state}"))


TRANSITIONS = ("schema", "published", "what", "regions", "drained after", "holders", "late")


def transition_row(one: TransitionBody) -> tuple[object, ...]:
    """One version of a schema: what moved, and when every holder was there."""
    what = [f"{shift.name} {shift.before} -> {shift.after}" for shift in one.shifts]
    late = [
        f"{who.holder} {who.went} after {who.waited_ms} ms"
        + ("" if who.transaction is None else f" ({who.transaction})")
        for who in one.late
    ]
    drained = None if one.drain_ms is None else f"{one.drain_ms} ms"
    regions = f"{one.regions} in {one.told_ms} ms"
    return (one.schema_version, one.published_at, what, regions, drained, one.holders, late)


def show_procedures(found: list[ProcedureBody]) -> None:
    rows = [
        (one.id, one.kind, one.resource.name, one.state, one.step, one.submitted_at)
        for one in found
    ]
    show_table(("id", "kind", "resource", "state", "step", "submitted"), rows)


def wait_words(wait: WaitingBody) -> str:
    """`schema_lease of fe-2 since ..., at version 16 of 17, for t-9 (2.5 s old), 8 s at most`"""
    words = [f"{wait.kind} of {wait.holder} since {wait.since}"]
    if wait.need is not None:
        words.append(f"at version {'-' if wait.have is None else wait.have} of {wait.need}")
    if wait.transaction is not None:
        words.append(f"for {wait.transaction} ({(wait.transaction_age_ms or 0) / 1000:.1f} s old)")
    if wait.expires_in_s is not None:
        words.append(f"{wait.expires_in_s} s at most")
    return ", ".join(words)


def progress_words(progress: ProgressBody) -> str:
    """`420,000 of 1,000,000 rows, 35,000 a second, 17 s left`"""
    words = [f"{progress.done:,} of {progress.total:,} {progress.unit}"]
    if progress.rate_per_s:
        words.append(f"{progress.rate_per_s:,.0f} a second")
    if progress.eta_s is not None:
        words.append(f"{progress.eta_s} s left")
    return ", ".join(words)


def statement_words(statement: dict[str, object] | None) -> str | None:
    """`POST /v1/...`; of what the cluster did by itself: why."""
    if statement is None:
        return None
    if "method" in statement:
        return f"{statement['method']} {statement['path']}"
    return ", ".join(f"{name} {value}" for name, value in statement.items())


def show_findings(one: ProcedureBody) -> None:
    """The rows that are in the way of a change, or the faults that a check found."""
    lines = list(offending_rows(one.error.facts)) if one.error else []
    if one.kind == CHECK and one.result is not None:
        for fault in TableCheckBody.model_validate(one.result).faults:
            facts = fault.model_dump(mode="json", exclude={"rule"}).items()
            told = {name: fact for name, fact in facts if fact}
            lines.append(f"  {fault.rule}: {said(told)}")
    if lines:
        typer.echo("\n" + "\n".join(lines))


def facts_of(one: ProcedureBody) -> dict[str, object]:
    progress = one.progress
    return {
        "id": one.id,
        "kind": one.kind,
        "resource": f"{one.resource.type} {one.resource.name} ({one.resource.id})",
        "state": f"{one.state}{', stalled' if one.stalled else ''}",
        "step": f"{one.step}, attempt {one.attempt}",
        "progress": progress_words(progress) if progress else None,
        "waits for": [wait_words(wait) for wait in one.waiting_for] or None,
        "asked": [f"{c.action} by {c.by} at {c.at}" for c in one.controls] or None,
        "actions": one.allowed_actions or None,
        "statement": statement_words(one.statement),
        "submitted": f"{one.submitted_at} by {one.submitted_by}",
        "started": one.started_at,
        "finished": one.finished_at,
        "catalog version": one.catalog_version,
        "error": f"{one.error.code}: {one.error.detail}" if one.error else None,
        "children": one.children or None,
    }
