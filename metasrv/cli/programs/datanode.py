"""`metasrv datanode`: becomes the datanode program; its flags are that program's own."""

import os
import sys

import typer

from serving.launch import program

settings = {
    "context_settings": {"ignore_unknown_options": True, "allow_extra_args": True},
    "add_help_option": False,
}


def command(context: typer.Context) -> None:
    os.execv(sys.executable, [*program("dataplane.datanode.main"), *context.args])
