"""`metasrv top`: leader, nodes, leases, and what runs and waits, live."""

import sys
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.options import Url, service
from metasrv_base.errors import MetaError

if TYPE_CHECKING:
    from metasrv.cli.cluster.top_view import Look
    from metasrv.sdk.sync import Client

PROCEDURES_MAX = 500  # asked for; the page shows the newest
PIPE_WIDTH = 1_000
"""Columns of a page that goes to a pipe, where no line is broken."""


def command(
    once: Annotated[bool, typer.Option("--once", help="Print once and exit.")] = False,
    every: Annotated[
        float, typer.Option(min=0.2, help="Seconds between updates.", metavar="SECONDS")
    ] = 2.0,
    metasrv: Url = None,
) -> None:
    """Show leader, nodes, leases and procedures until Ctrl-C; in a pipe, print them once."""
    from rich.console import Console
    from rich.live import Live

    from metasrv.cli.cluster.top_view import page

    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
    with service(metasrv, as_json=False) as client:
        if once or not sys.stdout.isatty():
            with console.capture() as capture:
                console.print(page(look(client), console.width))
            typer.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))
            return
        first = page(look(client), console.width)
        with suppress(KeyboardInterrupt), Live(first, console=console) as live:
            while not Event().wait(every):
                live.update(page(look(client), console.width))


def look(client: "Client") -> "Look":
    """Reads the facts that only a leader knows; while nobody leads, those that any server knows."""
    from metasrv.cli.cluster.top_view import Look
    from metasrv_base.wire.api.procedures import NO_ENDS

    cluster = client.cluster.get()
    if cluster.leader is None:
        return Look(cluster)
    try:
        return Look(
            cluster,
            client.cluster.maintenance(),
            client.cluster.pause(),
            client.nodes.list(),
            client.procedures.list(state=",".join(NO_ENDS), limit=PROCEDURES_MAX),
        )
    except MetaError:  # it led a moment ago
        return Look(cluster)
