"""A playground as a person at a terminal reads it: addresses, processes, what to do next."""

from collections.abc import Iterator
from pathlib import Path

import typer

from metasrv.cli.output import show_facts, show_json, show_table
from metasrv.playground.background import StoppedPlayground
from metasrv.playground.document import PlaygroundBody
from metasrv.playground.status import PlaygroundStatus
from metasrv_base.errors import Unavailable

STATES = {
    "running": "running",
    "changing": "starting or stopping",
    "killed": "not running; it was killed, and its record is of no use any more",
    "stopped": "not running",
}
KEPT = "its files are kept; `metasrv playground start` takes them up again"


def show_serving(document: PlaygroundBody, folder: Path) -> None:
    """Prints where each program serves."""
    facts: dict[str, object] = {"metasrv": document.metasrv, "etcd": document.etcd}
    facts.update({id: node.url for id, node in document.datanodes.items()})
    facts.update({id: frontend.url for id, frontend in document.frontends.items()})
    facts["data"] = str(folder)
    show_facts(facts)


def show_started(document: PlaygroundBody, folder: Path, *, is_found: bool) -> None:
    """Prints how to use a playground in the background, and how to stop it. *is_found*: commands
    in this folder find it without its URL."""
    where = "" if is_found else f" --data-dir {folder}"
    if not is_found:
        typer.echo(f"\nexport METASRV_URL={','.join(document.metasrv)}", nl=False)
    typer.echo(
        "\nmetasrv node list           # to use it\n"
        f"metasrv playground status{where}\n"
        f"metasrv playground stop{where}     # to stop it"
    )


def not_started(log: Path, error: Unavailable) -> Iterator[str]:
    """Lines for a start that failed: the end of what it said itself."""
    yield f"error: the playground did not start: {error.facts.get('reason')}"
    lines = error.facts.get("told")
    yield from (f"  {line}" for line in (lines if isinstance(lines, list) else []))
    yield f"  its whole log: {log}"


def show_status(status: PlaygroundStatus) -> None:
    show_facts(
        {
            "playground": STATES[status.state],
            "folder": status.folder,
            "pid": status.pid,
            "since": status.since,
        }
    )
    if status.programs:
        rows = [
            (program.id, program.state, program.pid, program.url) for program in status.programs
        ]
        typer.echo("")
        show_table(("program", "state", "pid", "address"), rows)
    if status.state != "running":
        return
    for program in status.programs:
        if program.state != "running":
            log = Path(status.folder) / "logs" / f"{program.id}.log"
            typer.echo(f"\n{program.id} does not run ({program.state}); its log: {log}", nl=False)
    if not status.is_healthy:
        typer.echo("\nto have all of them again: metasrv playground stop, then start")


def show_stopped(folder: Path, stopped: StoppedPlayground | None, as_json: bool) -> None:
    """Prints the playground that was stopped; *stopped* is None if none ran."""
    if as_json:
        programs = {} if stopped is None else {"playground": stopped.pid, **dict(stopped.programs)}
        killed = [] if stopped is None else list(stopped.killed)
        show_json({"folder": str(folder), "stopped": programs, "killed": killed})
        return
    if stopped is None:
        typer.echo(f"no playground runs in {folder}")
        return
    typer.echo(f"playground (pid {stopped.pid}) has ended, and with it")
    for id, pid in stopped.programs:
        typer.echo(f"  {id} (pid {pid}){' by SIGKILL' if id in stopped.killed else ''}")
    typer.echo(KEPT)
