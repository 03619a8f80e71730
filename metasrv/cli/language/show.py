"""`metasrv show`: views of the information schema, as a table, JSON or CSV."""

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metasrv.cli.columns import printable, table_lines
from metasrv.cli.complete import view_columns, view_conditions, view_names
from metasrv.cli.options import AsOf, Url, service
from metasrv.cli.output import show, show_json, show_table, terminal_width

if TYPE_CHECKING:
    from metasrv.sdk.control.views import ViewOptions, ViewRows
    from metasrv.sdk.sync import Client

TABLE_ROWS = 100
"""Rows of a table for people, unless --limit gives another number."""


class ViewFormat(StrEnum):
    TABLE = "table"
    CSV = "csv"
    NDJSON = "ndjson"


ViewArg = Annotated[
    str,
    typer.Argument(
        metavar="VIEW",
        help="Name of a view, e.g. `tables`. Default: list the views.",
        autocompletion=view_names,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Only rows that satisfy this condition, e.g. \"table_schema = 'public' and rows "
        '> 9".',
        autocompletion=view_conditions,
    ),
]
Columns = Annotated[
    str,
    typer.Option(
        metavar="COLUMN,...",
        help="Columns to show, separated by commas.",
        autocompletion=view_columns,
    ),
]
MostRows = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help=f"Most rows to show. Default: {TABLE_ROWS} for table, else all.",
    ),
]


def command(  # noqa: PLR0913  # a parameter is an option of the command
    view: ViewArg = "",
    where: Where = None,
    columns: Columns = "",
    describe: Annotated[
        bool, typer.Option("--describe", help="Show the columns of the view instead of its rows.")
    ] = False,
    as_of: AsOf = None,
    limit: MostRows = None,
    format: Annotated[ViewFormat, typer.Option(help="Output format.")] = ViewFormat.TABLE,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C; in a pipe, print once.")
    ] = False,
    every: Annotated[
        float, typer.Option(min=0.2, help="Seconds between updates.", metavar="SECONDS")
    ] = 2.0,
    metasrv: Url = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a list of objects as JSON.")
    ] = False,
) -> None:
    """Show a view of the information schema: what the cluster holds, as rows."""
    options: ViewOptions = {"where": where, "as_of": as_of, "limit": limit}
    if columns:
        options["columns"] = columns.split(",")
    with service(metasrv, as_json, {"columns": "--columns", "where": "--where"}) as client:
        if not view or describe:
            _show_views(client, view, as_json)
        elif as_json:
            show_json(client.show(view, **options).records())
        elif format is not ViewFormat.TABLE:
            _write(client, view, options, format)
        elif watch and sys.stdout.isatty():
            _watch(client, view, options, every)
        else:
            _show_rows(client, view, options)


def _show_views(client: "Client", name: str, as_json: bool) -> None:
    """The views; of one, its columns."""
    views = client.information_schema.views()
    if not name:
        rows = [(view.name, len(view.columns), view.meaning) for view in views]
        show(views, as_json, lambda: show_table(("view", "columns", "meaning"), rows))
        return
    described = next((view for view in views if view.name == name.lower()), None)
    if described is None:
        client.show(name, limit=1)  # says what is wrong, and what comes close
        return
    parts = [(column.name, column.type, column.meaning) for column in described.columns]
    show(described, as_json, lambda: show_table(("column", "type", "meaning"), parts))


def _show_rows(client: "Client", view: str, options: "ViewOptions") -> None:
    limit = options.get("limit")
    one_more: ViewOptions = {**options, "limit": (limit or TABLE_ROWS) + 1}
    shown = client.show(view, **one_more)
    most = limit or TABLE_ROWS
    show_table(shown.columns, shown.rows[:most])
    if limit is None and len(shown.rows) > most:
        typer.echo(f"there are more than these {most} rows: --limit N, --where, or --format csv")


def _watch(client: "Client", view: str, options: "ViewOptions", every_s: float) -> None:
    from rich.live import Live
    from rich.text import Text

    most = options.get("limit") or TABLE_ROWS
    limited: ViewOptions = {**options, "limit": most}

    def page() -> Text:
        return Text("\n".join(_lines(client.show(view, **limited))))

    with suppress(KeyboardInterrupt), Live(page(), auto_refresh=False) as live:
        while not Event().wait(every_s):
            live.update(page(), refresh=True)


def _lines(shown: "ViewRows") -> Iterator[str]:
    cells = [
        ["-" if value is None else printable(_text(value)) for value in row] for row in shown.rows
    ]
    yield from table_lines(shown.columns, cells, terminal_width())
    yield f"catalog version {shown.catalog_version}"


def _write(client: "Client", view: str, options: "ViewOptions", format: ViewFormat) -> None:
    """Rows as they come, page by page: a pipe may take as many as there are."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for number, page in enumerate(client.information_schema.pages(view, **options)):
        if format is ViewFormat.NDJSON:
            for row in page.rows:
                fields = dict(zip(page.columns, row, strict=True))
                print(json.dumps(fields, ensure_ascii=False))
            continue
        if not number:
            writer.writerow(page.columns)
        writer.writerows(
            ["" if value is None else _text(value) for value in row] for row in page.rows
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
