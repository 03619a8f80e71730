"""`metasrv sql`: statements of SQL from a file, from stdin, or from the command line."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.errors.places import reason_of
from metasrv.cli.options import WAIT_S, AsJson, IdempotencyKey, Url, WaitS, service
from metasrv.cli.output import counted, show, show_table
from metasrv.cli.progress import procedure_bar

if TYPE_CHECKING:
    from metasrv_base.wire.language.sql import StatementResult

STDIN = "-"


def command(  # noqa: PLR0913  # a parameter is an option of the command
    file: Annotated[
        Path,
        typer.Argument(
            allow_dash=True,
            metavar="FILE",
            help="Statements, with semicolons between them; `-`, the default, is stdin.",
        ),
    ] = Path(STDIN),
    text: Annotated[
        str, typer.Option("--command", "-c", metavar="SQL", help="Statements, instead of a file.")
    ] = "",
    catalog: Annotated[
        str, typer.Option(metavar="NAME", help="Holds schemas that are named without a catalog.")
    ] = "main",
    schema: Annotated[
        str, typer.Option(metavar="NAME", help="Holds tables that are named without a schema.")
    ] = "public",
    wait: WaitS = WAIT_S,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Carry out statements of SQL, in order.

    Definitions: CREATE, ALTER, RENAME, DROP, TRUNCATE and UNDROP TABLE; CREATE, ALTER and DROP
    INDEX, SCHEMA, CATALOG, PLACEMENT and TABLESPACE; COMMENT ON. EXPLAIN shows the plan of one.
    BEGIN; ..; COMMIT makes one version of the catalog, or none.

    Reads of the catalog: SHOW, SHOW CREATE TABLE, DESCRIBE, and SELECT from information_schema.

    Rows, by primary key or index: INSERT, UPDATE, DELETE, SELECT; EXPLAIN shows the access path.

    The first statement that fails ends the command, after the results of those before it.
    docs/sql.md has the grammar.
    """
    if text and str(file) != STDIN:
        raise typer.BadParameter("say either FILE or --command")
    source = text or _read(file)
    results: list[StatementResult] = []
    is_done = False
    with service(metasrv, as_json) as client:
        try:
            with procedure_bar("sql") as tell:
                client.sql(
                    source,
                    catalog=catalog,
                    schema=schema,
                    wait_s=wait,
                    on_progress=tell,
                    on_result=results.append,
                    idempotency_key=idempotency_key,
                )
            is_done = True
        finally:
            if is_done or results:
                show(results, as_json, lambda: _show(results))


def _read(path: Path) -> str:
    """Raises BadParameter."""
    try:
        return sys.stdin.read() if str(path) == STDIN else path.read_text()
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"FILE {path}: {reason_of(error)}") from error


def _show(results: "list[StatementResult]") -> None:
    """Rows as a table, one result after the other; a line of all rows written together, and one of
    all changes."""
    from metasrv.cli.plan import show_plans

    for result in results:
        if result.columns == ("table", "statements"):
            typer.echo(f"{result.rows[0][1]};")
        elif result.columns:
            show_table(result.columns, result.rows)
            if result.is_cut:
                typer.echo(f"there are more than these {counted(len(result.rows), 'row')}")
        elif result.plan is not None:
            show_plans([result.plan], as_json=False)
    if any(result.rows_written is not None for result in results):
        written = sum(result.rows_written or 0 for result in results)
        typer.echo(f"{counted(written, 'row')} written")
    changes = [result for result in results if result.applied is not None]
    if changes:
        applied = [result for result in changes if result.applied]
        version = f", at version {applied[-1].catalog_version}" if applied else ""
        typer.echo(
            f"{len(applied)} of {counted(len(changes), 'change')} changed something{version}"
        )
