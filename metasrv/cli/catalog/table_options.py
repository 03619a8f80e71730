"""Options of `metasrv table create` and `alter`."""

from pathlib import Path
from typing import Annotated

import typer

from metasrv.cli.catalog.column_text import TYPES

Pairs = list[str]
Checks = Annotated[
    Pairs | None,
    typer.Option(
        help="A condition of rows, as 'paid=price > 0'. Repeated.", metavar="NAME=CONDITION"
    ),
]
NewTypes = Annotated[
    Pairs | None, typer.Option(help="Change its type; values are converted.", metavar="COLUMN:TYPE")
]
AddedColumns = Annotated[
    Pairs | None,
    typer.Option(
        help="A column; then ! for not null, then =DEFAULT. Repeated.", metavar="NAME:TYPE"
    ),
]
NewDefaults = Annotated[
    Pairs | None,
    typer.Option(help="Its default for new rows: JSON or a bare word.", metavar="COLUMN=DEFAULT"),
]
NotNull = Annotated[
    Pairs | None,
    typer.Option(help="Forbid nulls in it; every row is checked.", metavar="COLUMN"),
]
NotValid = Annotated[
    bool, typer.Option("--not-valid", help="With --check: do not check existing rows.")
]
Validated = Annotated[
    Pairs | None,
    typer.Option(help="Check all rows against it.", metavar="CONSTRAINT"),
]
Name = Annotated[
    str | None,
    typer.Argument(metavar="TABLE", help="The name of the table; with --file it is in the file."),
]
File = Annotated[
    Path | None,
    typer.Option(help="A TableSpec as JSON; `-` is stdin.", allow_dash=True, metavar="FILE"),
]
Column = Annotated[
    Pairs | None,
    typer.Option(
        help=f"A column; then ! for not null, then =DEFAULT. Repeated. {TYPES}",
        metavar="NAME:TYPE",
    ),
]
Key = Annotated[
    Pairs | None,
    typer.Option(
        "--key",
        "--primary-key",
        help="A column of the primary key, in order. Repeated.",
        metavar="COLUMN",
    ),
]
Partitions = Annotated[
    int,
    typer.Option(
        min=1, help="Number of regions; rows are distributed by a hash of the key.", metavar="N"
    ),
]
Option = Annotated[
    Pairs | None,
    typer.Option(help="An option, e.g. app.owner=ada. Repeated.", metavar="NAME=VALUE"),
]
Schema = Annotated[
    str, typer.Option(help="With --file: the schema of the table.", metavar="SCHEMA")
]
AlterFile = Annotated[
    Path | None,
    typer.Option(
        help="A list of operations as JSON; `-` is stdin.", allow_dash=True, metavar="FILE"
    ),
]
AlterRenameColumn = Annotated[
    Pairs | None, typer.Option(help="Give a column a new name. Repeated.", metavar="OLD:NEW")
]
AlterDropColumn = Annotated[
    Pairs | None,
    typer.Option(help="Drop a column with its values. Repeated.", metavar="COLUMN"),
]
AlterDropNotNull = Annotated[
    Pairs | None, typer.Option(help="Allow nulls in it.", metavar="COLUMN")
]
AlterDropConstraint = Annotated[
    Pairs | None, typer.Option(help="Drop it. Repeated.", metavar="CONSTRAINT")
]
AlterSetOption = Annotated[
    Pairs | None, typer.Option(help="Set an option. Repeated.", metavar="NAME=VALUE")
]
AlterUnsetOption = Annotated[
    Pairs | None, typer.Option(help="Remove an option. Repeated.", metavar="NAME")
]
UndropTableId = Annotated[
    int | None,
    typer.Option(help="The id, if several dropped tables have the name.", metavar="ID"),
]
UndropNewName = Annotated[
    str | None, typer.Option(help="Bring the table back under this name.", metavar="NAME")
]
