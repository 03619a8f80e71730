"""`metasrv region`: where each region is, and what its leader says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.complete import node_ids, table_names
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import AsJson, AsOf, Url, one_id, service
from metasrv.cli.output import show_facts, show_json, show_table

if TYPE_CHECKING:
    from metasrv_base.wire.api.cluster import RegionBody

app = typer.Typer(no_args_is_help=True)
HEAD = ("region", "table", "number", "leader", "epoch", "state", "rows")
WIDE_HEAD = ("bytes", "log bytes", "files", "address", "root")


@app.command("list")
def list_(  # noqa: PLR0913  # a parameter is an option of the command
    node: Annotated[
        str | None,
        typer.Option(help="Only regions that it leads.", autocompletion=node_ids, metavar="NODE"),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="Only regions of this table.", autocompletion=table_names, metavar="TABLE"
        ),
    ] = None,
    as_of: AsOf = None,
    metasrv: Url = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """List the regions of all tables."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        table_id = None if table is None else client.tables.get(table, as_of).id
        regions = client.regions.list(node, table_id, as_of)
        if node is not None and not regions:
            client.nodes.get(node)  # there is no such node, or it leads none
    show_form(
        form,
        regions,
        [region.region_id for region in regions],
        lambda: show_table(HEAD, map(_row, regions)),
        lambda: show_table((*HEAD, *WIDE_HEAD), map(_wide_row, regions)),
    )


@app.command("get")
def get(
    region: Annotated[
        str, typer.Argument(metavar="REGION", help="Id of the region, decimal.", callback=one_id)
    ],
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show one region."""
    with service(metasrv, as_json) as client:
        body = client.regions.get(region)
    if as_json:
        show_json(body)
        return
    facts = body.model_dump(mode="json", exclude={"stat"})
    stat = body.stat.model_dump(exclude={"region_id", "epoch", "state"}) if body.stat else {}
    show_facts({**facts, **stat})


def _row(region: RegionBody) -> tuple[object, ...]:
    rows = region.stat.rows if region.stat else None
    location = (region.region_id, region.table, region.number, region.leader)
    return (*location, region.epoch, region.state, rows)


def _wide_row(region: RegionBody) -> tuple[object, ...]:
    stat = region.stat
    sizes = (stat.bytes, stat.wal_bytes, stat.files) if stat else (None, None, None)
    return (*_row(region), *sizes, region.address, region.root)
