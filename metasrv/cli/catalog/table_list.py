"""`metasrv table list`; wide, with what the leaders of its regions last reported."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import AsJson, AsOf, Url, service
from metasrv.cli.output import show_table

if TYPE_CHECKING:
    from metasrv_base.wire.api.cluster import RegionBody
    from metasrv_base.wire.api.tables import TableSummary

HEAD = ("id", "table", "version", "created", "dropped")


def list_tables(  # noqa: PLR0913  # a parameter is an option of the command
    schema: Annotated[
        str, typer.Argument(metavar="SCHEMA", help="`public` or `main.public`")
    ] = "main.public",
    prefix: Annotated[str, typer.Option(help="List only names with this prefix.")] = "",
    dropped: Annotated[bool, typer.Option("--dropped", help="List dropped tables too.")] = False,
    as_of: AsOf = None,
    metasrv: Url = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """List the tables of a schema, by name; wide, with their regions, rows and bytes."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        tables = client.tables.list(schema, prefix, dropped, as_of)
        regions = client.regions.list(as_of=as_of) if form is Form.WIDE else []
    show_form(
        form,
        tables,
        [table.name for table in tables],
        lambda: show_table(HEAD, map(_row, tables)),
        lambda: show_table((*HEAD, "regions", "rows", "bytes"), wide_rows(tables, regions)),
    )


def _row(table: "TableSummary") -> tuple[object, ...]:
    return table.id, table.name, table.version, table.created_at, table.dropped_at


def wide_rows(
    tables: Sequence["TableSummary"], regions: Sequence["RegionBody"]
) -> list[tuple[object, ...]]:
    """Rows and bytes are None while a leader has not reported its region."""
    by_table: dict[int, list[RegionBody]] = {}
    for region in regions:
        by_table.setdefault(region.table_id, []).append(region)
    rows: list[tuple[object, ...]] = []
    for table in tables:
        own = by_table.get(table.id, [])
        stats = [region.stat for region in own if region.stat is not None]
        is_known = own and len(stats) == len(own)
        row_count = sum(stat.rows for stat in stats) if is_known else None
        byte_count = sum(stat.bytes for stat in stats) if is_known else None
        rows.append((*_row(table), len(own), row_count, byte_count))
    return rows
