"""`metasrv backup`: every key of a cluster in one file, and a cluster made of such a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.options import EXIT_REFUSED, AsJson, Url, service, show_errors
from metasrv.cli.output import show_facts, show_json
from metasrv.cli.tools.store_options import (
    CaFile,
    CertFile,
    KeyFile,
    PasswordFile,
    ServerName,
    User,
)

if TYPE_CHECKING:
    from metasrv.check.rule import Violation
    from metasrv.cli.tools.restore_plan import RestorePlan
    from metasrv.restore.restore import RestoredCluster

app = typer.Typer(no_args_is_help=True)
FileArg = Annotated[
    Path, typer.Argument(metavar="FILE", help="Path of the file, e.g. cluster.backup.gz.")
]


@app.command("create")
def create(
    file: FileArg,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if it exists.")
    ] = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Write every key of the cluster, as of one moment, to a file. Changes go on meanwhile."""
    from metasrv.cli.tools.backup_files import download, facts_of

    if file.exists() and not overwrite:
        raise typer.BadParameter(f"FILE {file} exists; --overwrite replaces it")
    with service(metasrv, as_json) as client:
        header = download(client, file)
    shown = {"file": str(file), **facts_of(header), "bytes": file.stat().st_size}
    if as_json:
        show_json(shown)
    else:
        show_facts(shown)


@app.command("verify")
def verify(file: FileArg, as_json: AsJson = False) -> None:
    """Verify a backup without a service. Exit 0: it is complete and its keys agree. Exit 1: not."""
    from metasrv.check.check_backup import check_backup
    from metasrv.check.rule import Severity
    from metasrv.cli.tools.backup_files import facts_of, pieces

    try:
        with show_errors(as_json), file.open("rb") as opened:
            checked = check_backup(pieces(opened, f"verify {file}"))
    except OSError as error:
        raise typer.BadParameter(f"FILE {file}: {error.strerror or error}") from error
    broken = [fault for fault in checked.violations if fault.severity is Severity.VIOLATION]
    facts = {"file": str(file), **facts_of(checked.header), "tables": len(checked.facts.infos())}
    if as_json:
        show_json({**facts, "violations": [_fault(violation) for violation in broken]})
    else:
        for violation in broken:
            typer.echo(violation.line)
        show_facts({**facts, "violations": len(broken)})
    raise typer.Exit(EXIT_REFUSED if broken else 0)


@app.command("restore")
def restore(  # noqa: PLR0913  # a parameter is an option of the command
    file: FileArg,
    etcd: Annotated[
        str | None, typer.Option(help="Endpoints of etcd, separated by commas.", metavar="URL")
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            help="Prefix for the keys of the new cluster; it must have no keys.", metavar="PREFIX"
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show what would be restored, and write nothing.")
    ] = False,
    inventory: Annotated[
        list[str] | None,
        typer.Option(
            help="URL of a datanode of the old cluster, or a file with its inventory.",
            metavar="URL|FILE",
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="First delete what an interrupted restore has left."),
    ] = False,
    as_json: AsJson = False,
    ca_file: CaFile = None,
    cert_file: CertFile = None,
    key_file: KeyFile = None,
    server_name: ServerName = None,
    user: User = None,
    password_file: PasswordFile = None,
) -> None:
    """Restore a backup into etcd as a new cluster. Then start its servers, and adopt its nodes."""
    from metasrv.cli.tools.backup_restore import RestoreTarget, planned, restored

    access = {
        "ca_file": ca_file,
        "cert_file": cert_file,
        "key_file": key_file,
        "server_name": server_name,
        "user": user,
        "password_file": password_file,
    }
    if not plan and (etcd is None or prefix is None):
        raise typer.BadParameter("--etcd and --prefix say where the new cluster is to be")
    try:
        with show_errors(as_json):
            if plan:
                _show_plan(planned(file, inventory or ()), as_json)
            else:
                target = RestoreTarget(etcd or "", prefix or "", access)
                made = restored(file, target, inventory or (), again=again)
                _show_restored(made, as_json)
    except OSError as error:
        name = error.filename or file
        raise typer.BadParameter(f"FILE {name}: {error.strerror or error}") from error
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _show_plan(plan: "RestorePlan", as_json: bool) -> None:
    from metasrv.cli.tools.restore_plan import plan_document, show_plan

    if as_json:
        show_json(plan_document(plan))
    else:
        show_plan(plan)


def _show_restored(made: "RestoredCluster", as_json: bool) -> None:
    from metasrv.cli.tools.backup_restore import result_document, ways_on

    result = result_document(made)
    if as_json:
        show_json(result)
        return
    show_facts({**result, "nodes_to_adopt": ", ".join(made.facts.nodes)})
    for line in ways_on(made):
        typer.echo(line, err=True)


def _fault(violation: "Violation") -> dict[str, str]:
    return {
        "rule": violation.rule,
        "subject": violation.subject,
        "found": violation.found,
        "right": violation.right,
    }
