"""`metasrv region`: where each region is, and what its leader says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.cluster.copies_text import copies_text
from metasrv.cli.cluster.procedure_text import end_of, show_end
from metasrv.cli.complete import node_ids, region_ids, table_names
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import (
    WAIT_S,
    AsJson,
    AsOf,
    DryRun,
    IdempotencyKey,
    Url,
    WaitS,
    one_id,
    service,
)
from metasrv.cli.output import show_facts, show_json, show_table
from metasrv.cli.progress import procedure_bar

if TYPE_CHECKING:
    from metasrv.sdk.control.service import ChangeOptions
    from metasrv_base.wire.api.cluster import RegionBody

app = typer.Typer(no_args_is_help=True)
HEAD = ("region", "table", "number", "leader", "epoch", "state", "rows")
RegionArg = Annotated[
    str,
    typer.Argument(
        metavar="REGION",
        help="Id of the region, decimal.",
        callback=one_id,
        autocompletion=region_ids,
    ),
]
Reason = Annotated[str, typer.Option(help="A reason, stored with the procedure.", metavar="TEXT")]
BY_HAND = "asked for by hand"
WIDE_HEAD = ("bytes", "log bytes", "files", "address", "root", "copies")


@app.command("list")
def list_(  # noqa: PLR0913  # a parameter is an option of the command
    node: Annotated[
        str | None,
        typer.Option(
            help="Only regions that this node leads.", autocompletion=node_ids, metavar="NODE"
        ),
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
    region: RegionArg,
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


@app.command("switch-leader")
def switch_leader(  # noqa: PLR0913  # a parameter is an option of the command
    region: RegionArg,
    to: Annotated[
        str | None,
        typer.Option(
            help="The node that is to lead; by default, the copy in sync that suits best.",
            metavar="NODE",
            autocompletion=node_ids,
        ),
    ] = None,
    reason: Reason = BY_HAND,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Have another copy in sync lead REGION, while rows are written."""
    with service(metasrv, as_json) as client, procedure_bar("switch-leader") as tell:
        options = _at_once(dry_run, idempotency_key)
        started = client.regions.switch_leader(region, reason, to, **options)
        ended = end_of(client, started, wait, tell)
    show_end(ended, as_json)


@app.command("add-copy")
def add_copy(  # noqa: PLR0913  # a parameter is an option of the command
    region: RegionArg,
    node: Annotated[
        str | None,
        typer.Option(
            help="The node that gets the copy; by default, one that suits.",
            metavar="NODE",
            autocompletion=node_ids,
        ),
    ] = None,
    reason: Reason = BY_HAND,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Add a copy of REGION, which is sent all rows and then joins the set."""
    with service(metasrv, as_json) as client, procedure_bar("add-copy") as tell:
        options = _at_once(dry_run, idempotency_key)
        started = client.regions.add_copy(region, reason, node, **options)
        ended = end_of(client, started, wait, tell)
    show_end(ended, as_json)


@app.command("remove-copy")
def remove_copy(  # noqa: PLR0913  # a parameter is an option of the command
    region: RegionArg,
    node: Annotated[
        str,
        typer.Argument(metavar="NODE", help="Id of the node.", autocompletion=node_ids),
    ],
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also if fewer copies stay in sync than wanted; needs --reason.",
        ),
    ] = False,
    reason: Reason = BY_HAND,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Remove the copy of REGION on NODE, and delete its folder."""
    if force and reason == BY_HAND:
        raise typer.BadParameter("--force needs a --reason: rows may be left on fewer disks")
    with service(metasrv, as_json) as client, procedure_bar("remove-copy") as tell:
        options = _at_once(dry_run, idempotency_key)
        started = client.regions.remove_copy(region, node, reason, force, **options)
        ended = end_of(client, started, wait, tell)
    show_end(ended, as_json)


@app.command("move-copy")
def move_copy(  # noqa: PLR0913  # a parameter is an option of the command
    region: RegionArg,
    node: Annotated[
        str,
        typer.Argument(
            metavar="NODE", help="Id of the node that gives it.", autocompletion=node_ids
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            help="The node that gets the copy; by default, one that suits.",
            metavar="NODE",
            autocompletion=node_ids,
        ),
    ] = None,
    reason: Reason = BY_HAND,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Move the copy of REGION on NODE: another has all rows before it goes."""
    with service(metasrv, as_json) as client, procedure_bar("move-copy") as tell:
        options = _at_once(dry_run, idempotency_key)
        started = client.regions.move_copy(region, node, reason, to, **options)
        ended = end_of(client, started, wait, tell)
    show_end(ended, as_json)


def _at_once(dry_run: bool, idempotency_key: str) -> ChangeOptions:
    """Options of a change that is answered once it is accepted: `end_of` waits for its end."""
    return {"dry_run": dry_run, "idempotency_key": idempotency_key, "wait_s": 0}


def _row(region: RegionBody) -> tuple[object, ...]:
    rows = region.stat.rows if region.stat else None
    location = (region.region_id, region.table, region.number, region.leader)
    return (*location, region.epoch, region.state, rows)


def _wide_row(region: RegionBody) -> tuple[object, ...]:
    stat = region.stat
    sizes = (stat.bytes, stat.wal_bytes, stat.files) if stat else (None, None, None)
    return (*_row(region), *sizes, region.address, region.root, copies_text(region.copies))
