"""`metasrv sql`: statements of SQL from a file, stdin or the command line, or at a prompt."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.errors.places import reason_of
from metasrv.cli.options import WAIT_S, AsJson, IdempotencyKey, MaxLag, Url, WaitS, service
from metasrv.cli.output import show
from metasrv.cli.progress import procedure_bar
from metasrv.cli.prompt.results import show_results
from metasrv.cli.prompt.shortcuts import NameScope

if TYPE_CHECKING:
    from metasrv.sdk.sql.run_sql import SqlOptions
    from metasrv.sdk.sync import Client
    from metasrv_base.wire.language.sql import StatementResult

STDIN = "-"


def command(  # noqa: PLR0913  # a parameter is an option of the command
    file: Annotated[
        Path | None,
        typer.Argument(
            allow_dash=True,
            metavar="FILE",
            help="Statements, with semicolons between them; `-` is stdin. Default: a prompt at a "
            "terminal, else stdin.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        str, typer.Option("--command", "-c", metavar="SQL", help="Statements, instead of a file.")
    ] = "",
    catalog: Annotated[
        str, typer.Option(metavar="NAME", help="The catalog of schemas that are named without one.")
    ] = "main",
    schema: Annotated[
        str, typer.Option(metavar="NAME", help="The schema of tables that are named without one.")
    ] = "public",
    max_lag: MaxLag = None,
    wait: WaitS = WAIT_S,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Carry out SQL statements in order. At a terminal, without a text, a prompt opens.

    Definitions: CREATE, ALTER, RENAME, DROP, TRUNCATE and UNDROP TABLE; CREATE, ALTER and DROP
    INDEX, SCHEMA, CATALOG, PLACEMENT and TABLESPACE; COMMENT ON. EXPLAIN shows the plan of one.
    BEGIN; ..; COMMIT makes one version of the catalog, or none.

    Reads of the catalog: SHOW, SHOW CREATE TABLE, DESCRIBE, and SELECT from information_schema.

    Rows, by primary key or index: INSERT, UPDATE, DELETE, SELECT; EXPLAIN shows the access path.

    The first statement that fails ends the command, after the results of those before it.
    docs/sql.md has the grammar.
    """
    if text and file is not None:
        raise typer.BadParameter("say either FILE or --command")
    if file is None and not text and not as_json and _is_terminal():
        if idempotency_key:
            raise typer.BadParameter("--idempotency-key is for one text: say FILE or --command")
        _prompt(metasrv, NameScope(catalog, schema), {"wait_s": wait, "max_lag": max_lag})
        return
    source = text or _read(file or Path(STDIN))
    options: SqlOptions = {
        "catalog": catalog,
        "schema": schema,
        "wait_s": wait,
        "idempotency_key": idempotency_key,
        "max_lag": max_lag,
    }
    with service(metasrv, as_json) as client:
        _carry_out(client, source, options, as_json)


def _carry_out(client: "Client", source: str, options: "SqlOptions", as_json: bool) -> None:
    """Shows the results also of the statements before one that fails."""
    results: list[StatementResult] = []
    is_done = False
    try:
        with procedure_bar("sql") as tell:
            options["on_progress"], options["on_result"] = tell, results.append
            client.sql(source, **options)
        is_done = True
    finally:
        if is_done or results:
            show(results, as_json, lambda: show_results(results))


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _prompt(url: str | None, session: NameScope, options: "SqlOptions") -> None:
    from metasrv.cli.prompt.prompt import run_prompt

    with service(url, as_json=False) as client:
        run_prompt(client, session, options)


def _read(path: Path) -> str:
    """Raises BadParameter."""
    try:
        return sys.stdin.read() if str(path) == STDIN else path.read_text()
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"FILE {path}: {reason_of(error)}") from error
