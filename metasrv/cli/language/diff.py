"""`metasrv diff`: what `metasrv apply` would do. Its exit code is for CI."""

import typer

from metasrv.cli.language.apply import Files, OfSqlCatalog, OfSqlSchema, Prune
from metasrv.cli.language.apply_text import plan_lines
from metasrv.cli.language.declared_files import declared_files
from metasrv.cli.options import AsJson, Url, service
from metasrv.cli.output import show_json

EXIT_DIFFERENCE = 2
EXIT_FAULT = 1


def command(  # noqa: PLR0913  # a parameter is an option of the command
    files: Files,
    prune: Prune = False,
    catalog: OfSqlCatalog = "main",
    schema: OfSqlSchema = "public",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show the operations with which `apply` would bring the catalog to the state of files.

    Exit 0: there are none. Exit 2: there are some. Exit 1: a file is wrong, the service did not
    answer, or no operations lead there.
    """
    try:
        declared = declared_files(files, catalog, schema)
        with service(metasrv, as_json, declared) as client:
            plan = client.apply(
                declared.desired, sql=declared.sql, mode="plan", prune=prune, wait_s=0
            )
    except typer.BadParameter as error:
        typer.echo(f"error: {error.message}", err=True)
        raise typer.Exit(EXIT_FAULT) from error
    except typer.Exit as error:
        raise typer.Exit(EXIT_FAULT if error.exit_code else 0) from error
    if as_json:
        show_json(plan)
    else:
        typer.echo("\n".join(plan_lines(plan.operations)))
        if plan.operations:
            typer.echo(f"plan hash: {plan.plan_hash}")
    if plan.operations:
        raise typer.Exit(EXIT_DIFFERENCE)
