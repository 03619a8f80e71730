"""`metasrv table purge`: a dropped table is deleted for good, before its date."""

from typing import Annotated

import typer

from metasrv.cli.complete import dropped_table_names
from metasrv.cli.options import WAIT_S, AsJson, DryRun, IdempotencyKey, Url, WaitS, service
from metasrv.cli.output import show
from metasrv.cli.progress import procedure_bar


def purge(  # noqa: PLR0913  # a parameter is an option of the command
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="The name or the id of a dropped table.",
            autocompletion=dropped_table_names,
        ),
    ],
    reason: Annotated[
        str, typer.Option(help="A reason, stored with the procedure.", metavar="TEXT")
    ],
    table_id: Annotated[
        int | None,
        typer.Option(
            help="Id of the table, needed if several dropped tables have the name.", metavar="ID"
        ),
    ] = None,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Delete a dropped table for good, with its files: `undrop` cannot bring it back."""
    name = None if table.isdecimal() else table
    number = int(table) if table.isdecimal() else table_id
    with service(metasrv, as_json) as client, procedure_bar("purge") as tell:
        client.tables.purge(
            reason,
            name,
            number,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    show({"purged": table}, as_json, lambda: typer.echo(f"{table} is purged"))
