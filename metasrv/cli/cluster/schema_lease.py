"""`metasrv schema-lease`: who computes statements from the catalog, and at which version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.complete import table_names
from metasrv.cli.options import AsJson, Url, service
from metasrv.cli.output import show_json, show_table

if TYPE_CHECKING:
    from metasrv_base.wire.frontend.holders import PinBody

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps the name of its one command."""


@app.command("list")
def list_(
    table: Annotated[
        str | None,
        typer.Option(
            help="List only frontends that use this table: CATALOG.SCHEMA.TABLE",
            metavar="TABLE",
            autocompletion=table_names,
        ),
    ] = None,
    older_than: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="List only frontends that may use a schema version below this one.",
            metavar="VERSION",
        ),
    ] = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """List frontends with leases; with both options, those that block a change of the table."""
    with service(metasrv, as_json) as client:
        table_id = None if table is None else client.tables.get(table).id
        leases = client.nodes.schema_leases(table_id, older_than)
    if as_json:
        show_json(leases)
        return
    rows = [
        (
            lease.holder_id,
            lease.address,
            lease.have,
            f"{lease.lease_left_ms / 1000:.1f} s",
            [_pin(pin) for pin in lease.pinned],
        )
        for lease in leases
    ]
    show_table(("holder", "address", "version", "lease", "uses"), rows)


def _pin(pin: PinBody) -> str:
    """`main.public.flights at 16 by 018f3c0a (2.5 s)`"""
    name = pin.table or str(pin.table_id)
    return f"{name} at {pin.schema_version} by {pin.transaction} ({pin.age_ms / 1000:.1f} s)"
