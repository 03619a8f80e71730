"""`metasrv procedure`: what changes, how far it is, and what it waits for."""

from typing import Annotated

import typer

from base.wire.procedures import ProcedureBody
from metasrv.cli.options import WAIT_S, AsJson, Url, WaitS, service
from metasrv.cli.output import show_facts, show_json, show_table
from metasrv.cli.progress import procedure_bar

app = typer.Typer(no_args_is_help=True)
IdArg = Annotated[str, typer.Argument(metavar="ID")]


@app.command("list")
def list_(
    state: Annotated[str, typer.Option(help="As `running`; several with commas.")] = "",
    kind: Annotated[str, typer.Option(help="As `create_table`; several with commas.")] = "",
    limit: Annotated[int, typer.Option(min=1)] = 50,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Newest first."""
    with service(metasrv, as_json) as client:
        found = client.procedures.list(state, kind, limit)
    if as_json:
        show_json(found)
    else:
        show_procedures(found)


@app.command("get")
def get(id: IdArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """One procedure, with its timeline."""
    with service(metasrv, as_json) as client:
        found = client.procedures.get(id)
    if as_json:
        show_json(found)
        return
    show_facts(facts_of(found))
    if found.timeline:
        typer.echo()
        show_table(("step", "ended", "ms"), [(one.step, one.at, one.ms) for one in found.timeline])


@app.command("watch")
def watch(id: IdArg, wait: WaitS = WAIT_S, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Follow it to its end. Exit 0: it succeeded."""
    with service(metasrv, as_json) as client, procedure_bar(id) as tell:
        found = client.procedures.wait(id, wait, tell)
    if as_json:
        show_json(found)
    else:
        show_facts(facts_of(found))


@app.command("cancel")
def cancel(id: IdArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Ask for it to be undone; past its point of no return it is refused."""
    with service(metasrv, as_json) as client:
        found = client.procedures.cancel(id)
    if as_json:
        show_json(found)
    else:
        typer.echo(f"{found.id}: {found.state}")


def show_procedures(found: list[ProcedureBody]) -> None:
    rows = [
        (one.id, one.kind, one.resource.name, one.state, one.step, one.submitted_at)
        for one in found
    ]
    show_table(("id", "kind", "resource", "state", "step", "submitted"), rows)


def facts_of(one: ProcedureBody) -> dict[str, object]:
    progress = one.progress
    return {
        "id": one.id,
        "kind": one.kind,
        "resource": f"{one.resource.type} {one.resource.name} ({one.resource.id})",
        "state": f"{one.state}{', stalled' if one.stalled else ''}",
        "step": f"{one.step}, attempt {one.attempt}",
        "progress": f"{progress.done} of {progress.total} {progress.unit}" if progress else None,
        "waits for": [f"{w.kind} of {w.holder} since {w.since}" for w in one.waiting_for] or None,
        "actions": one.allowed_actions or None,
        "submitted": f"{one.submitted_at} by {one.submitted_by}",
        "started": one.started_at,
        "finished": one.finished_at,
        "catalog version": one.catalog_version,
        "error": f"{one.error.code}: {one.error.detail}" if one.error else None,
        "children": one.children or None,
    }
