"""`metasrv table versions`, `diff`, `restore`; `metasrv catalog versions`: the history."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.complete import catalog_names, schema_names
from metasrv.cli.options import (
    WAIT_S,
    AsJson,
    DryRun,
    GraceS,
    IdempotencyKey,
    IfMatch,
    Limit,
    TableArg,
    Url,
    WaitS,
    etag_at,
    service,
)
from metasrv.cli.output import show, show_table
from metasrv.cli.progress import procedure_bar

if TYPE_CHECKING:
    from metasrv_base.wire.api.versions import CatalogChange, SchemaVersionBody

SETS_HEAD = ("version", "schema version", "time", "columns")
HEAD = ("version", "time", "by", "change")
Transitions = Annotated[
    bool, typer.Option("--transitions", help="Print a line for each version, not for each request.")
]


def table_versions(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    limit: Limit = 50,
    transitions: Transitions = False,
    columns: Annotated[
        bool, typer.Option("--columns", help="List the sets of columns that the table had.")
    ] = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """List changes of a table, newest first, also those under earlier names."""
    with service(metasrv, as_json) as client:
        if columns:
            sets = client.tables.schema_versions(name)
            show(sets, as_json, lambda: show_table(SETS_HEAD, map(_set_row, sets)))
            return
        changes = client.tables.versions(name, limit, transitions)
    show(changes, as_json, lambda: show_changes(changes))


def _set_row(columns_set: "SchemaVersionBody") -> tuple[int, int, str, str]:
    columns = ", ".join(f"{each.name} {each.type}" for each in columns_set.columns)
    version = columns_set.catalog_version
    return version, columns_set.schema_version, columns_set.committed_at, columns


def table_diff(
    name: TableArg,
    before: Annotated[int, typer.Option("--from", min=0, metavar="VERSION")],
    after: Annotated[
        int | None, typer.Option("--to", min=0, metavar="VERSION", help="Default: now.")
    ] = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show how a table differs between two versions of the catalog."""
    with service(metasrv, as_json) as client:
        diff = client.tables.diff(name, before, after)
    text = "\n".join(diff.text) or "no difference"
    show(diff, as_json, lambda: typer.echo(text))


def catalog_versions(  # noqa: PLR0913  # a parameter is an option of the command
    operation: Annotated[
        str | None,
        typer.Option(help="List only changes of this kind, e.g. add_column.", metavar="OPERATION"),
    ] = None,
    catalog: Annotated[
        str | None, typer.Option(metavar="CATALOG", autocompletion=catalog_names)
    ] = None,
    schema: Annotated[
        str | None, typer.Option(metavar="SCHEMA", autocompletion=schema_names)
    ] = None,
    table_id: Annotated[int | None, typer.Option(min=0, metavar="ID")] = None,
    by: Annotated[
        str | None, typer.Option(help="List only changes of this principal.", metavar="PRINCIPAL")
    ] = None,
    limit: Limit = 50,
    transitions: Transitions = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """List changes of the catalogs, newest first, a line for each request."""
    with service(metasrv, as_json) as client:
        changes = client.catalogs.versions(
            limit,
            transitions,
            operation=operation,
            catalog=catalog,
            schema=schema,
            table_id=table_id,
            by=by,
        )
    show(changes, as_json, lambda: show_changes(changes))


def show_changes(changes: "Sequence[CatalogChange]") -> None:
    rows = [
        (change.version, change.committed_at, change.by or "", _words(change)) for change in changes
    ]
    show_table(HEAD, rows)


def _words(change: "CatalogChange") -> str:
    states = (f"{each.name} {each.before} to {each.after}" for each in change.transitions)
    return "; ".join([change.text, *states])


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
    """Restore an earlier definition of a table, and show what cannot be restored."""
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
