"""`metasrv count T`: live rows, and with `--checksum` one number that says whether rows differ."""

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer

from metasrv.cli.options import AsJson, TableArg, Url, service
from metasrv.cli.output import show_json
from metasrv.cli.progress import bar

LOOK_S = 0.2


def command(
    name: TableArg,
    checksum: Annotated[
        bool,
        typer.Option(
            "--checksum",
            help="Show a checksum too. Equal rows have equal checksums, whatever the regions.",
        ),
    ] = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Count the rows of a table, in all regions at the same time."""
    with (
        service(metasrv, as_json) as client,
        bar(f"count {name}") as shown,
        ThreadPoolExecutor(1) as worker,
    ):
        work = worker.submit(client.table(name).checksum)
        while not work.done():
            shown.wait(LOOK_S)
        totals = work.result()
    if as_json:
        regions = [region.model_dump() for region in totals.regions]
        show_json({"rows": totals.rows, "checksum": totals.checksum, "regions": regions})
    else:
        typer.echo(f"{totals.rows} {totals.checksum}" if checksum else totals.rows)
