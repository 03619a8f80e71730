"""A program of the cluster as a command: its help looks as that of every other command."""

import os
import sys
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Annotated

import typer

from metasrv_base.settings_list import SettingFlag
from serving.launch import program

KEYWORD = Parameter.KEYWORD_ONLY
HELP = frozenset({"--help", "-h"})
METAVARS = {"text": "TEXT", "number": "N", "list": "TEXT,...", "switch": "true|false"}
"""Placeholders of values without a unit, by the kind of the setting."""
settings = {
    "context_settings": {"ignore_unknown_options": True, "allow_extra_args": True},
    "add_help_option": False,
}
"""Settings of the Typer command: every word after the command is the program's own."""


def run_program(name: str, module: str, args: Sequence[str]) -> None:
    """Becomes the program of *module*, or shows its help."""
    if HELP.isdisjoint(args):
        os.execv(sys.executable, [*program(module), *args])
    from metasrv.cli.tools.config import settings_by_program

    _application(name, settings_by_program()[name])(["--help"], prog_name=f"metasrv {name}")


def _application(name: str, flags: Sequence[SettingFlag]) -> typer.Typer:
    """A command with an option for each setting; for its help alone."""
    file = typer.Option(
        metavar="FILE", help=f"A TOML file of settings; only its table `{name}` is read."
    )
    options = [Parameter("config", KEYWORD, default=None, annotation=Annotated[str | None, file])]
    options += [_parameter(flag) for flag in flags]

    def command(**_: str) -> None:
        return None

    described: Callable[..., None] = command
    described.__signature__ = Signature(options)  # type: ignore[attr-defined]  # PEP 362
    app = typer.Typer(add_completion=False)
    variable = next(flag.variable for flag in flags if flag.name == "listen")
    about = (
        f"Run one {name} until SIGTERM. Every flag is a variable too, as {variable}, and a name in "
        "the file, as `listen`. A flag wins over its variable, that over the file."
    )
    app.command(help=about)(described)
    return app


def _parameter(setting: SettingFlag) -> Parameter:
    metavar = setting.unit.upper() or METAVARS[setting.kind]
    option = typer.Option(setting.flag, help=setting.meaning, metavar=metavar)
    default = None if setting.default in (None, "", []) else setting.default_text
    return Parameter(
        setting.name,
        KEYWORD,
        default=Parameter.empty if setting.required else default,
        annotation=Annotated[str | None, option],
    )
