"""`metasrv datanode`: becomes the datanode program; its flags are that program's own."""

import typer

from metasrv.cli.programs.program_help import run_program, settings

__all__ = ["command", "settings"]


def command(context: typer.Context) -> None:
    run_program("datanode", "dataplane.datanode.main", context.args)
