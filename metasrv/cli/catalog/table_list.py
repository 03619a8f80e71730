"""`metasrv table list`; wide, with what the leaders of its regions last reported."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metasrv.cli.complete import schema_names
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import AsJson, AsOf, Url, asked_service, service
from metasrv.cli.output import plain, show_table
from metasrv.cli.plain_read import listed
from metasrv.sdk.control.names import SchemaName
from metasrv_base.errors import Refused

if TYPE_CHECKING:
    from metasrv_base.wire.api.cluster import RegionBody

Document = dict[str, Any]
"""A TableSummary as JSON has it."""
HEAD = ("id", "table", "version", "created", "dropped")


def list_tables(  # noqa: PLR0913  # a parameter is an option of the command
    schema: Annotated[
        str,
        typer.Argument(
            metavar="SCHEMA", help="`public` or `main.public`", autocompletion=schema_names
        ),
    ] = "main.public",
    prefix: Annotated[
        str, typer.Option(help="List only names with this prefix.", metavar="PREFIX")
    ] = "",
    dropped: Annotated[bool, typer.Option("--dropped", help="List dropped tables too.")] = False,
    as_of: AsOf = None,
    metasrv: Url = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """List the tables of a schema, by name; wide, with their regions, rows and bytes."""
    form = form_of(output, as_json)
    regions: list[RegionBody] = []
    tables = None
    if as_of is None and form is not Form.WIDE:
        tables = _listed_plainly(metasrv, schema, prefix, dropped)
    if tables is None:
        with service(metasrv, form is Form.JSON) as client:
            tables = plain(client.tables.list(schema, prefix, dropped, as_of))
            regions = client.regions.list(as_of=as_of) if form is Form.WIDE else []
    show_form(
        form,
        tables,
        [table["name"] for table in tables],
        lambda: show_table(HEAD, map(_row, tables)),
        lambda: show_table((*HEAD, "regions", "rows", "bytes"), wide_rows(tables, regions)),
    )


def _listed_plainly(
    url: str | None, schema: str, prefix: str, dropped: bool
) -> list[Document] | None:
    """Lists tables without the SDK; returns None if the name is invalid, which the SDK then
    explains."""
    params = {"prefix": prefix} if prefix else {}
    if dropped:
        params["include_dropped"] = "true"
    try:
        path = f"{SchemaName.parse(schema).path}/tables"
    except Refused:
        return None
    asked = asked_service(url)
    return listed(asked.url, path, "tables", params, asked.token)


def _row(table: Document) -> tuple[object, ...]:
    return tuple(table.get(name) for name in ("id", "name", "version", "created_at", "dropped_at"))


def wide_rows(
    tables: Sequence[Document], regions: Sequence["RegionBody"]
) -> list[tuple[object, ...]]:
    """Rows and bytes are None while a leader has not reported its region."""
    by_table: dict[int, list[RegionBody]] = {}
    for region in regions:
        by_table.setdefault(region.table_id, []).append(region)
    rows: list[tuple[object, ...]] = []
    for table in tables:
        own = by_table.get(table["id"], [])
        stats = [region.stat for region in own if region.stat is not None]
        is_known = own and len(stats) == len(own)
        row_count = sum(stat.rows for stat in stats) if is_known else None
        byte_count = sum(stat.bytes for stat in stats) if is_known else None
        rows.append((*_row(table), len(own), row_count, byte_count))
    return rows
