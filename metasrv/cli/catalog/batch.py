"""`metasrv batch`: the commands of a file, in one version of the catalog."""

import json
import sys
from json import JSONDecodeError
from pathlib import Path
from typing import Annotated, Any

import typer

from metasrv.cli.errors.json_places import file_places
from metasrv.cli.errors.places import FilePlace, Places, reason_of
from metasrv.cli.options import WAIT_S, AsJson, DryRun, IdempotencyKey, Url, WaitS, service
from metasrv.cli.output import counted, show
from metasrv.cli.progress import procedure_bar

STDIN = "-"
ROOT = "/commands"


def command(  # noqa: PLR0913  # a parameter is an option of the command
    file: Annotated[
        Path,
        typer.Argument(
            allow_dash=True,
            metavar="FILE",
            help="Commands as JSON: one on each line, a list of them, or an object with "
            "`commands`; `-` is stdin.",
        ),
    ],
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Carry out many commands in one version of the catalog: all of them, or none.

    A command is an object with one field: create_catalog, drop_catalog, create_schema,
    drop_schema, create_table, drop_table, rename_table, alter_table; create_placement,
    alter_placement, rename_placement, drop_placement; or the same four of a tablespace.
    """
    commands, places = read_commands(file)
    with service(metasrv, as_json, places) as client, procedure_bar("batch") as tell:
        body = client.batches.run(
            commands,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    summary = f"{sum(body.applied)} of {counted(len(body.applied), 'command')} changed something"
    version = "" if body.catalog_version is None else f", at version {body.catalog_version}"
    show(body, as_json, lambda: typer.echo(f"{summary}{version}"))


def read_commands(path: Path) -> tuple[list[Any], Places]:
    """The commands of a file, and the places of their values. Raises BadParameter."""
    try:
        text = sys.stdin.read() if str(path) == STDIN else path.read_text()
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"FILE {path}: {reason_of(error)}") from error
    try:
        document = json.loads(text)
    except JSONDecodeError as error:
        if error.msg != "Extra data":
            raise _faulty(path, error.lineno, error.colno, error) from error
        return _lines(path, text)
    if isinstance(document, dict) and "commands" in document:
        return _listed(path, document["commands"]), file_places(text, str(path))
    if isinstance(document, dict):
        return [document], file_places(text, str(path), f"{ROOT}/0")
    return _listed(path, document), file_places(text, str(path), ROOT)


def _lines(path: Path, text: str) -> tuple[list[Any], Places]:
    """One command on each line; empty lines are left out."""
    commands: list[Any] = []
    places: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                value = json.loads(line)
            except JSONDecodeError as error:
                raise _faulty(path, number, error.colno, error) from error
            places[f"{ROOT}/{len(commands)}"] = FilePlace(f"{path}:{number}")
            commands.append(value)
    return commands, places


def _listed(path: Path, document: object) -> list[Any]:
    if not isinstance(document, list):
        raise typer.BadParameter(f"FILE {path}: it must hold commands, each an object in JSON")
    return document


def _faulty(path: Path, line: int, column: int, error: Exception) -> typer.BadParameter:
    return typer.BadParameter(f"FILE {path}:{line}:{column}: {reason_of(error)}")
