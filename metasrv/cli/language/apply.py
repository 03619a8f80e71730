"""`metasrv apply`: the catalog brought to the state that files declare."""

from pathlib import Path
from typing import Annotated

import typer

from metasrv.cli.language.declared_files import declared_files
from metasrv.cli.options import WAIT_S, AsJson, Url, WaitS, service
from metasrv.cli.output import counted, show_json
from metasrv.cli.progress import procedure_bar

Files = Annotated[
    list[Path],
    typer.Argument(
        allow_dash=True,
        metavar="FILE...",
        help="A file of YAML, JSON or SQL (.sql); a folder, for all such files below it; or "
        "`-`, for YAML from stdin.",
    ),
]
Prune = Annotated[
    bool,
    typer.Option("--prune", help="Drop tables of declared schemas that the files do not declare."),
]
OfSqlCatalog = Annotated[
    str,
    typer.Option(
        "--catalog", metavar="NAME", help="The catalog of schemas that SQL names without one."
    ),
]
OfSqlSchema = Annotated[
    str,
    typer.Option(
        "--schema", metavar="NAME", help="The schema of tables that SQL names without one."
    ),
]


def command(  # noqa: PLR0913  # a parameter is an option of the command
    files: Files,
    prune: Prune = False,
    allow_destructive: Annotated[
        bool,
        typer.Option(
            "--allow-destructive", help="Allow operations that lose rows, values, rules or indexes."
        ),
    ] = False,
    plan_hash: Annotated[
        str,
        typer.Option(
            metavar="HASH", help="Apply only the plan with this hash, as `diff` shows it."
        ),
    ] = "",
    catalog: OfSqlCatalog = "main",
    schema: OfSqlSchema = "public",
    wait: WaitS = WAIT_S,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Bring the catalog to the state that files declare.

    Shows the plan, then carries it out, one operation after the other. An operation that loses
    rows, values, rules or indexes is refused without --allow-destructive. A new name is declared
    with `renamed_from`. After a failure, repeat the command: it does what is left.
    """
    from metasrv.cli.language.apply_text import plan_lines

    declared = declared_files(files, catalog, schema)
    with service(metasrv, as_json, declared) as client, procedure_bar("apply") as tell:
        plan = client.apply(
            declared.desired,
            sql=declared.sql,
            mode="plan",
            prune=prune,
            wait_s=wait,
            on_progress=tell,
        )
        if not as_json:
            typer.echo("\n".join(plan_lines(plan.operations)))
        done = plan
        if plan.operations:
            done = client.apply(
                declared.desired,
                sql=declared.sql,
                prune=prune,
                allow_destructive=allow_destructive,
                plan_hash=plan_hash or plan.plan_hash,
                wait_s=wait,
                on_progress=tell,
            )
    if as_json:
        show_json(done)
    elif done.steps:
        steps = counted(len(done.steps), "step")
        typer.echo(f"done in {steps}, at version {done.catalog_version}")
