"""Results of statements of SQL, for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from metasrv.cli.output import counted, show_facts, show_table

if TYPE_CHECKING:
    from metasrv_base.wire.language.sql import StatementResult


def show_results(results: "Sequence[StatementResult]", is_expanded: bool = False) -> None:
    """Rows as a table, one result after the other with an empty line between; a line of all rows
    written together, and one of all changes. *is_expanded*: a line for each value of a row."""
    from metasrv.cli.plan import show_plans

    shown = [result for result in results if result.columns or result.plan is not None]
    for number, result in enumerate(shown):
        if number:
            typer.echo()
        if result.columns == ("table", "statements"):
            typer.echo(f"{result.rows[0][1]};")
        elif result.columns:
            _show_rows(result, is_expanded)
        else:
            assert result.plan is not None
            show_plans([result.plan], as_json=False)
    if any(result.rows_written is not None for result in results):
        written = sum(result.rows_written or 0 for result in results)
        typer.echo(f"{counted(written, 'row')} written")
    changes = [result for result in results if result.applied is not None]
    if changes:
        typer.echo(_changed(changes))


def _changed(changes: "Sequence[StatementResult]") -> str:
    """`2 changes made, at version 7`; with `IF EXISTS`, some had nothing to change."""
    applied = [result for result in changes if result.applied]
    if not applied:
        return "nothing was changed"
    count = counted(len(changes), "change")
    made = count if len(applied) == len(changes) else f"{len(applied)} of {count}"
    return f"{made} made, at version {applied[-1].catalog_version}"


def _show_rows(result: "StatementResult", is_expanded: bool) -> None:
    if is_expanded:
        for number, row in enumerate(result.rows, 1):
            typer.echo(f"-- row {number}")
            values = ["-" if value is None else value for value in row]
            show_facts(dict(zip(result.columns, values, strict=True)))
    else:
        show_table(result.columns, result.rows)
    if result.is_cut:
        typer.echo(f"there are more than these {counted(len(result.rows), 'row')}")
