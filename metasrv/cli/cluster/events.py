"""`metasrv events`: what changes in the catalog, as it happens."""

import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.columns import printable
from metasrv.cli.complete import catalog_names, schema_names, table_names
from metasrv.cli.options import Url, service
from metasrv.cli.output import plain

if TYPE_CHECKING:
    from metasrv_base.wire.events.events import CatalogEvent, EventsReset

SHOWN = 20
"""Versions whose events are shown, if neither `--since` nor `--follow` is given."""
TYPE_WIDTH = 19  # of the longest type


def command(  # noqa: PLR0913  # a parameter is an option of the command
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Follow events until Ctrl-C, also when a server dies."),
    ] = False,
    since: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="VERSION",
            help="Only events after this version of the catalog. Default: from now on with "
            f"--follow, otherwise the newest {SHOWN} versions.",
        ),
    ] = None,
    catalog: Annotated[
        str | None, typer.Option(metavar="CATALOG", autocompletion=catalog_names)
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            help="Only events of this schema: its name, or CATALOG.SCHEMA.",
            metavar="SCHEMA",
            autocompletion=schema_names,
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="Only events of this table: its name, before or after a rename; or "
            "SCHEMA.TABLE, or CATALOG.SCHEMA.TABLE.",
            metavar="TABLE",
            autocompletion=table_names,
        ),
    ] = None,
    table_id: Annotated[int | None, typer.Option(min=0, metavar="ID")] = None,
    metasrv: Url = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on each line.")
    ] = False,
) -> None:
    """Show events of the catalog, oldest first, one on each line."""
    from metasrv.sdk.control.events import EventFilters

    with service(metasrv, as_json) as client, suppress(KeyboardInterrupt):
        until = None
        if not follow:
            until = client.cluster.get().catalog_version
            since = max(0, until - SHOWN) if since is None else since
        filters = EventFilters(catalog=catalog, schema=schema, table=table, table_id=table_id)
        with client.events(since, until, **filters) as events:
            for event in events:
                show_event(event, as_json)


def show_event(event: "CatalogEvent | EventsReset", as_json: bool) -> None:
    from metasrv.cli.cluster.event_words import words
    from metasrv_base.wire.events.events import EventsReset

    if as_json:
        print(json.dumps(plain(event), ensure_ascii=False), flush=True)
    elif isinstance(event, EventsReset):
        print(f"{event.version:>6}  reset: {REASONS[event.reason]}", file=sys.stderr, flush=True)
    else:
        by = "" if event.by is None else f"  by {event.by}"
        head = f"{event.version:>6}  {event.committed_at}  {event.type:<{TYPE_WIDTH}}"
        print(printable(f"{head}  {words(event)}{by}"), flush=True)


REASONS = {
    "expired": "events up to this version are not kept any more",
    "behind": "events up to this version were not read in time, and are not kept any more",
    "ahead": "the version that was asked for does not exist; events after this one follow",
    "unknown-id": "the version that was asked for is none; events after this one follow",
}
