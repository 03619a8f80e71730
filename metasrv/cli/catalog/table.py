"""`metasrv table`: made, looked at, renamed, altered, emptied, dropped and brought back."""

from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.catalog.history import history
from metasrv.cli.catalog.purge import purge
from metasrv.cli.catalog.table_body import show_table_body
from metasrv.cli.catalog.table_list import list_tables
from metasrv.cli.catalog.table_options import (
    AddedColumns,
    AlterDropColumn,
    AlterDropConstraint,
    AlterDropNotNull,
    AlterFile,
    AlterRenameColumn,
    AlterSetOption,
    AlterUnsetOption,
    Checks,
    Column,
    DroppedTableArg,
    File,
    Key,
    MinInSync,
    Name,
    NewDefaults,
    NewMinInSync,
    NewReplicas,
    NewTypes,
    NotNull,
    NotValid,
    Option,
    Partitions,
    Reason,
    Replicas,
    Schema,
    UndropNewName,
    UndropTableId,
    Validated,
    must_count,
)
from metasrv.cli.catalog.table_words import (
    column_operations,
    constraint_operations,
    copies_operations,
    must_be_sure,
    named,
    option_operations,
    places_of,
    read_operations,
    read_spec,
    spec_of,
    typed_defaults,
)
from metasrv.cli.catalog.versions import restore, table_diff, table_versions
from metasrv.cli.cluster.copies_text import copies_text
from metasrv.cli.complete import schema_names
from metasrv.cli.errors.places import columns_and_key
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import (
    WAIT_S,
    AsJson,
    AsOf,
    DryRun,
    GraceS,
    IdempotencyKey,
    IfExists,
    IfMatch,
    IfNotExists,
    TableArg,
    Url,
    WaitS,
    Yes,
    confirm,
    etag_at,
    service,
    show_errors,
)
from metasrv.cli.output import counted, show, show_changed, show_dropped, show_table
from metasrv.cli.progress import procedure_bar
from metasrv.sdk.control.names import TableName

if TYPE_CHECKING:
    from metasrv_base.wire.api.tables import RouteBody, TableBody

app = typer.Typer(no_args_is_help=True)


@app.command("create")
def create(  # noqa: PLR0913  # a parameter is an option of the command
    context: typer.Context,
    name: Name = None,
    file: File = None,
    column: Column = None,
    key: Key = None,
    partitions: Partitions = 1,
    replicas: Replicas = None,
    min_in_sync: MinInSync = None,
    option: Option = None,
    schema: Schema = "main.public",
    if_not_exists: IfNotExists = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Create a table. It accepts rows once the command has returned."""
    if (name is None) == (file is None):
        raise typer.BadParameter("give either a TABLE with --column and --key, or --file")
    must_count(context, file)
    if file is not None:
        spec, places = read_spec(file)
    else:
        assert name is not None
        with show_errors(as_json):
            within = TableName.parse(name)
        schema = str(within.within)
        spec = spec_of(within.table, column or [], key or [], partitions, option or [])
        spec |= {"replicas": replicas, "min_in_sync": min_in_sync}
        places = columns_and_key(column or [], key or [], option or [])
    spec["if_not_exists"] = if_not_exists or spec.get("if_not_exists", False)
    with service(metasrv, as_json, places) as client, procedure_bar("create") as tell:
        body = client.tables.create(
            spec,
            schema,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    _done(body, as_json, "created")


@app.command("get")
def get(
    name: TableArg,
    as_of: AsOf = None,
    metasrv: Url = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show one table."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        body = client.tables.get(name, as_of)
    full_name = f"{body.catalog}.{body.schema_name}.{body.name}"
    show_form(form, body, [full_name], lambda: show_table_body(body))


app.command("list")(list_tables)


@app.command("rename")
def rename(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    new_name: Annotated[
        str, typer.Argument(help="The new name, without a schema.", metavar="NEW_NAME")
    ],
    new_schema: Annotated[
        str | None,
        typer.Option(
            help="Move the table to this schema of the catalog.",
            metavar="SCHEMA",
            autocompletion=schema_names,
        ),
    ] = None,
    exchange: Annotated[
        bool, typer.Option("--exchange", help="Exchange names with the table of that name.")
    ] = False,
    if_exists: IfExists = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    if_match: IfMatch = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Rename a table, or exchange the names of two tables."""
    places = {"/new_name": "NEW_NAME", "/new_schema": "--new-schema"}
    with service(metasrv, as_json, places) as client, procedure_bar("rename") as tell:
        body = client.tables.rename(
            name,
            new_name,
            new_schema,
            exchange=exchange,
            if_exists=if_exists,
            if_match=etag_at(client, name, if_match),
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    _done(body, as_json, "renamed", name)


@app.command("alter")
def alter(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    file: AlterFile = None,
    rename_column: AlterRenameColumn = None,
    add_column: AddedColumns = None,
    drop_column: AlterDropColumn = None,
    alter_type: NewTypes = None,
    set_default: NewDefaults = None,
    drop_not_null: AlterDropNotNull = None,
    set_not_null: NotNull = None,
    check: Checks = None,
    not_valid: NotValid = False,
    validate: Validated = None,
    drop_constraint: AlterDropConstraint = None,
    set_option: AlterSetOption = None,
    unset_option: AlterUnsetOption = None,
    replicas: NewReplicas = None,
    min_in_sync: NewMinInSync = None,
    reason: Reason = None,
    grace: GraceS = 0,
    if_exists: IfExists = False,
    yes: Yes = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    if_match: IfMatch = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Change a table, all or nothing, in the order file, columns, constraints, options,
    copies."""
    operations, of_file = read_operations(file) if file is not None else ([], {})
    from_file = len(operations)
    operations += column_operations(rename_column, add_column, drop_column, alter_type, set_default)
    operations += [{"op": "set_nullable", "name": n, "nullable": True} for n in drop_not_null or []]
    operations += constraint_operations(
        set_not_null or [], check or [], validate or [], drop_constraint or [], not_valid=not_valid
    )
    operations += option_operations(set_option or [], unset_option or [])
    operations += copies_operations(replicas, min_in_sync, reason)
    if not operations:
        raise typer.BadParameter("give at least one change, such as --add-column")
    places = {**of_file, **places_of(operations, from_file)}
    with service(metasrv, as_json, places) as client, procedure_bar("alter") as tell:
        table = named(client, name, if_exists) if set_default or drop_column else None
        if table is not None:
            operations = typed_defaults(operations, from_file, table)
            must_be_sure(table, drop_column or (), yes=yes or dry_run)
        body = client.tables.alter(
            name,
            operations,
            grace,
            if_exists=if_exists,
            if_match=etag_at(client, name, if_match),
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    _done(body, as_json, "altered", name)


@app.command("drop")
def drop(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    if_exists: IfExists = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    if_match: IfMatch = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Drop a table; `undrop` restores it within the drop retention."""
    with service(metasrv, as_json) as client, procedure_bar("drop") as tell:
        dropped = client.tables.drop(
            name,
            if_exists,
            if_match=etag_at(client, name, if_match),
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    show_dropped(name, dropped, as_json, f"; `metasrv table undrop {name}` brings it back")


@app.command("undrop")
def undrop(  # noqa: PLR0913  # a parameter is an option of the command
    name: DroppedTableArg,
    table_id: UndropTableId = None,
    new_name: UndropNewName = None,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Restore a dropped table with its rows."""
    with service(metasrv, as_json) as client, procedure_bar("undrop") as tell:
        body = client.tables.undrop(
            name,
            table_id,
            new_name,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    _done(body, as_json, "undropped")


app.command("purge")(purge)


@app.command("undrop-column")
def undrop_column(
    name: TableArg,
    column: Annotated[str, typer.Argument(help="Name of the column.", metavar="COLUMN")],
    wait: WaitS = WAIT_S,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Restore a column within the grace time of its drop, and undo the rest of that alter."""
    with service(metasrv, as_json) as client:
        procedure = client.tables.undrop_column(name, column, wait_s=wait)
    show(
        procedure, as_json, lambda: typer.echo(f"the drop of {column} of {name}: {procedure.state}")
    )


@app.command("truncate")
def truncate(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    yes: Yes = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    if_match: IfMatch = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Delete all rows of a table. They cannot be restored."""
    confirm(f"All rows of {name} go, for good.", yes=yes or dry_run)
    with service(metasrv, as_json) as client, procedure_bar("truncate") as tell:
        body = client.tables.truncate(
            name,
            if_match=etag_at(client, name, if_match),
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    _done(body, as_json, "truncated")


app.command("history")(history)
app.command("versions")(table_versions)
app.command("diff")(table_diff)
app.command("restore")(restore)


@app.command("route")
def route(name: TableArg, as_of: AsOf = None, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Show where the regions of a table are."""
    with service(metasrv, as_json) as client:
        body = client.tables.route(name, as_of)
    show(body, as_json, lambda: show_route(body))


def show_route(body: "RouteBody") -> None:
    """The column of copies is there if a region has more than its leader's."""
    rows = [
        (
            region.number,
            region.region_id,
            region.leader,
            region.epoch,
            region.state,
            region.address,
            region.borrows,
        )
        for region in body.regions
    ]
    head = ["number", "region", "leader", "epoch", "state", "address", "borrows"]
    if not any(region.copies for region in body.regions):
        show_table(head, rows)
        return
    copies = [copies_text(region.copies) for region in body.regions]
    show_table([*head, "copies"], [(*row, text) for row, text in zip(rows, copies, strict=True)])


def _done(body: "TableBody | None", as_json: bool, what: str, missed: str = "") -> None:
    """Prints the result of a change. *missed* is the table's name, printed if *body* is None: no
    such table."""

    def show_done(body: "TableBody") -> None:
        name = f"{body.catalog}.{body.schema_name}.{body.name}"
        regions = counted(len(body.regions), "region")
        typer.echo(f"{name} {what}: id {body.id}, {regions}, version {body.version}")

    show_changed(missed, body, as_json, show_done)
