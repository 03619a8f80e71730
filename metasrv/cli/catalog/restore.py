"""`metasrv table restore`: the definition of an earlier version, by an alter."""

from typing import Annotated

import typer

from metasrv.cli.options import (
    WAIT_S,
    AsJson,
    DryRun,
    GraceS,
    IdempotencyKey,
    IfMatch,
    TableArg,
    Url,
    WaitS,
    etag_at,
    service,
)
from metasrv.cli.output import show
from metasrv.cli.progress import procedure_bar


def restore(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    version: Annotated[
        int,
        typer.Option("--to-version", min=0, metavar="VERSION", help="A version of the catalog."),
    ],
    grace: GraceS = 0,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    if_match: IfMatch = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Bring the definition back that a table had, and say what does not come back."""
    with service(metasrv, as_json) as client, procedure_bar("restore") as tell:
        table = client.tables.restore(
            name,
            version,
            grace,
            if_match=etag_at(client, name, if_match),
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    lost = [f"not restored: {each}" for each in table.not_restored or ()]
    text = "\n".join([f"restored {name} as of version {version}", *lost])
    show(table, as_json, lambda: typer.echo(text))
