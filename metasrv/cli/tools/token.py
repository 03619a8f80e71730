"""`metasrv token`: secrets by which programs and people know each other."""

import os
from pathlib import Path
from typing import Annotated

import typer

from metasrv_base.token import line_of, new_token

app = typer.Typer(no_args_is_help=True)
MODE = 0o600


@app.callback()
def _several() -> None:
    """Keeps `new` a command of its own."""


@app.command("new")
def new(
    name: Annotated[
        str,
        typer.Argument(help="Name of the holder; changes are recorded under it.", metavar="NAME"),
    ],
    token_file: Annotated[
        Path, typer.Option(help="New file for the token; give it to the holder.", metavar="FILE")
    ],
    tokens_file: Annotated[
        Path,
        typer.Option(
            help="File of hashes to add to; the `tokens_file` of programs.", metavar="FILE"
        ),
    ],
) -> None:
    """Create a token: its secret in one file, its hash in another, both mode 0600."""
    token = new_token()
    try:
        line = line_of(name, token)
        _append(token_file, token, os.O_EXCL)
        _append(tokens_file, line, 0)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    typer.echo(f"{name}: METASRV_TOKEN_FILE={token_file}; servers take it after a SIGHUP")


def _append(path: Path, line: str, more: int) -> None:
    opened = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | more, MODE)
    with os.fdopen(opened, "w") as file:
        file.write(line + "\n")
