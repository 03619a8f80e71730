"""Options of `metasrv table create` and `alter`."""

from pathlib import Path
from typing import Annotated

import typer

from metasrv.cli.catalog.column_text import TYPES
from metasrv.cli.complete import (
    column_names,
    column_values,
    constraint_names,
    dropped_table_names,
    new_columns,
    renamed_columns,
    schema_names,
    typed_columns,
)

Pairs = list[str]
Checks = Annotated[
    Pairs | None,
    typer.Option(
        help="A check of all rows, by name and condition, as 'paid=price > 0'. May be repeated.",
        metavar="NAME=CONDITION",
    ),
]
NewTypes = Annotated[
    Pairs | None,
    typer.Option(
        help="Change the type of a column; values are converted.",
        metavar="COLUMN:TYPE",
        autocompletion=typed_columns,
    ),
]
AddedColumns = Annotated[
    Pairs | None,
    typer.Option(
        help="A column; then ! for not null, then =DEFAULT. May be repeated.",
        metavar="NAME:TYPE",
        autocompletion=new_columns,
    ),
]
NewDefaults = Annotated[
    Pairs | None,
    typer.Option(
        help="Default of a column for new rows: JSON or a bare word.",
        metavar="COLUMN=DEFAULT",
        autocompletion=column_values,
    ),
]
NotNull = Annotated[
    Pairs | None,
    typer.Option(
        help="Forbid nulls in the column; every row is checked.",
        metavar="COLUMN",
        autocompletion=column_names,
    ),
]
NotValid = Annotated[
    bool, typer.Option("--not-valid", help="With --check: do not check existing rows.")
]
Validated = Annotated[
    Pairs | None,
    typer.Option(
        help="Check all rows against a constraint.",
        metavar="CONSTRAINT",
        autocompletion=constraint_names,
    ),
]
Name = Annotated[
    str | None,
    typer.Argument(metavar="TABLE", help="Name of the table; with --file, the file has the name."),
]
File = Annotated[
    Path | None,
    typer.Option(
        help="A file with a TableSpec as JSON; `-` is stdin.", allow_dash=True, metavar="FILE"
    ),
]
Column = Annotated[
    Pairs | None,
    typer.Option(
        help=f"A column; then ! for not null, then =DEFAULT. May be repeated. {TYPES}",
        metavar="NAME:TYPE",
        autocompletion=new_columns,
    ),
]
Key = Annotated[
    Pairs | None,
    typer.Option(
        "--key",
        "--primary-key",
        help="A column of the primary key, in order. May be repeated.",
        metavar="COLUMN",
    ),
]
Replicas = Annotated[
    int | None,
    typer.Option(
        min=1, help="Copies of each region; without it those of the placement.", metavar="N"
    ),
]
MinInSync = Annotated[
    int | None,
    typer.Option(
        "--min-in-sync",
        min=1,
        help="Copies in sync that writes need; without it a majority.",
        metavar="N",
    ),
]
NewReplicas = Annotated[
    str | None,
    typer.Option(
        "--replicas", help="Copies of each region; `default`: as its placement.", metavar="N"
    ),
]
NewMinInSync = Annotated[
    str | None,
    typer.Option(
        "--min-in-sync",
        help="Copies in sync that writes need; `default`: as its placement, or a majority.",
        metavar="N",
    ),
]
Reason = Annotated[
    str | None,
    typer.Option(help="Reason of a lower --min-in-sync; the log keeps it.", metavar="TEXT"),
]
Partitions = Annotated[
    int,
    typer.Option(
        min=1, help="Number of regions; rows are distributed by a hash of the key.", metavar="N"
    ),
]
Option = Annotated[
    Pairs | None,
    typer.Option(help="An option, e.g. app.owner=ada. May be repeated.", metavar="NAME=VALUE"),
]
Schema = Annotated[
    str,
    typer.Option(
        help="With --file: the schema of the table.", metavar="SCHEMA", autocompletion=schema_names
    ),
]
AlterFile = Annotated[
    Path | None,
    typer.Option(
        help="A file with a list of operations as JSON; `-` is stdin.",
        allow_dash=True,
        metavar="FILE",
    ),
]
AlterRenameColumn = Annotated[
    Pairs | None,
    typer.Option(
        help="Give a column a new name. May be repeated.",
        metavar="OLD:NEW",
        autocompletion=renamed_columns,
    ),
]
AlterDropColumn = Annotated[
    Pairs | None,
    typer.Option(
        help="Drop a column with its values. May be repeated.",
        metavar="COLUMN",
        autocompletion=column_names,
    ),
]
AlterDropNotNull = Annotated[
    Pairs | None,
    typer.Option(help="Allow nulls in the column.", metavar="COLUMN", autocompletion=column_names),
]
AlterDropConstraint = Annotated[
    Pairs | None,
    typer.Option(
        help="Drop a constraint. May be repeated.",
        metavar="CONSTRAINT",
        autocompletion=constraint_names,
    ),
]
AlterSetOption = Annotated[
    Pairs | None, typer.Option(help="Set an option. May be repeated.", metavar="NAME=VALUE")
]
AlterUnsetOption = Annotated[
    Pairs | None, typer.Option(help="Remove an option. May be repeated.", metavar="NAME")
]
DroppedTableArg = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="`t`, `public.t` or `main.public.t`",
        autocompletion=dropped_table_names,
    ),
]
UndropTableId = Annotated[
    int | None,
    typer.Option(
        help="Id of the table, needed if several dropped tables have the name.", metavar="ID"
    ),
]
UndropNewName = Annotated[
    str | None, typer.Option(help="Restore the table under this name.", metavar="NAME")
]
OF_FILE = ("column", "key", "partitions", "replicas", "min_in_sync", "option")
"""Options of `table create` that say what a --file says."""


def must_count(context: typer.Context, file: Path | None) -> None:
    """Raises BadParameter for given options of `table create` that would change nothing: those of a
    table that *file* describes, and the schema of one that the name gives."""
    idle = ("schema",) if file is None else OF_FILE
    flags = [
        param.opts[0]
        for param in context.command.params
        if param.name in idle and _is_given(context, param.name)
    ]
    if flags:
        advice = (
            "write SCHEMA.TABLE; it goes with --file" if file is None else "write it in the --file"
        )
        raise typer.BadParameter(f"{', '.join(flags)}: {advice}")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
