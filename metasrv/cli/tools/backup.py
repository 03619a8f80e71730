"""`metasrv backup`: every key of a cluster in one file, and whether a file can be trusted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.options import EXIT_REFUSED, AsJson, Url, service, told
from metasrv.cli.output import show_facts, show_json

if TYPE_CHECKING:
    from metasrv.check.rule import Violation

app = typer.Typer(no_args_is_help=True)
FileArg = Annotated[Path, typer.Argument(metavar="FILE", help="e.g. cluster.backup.gz")]


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
    """Judge a file without a service: 0 if it is whole and its keys agree, 1 if not."""
    from metasrv.check.check_backup import check_backup
    from metasrv.check.rule import Severity
    from metasrv.cli.tools.backup_files import facts_of, pieces

    try:
        with told(as_json), file.open("rb") as opened:
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


def _fault(violation: "Violation") -> dict[str, str]:
    return {
        "rule": violation.rule,
        "subject": violation.subject,
        "found": violation.found,
        "right": violation.right,
    }
