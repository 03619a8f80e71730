"""`metasrv procedure`: what changes, how far it is, and what it waits for."""

from __future__ import annotations

import re
from getpass import getuser
from typing import TYPE_CHECKING, Annotated, cast

import typer

from metasrv.cli.cluster.procedure_text import (
    KINDS,
    STATES,
    TRANSITIONS,
    facts_of,
    show_findings,
    show_procedures,
    transition_row,
)
from metasrv.cli.complete import procedure_ids, words_of
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.near import must_be_among
from metasrv.cli.options import LOOK_S, WAIT_S, AsJson, Limit, Url, WaitS, one_id, service
from metasrv.cli.output import show, show_facts, show_json, show_table
from metasrv.cli.progress import ID_LENGTH, procedure_bar

if TYPE_CHECKING:
    from metasrv.sdk.control.procedure import ProcedureFilters
    from metasrv.sdk.sync import Client

app = typer.Typer(no_args_is_help=True)
IdArg = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Id of a procedure, or its first characters, as `list` shows them.",
        autocompletion=procedure_ids,
        callback=one_id,
    ),
]
Reason = Annotated[
    str | None,
    typer.Option(help="A reason, stored in the history of the procedure.", metavar="TEXT"),
]
By = Annotated[
    str, typer.Option(help="Your name, stored in the history of the procedure.", metavar="NAME")
]
States = Annotated[
    str,
    typer.Option(
        help="States, e.g. `running`; separated by commas.",
        metavar="STATE",
        autocompletion=words_of(STATES),
    ),
]
Kinds = Annotated[
    str,
    typer.Option(
        help="Kinds, e.g. `create_table`; separated by commas.",
        metavar="KIND",
        autocompletion=words_of(KINDS),
    ),
]
USER = getuser()
SEARCHED_MAX = 1_000
"""Procedures among which the beginning of an id is looked up, newest first."""
SHOWN_MAX = 5
PERCENT_MAX = 95
"""The bound of metasrv_base/wire/api/control.py."""
_BEGINNING = re.compile(r"[0-9a-f]{4}[0-9a-f-]*")


@app.command("list")
def list_(  # noqa: PLR0913  # a parameter is an option of the command
    state: States = "",
    kind: Kinds = "",
    resource: Annotated[
        str,
        typer.Option(help="A resource, e.g. `main.public.t` or `table:1024`.", metavar="RESOURCE"),
    ] = "",
    parent: Annotated[
        str,
        typer.Option(
            help="Id of the parent procedure.", metavar="ID", autocompletion=procedure_ids
        ),
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            help="Submitted at or after this time, e.g. 2013-01-31T23:59:59Z.", metavar="TIME"
        ),
    ] = "",
    until: Annotated[str, typer.Option(help="Submitted before this time.", metavar="TIME")] = "",
    stalled: Annotated[
        bool | None,
        typer.Option(
            "--stalled/--moving", help="Only procedures that are stalled, or only others."
        ),
    ] = None,
    limit: Limit = 50,
    metasrv: Url = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """List procedures, newest first."""
    for state_name in filter(None, state.split(",")):
        must_be_among(state_name, STATES, "--state", "state")
    for kind_name in filter(None, kind.split(",")):
        must_be_among(kind_name, KINDS, "--kind", "kind")
    filter_options = {
        "state": state,
        "kind": kind,
        "resource": resource,
        "parent": parent,
        "since": since,
        "until": until,
        "stalled": stalled,
    }
    filters = {name: value for name, value in filter_options.items() if value not in ("", None)}
    only = cast("ProcedureFilters", filters)
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        procedures = client.procedures.list(limit, **only)
    show_form(
        form,
        procedures,
        [procedure.id for procedure in procedures],
        lambda: show_procedures(procedures),
        lambda: show_procedures(procedures, is_wide=True),
    )


@app.command("get")
def get(id: IdArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Show one procedure, with its timeline.

    docs/operate/procedure-stalled.md says what each reason to wait means, and what ends it.
    """
    with service(metasrv, as_json) as client:
        procedure = client.procedures.get(full_id(client, id))
    if as_json:
        show_json(procedure)
        return
    show_facts(facts_of(procedure))
    if procedure.transitions:
        typer.echo()
        show_table(TRANSITIONS, map(transition_row, procedure.transitions))
    if procedure.timeline:
        typer.echo()
        show_table(
            ("step", "ended", "ms"),
            [(entry.step, entry.at, entry.ms) for entry in procedure.timeline],
        )
    show_findings(procedure)


@app.command("watch")
def watch(id: IdArg, wait: WaitS = WAIT_S, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Follow a procedure to its end. Exit 0: it succeeded."""
    # It started nothing, so its exit code says whether the procedure is over.
    with service(metasrv, as_json) as client, procedure_bar(id) as tell:
        procedure = client.procedures.wait(full_id(client, id), max(wait, LOOK_S), tell)
    if as_json:
        show_json(procedure)
        return
    show_facts(facts_of(procedure))
    show_findings(procedure)


def full_id(client: Client, text: str) -> str:
    """Returns the id that begins with *text*. Raises BadParameter if several do."""
    if len(text) >= ID_LENGTH or _BEGINNING.fullmatch(text) is None:
        return text
    ids = [
        procedure.id
        for procedure in client.procedures.list(SEARCHED_MAX)
        if procedure.id.startswith(text)
    ]
    if len(ids) > 1:
        several = ", ".join(ids[:SHOWN_MAX]) + (", ..." if len(ids) > SHOWN_MAX else "")
        raise typer.BadParameter(f"{text} is the beginning of several ids: {several}")
    return ids[0] if ids else text


def _control(
    id: str,
    action: str,
    options: tuple[str, str | None],
    url: str | None,
    as_json: bool,
) -> None:
    by, reason = options
    with service(url, as_json) as client:
        procedure = client.procedures.control(full_id(client, id), action, by, reason)
    show(procedure, as_json, lambda: typer.echo(f"{procedure.id}: {procedure.state}"))


@app.command("cancel")
def cancel(
    id: IdArg, reason: Reason = None, by: By = USER, metasrv: Url = None, as_json: AsJson = False
) -> None:
    """Cancel a procedure and undo it. The service refuses this past the point of no return."""
    _control(id, "cancel", (by, reason), metasrv, as_json)


@app.command("pause")
def pause(
    id: IdArg, reason: Reason = None, by: By = USER, metasrv: Url = None, as_json: AsJson = False
) -> None:
    """Pause a procedure. It keeps its locks, and its deadline moves."""
    _control(id, "pause", (by, reason), metasrv, as_json)


@app.command("resume")
def resume(
    id: IdArg, reason: Reason = None, by: By = USER, metasrv: Url = None, as_json: AsJson = False
) -> None:
    """Resume a paused procedure."""
    _control(id, "resume", (by, reason), metasrv, as_json)


@app.command("retry")
def retry(
    id: IdArg, reason: Reason = None, by: By = USER, metasrv: Url = None, as_json: AsJson = False
) -> None:
    """Retry a procedure now, or the undo of a poisoned one."""
    _control(id, "retry", (by, reason), metasrv, as_json)


@app.command("throttle")
def throttle(  # noqa: PLR0913  # a parameter is an option of the command
    id: IdArg,
    percent: Annotated[
        int,
        typer.Argument(
            min=0,
            max=PERCENT_MAX,
            help="Percentage of the time for which a step rests; 0: no rest.",
            metavar="PERCENT",
        ),
    ] = 0,
    rows_per_s: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rows per second that a reorg reads. Default: the reorg adapts its rate.",
            metavar="N",
        ),
    ] = None,
    by: By = USER,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Slow down the steps that move data, or limit the rows that a reorg reads."""
    with service(metasrv, as_json) as client:
        procedure = client.procedures.throttle(full_id(client, id), percent, rows_per_s, by)
    show(procedure, as_json, lambda: typer.echo(f"{procedure.id}: {procedure.state}"))


@app.command("locks")
def locks(metasrv: Url = None, as_json: AsJson = False) -> None:
    """List locks, with their holders and the procedures that wait for them."""
    with service(metasrv, as_json) as client:
        all_locks = client.procedures.locks()
    if as_json:
        show_json(all_locks)
        return
    rows = [
        (lock.key, claim.mode, held, claim.kind, claim.procedure_id)
        for lock in all_locks
        for held, places in (("holds", lock.holders), ("waits", lock.queue))
        for claim in places
    ]
    show_table(("key", "mode", "", "kind", "procedure"), rows)


@app.command("poisons")
def poisons(metasrv: Url = None, as_json: AsJson = False) -> None:
    """List poisoned resources, which a failed change left half changed."""
    with service(metasrv, as_json) as client:
        poisoned = client.procedures.poisons()
    if as_json:
        show_json(poisoned)
        return
    rows = [
        (
            f"{poison.resource.type}:{poison.resource.id}",
            poison.resource.name,
            poison.kind,
            poison.error.detail,
        )
        for poison in poisoned
    ]
    show_table(("resource", "name", "left by", "error"), rows)


@app.command("clear")
def clear(
    resource: Annotated[
        str,
        typer.Argument(
            help="A resource as `poisons` shows it, e.g. `table:1024`.", metavar="RESOURCE"
        ),
    ],
    reason: Annotated[str, typer.Option(help="A description of the repair.", metavar="TEXT")],
    by: By = USER,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Clear a poison after the undo was finished by hand."""
    with service(metasrv, as_json) as client:
        procedure = client.procedures.clear_poison(resource, reason, by)
    show(procedure, as_json, lambda: typer.echo(f"{procedure.id}: {procedure.state}"))
