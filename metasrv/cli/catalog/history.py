"""`metasrv table history`: the procedures that changed a table."""

from typing import Annotated

import typer

from metasrv.cli.cluster.procedure_text import show_procedures
from metasrv.cli.complete import table_names
from metasrv.cli.options import AsJson, Url, service
from metasrv.cli.output import show


def history(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="Name of a table; or an id, also of a dropped table.",
            autocompletion=table_names,
        ),
    ],
    limit: Annotated[int, typer.Option(min=1, metavar="N")] = 50,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the procedures that changed a table, newest first, also under earlier names."""
    with service(metasrv, as_json) as client:
        table_id = int(name) if name.isdecimal() else client.tables.get(name).id
        procedures = client.procedures.list(limit, resource=f"table:{table_id}")
    show(procedures, as_json, lambda: show_procedures(procedures))
