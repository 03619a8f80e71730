"""`metasrv config`: every setting of every program, from the models that judge them."""

import json
import subprocess
import sys
from enum import StrEnum
from typing import Annotated

import typer

from base.settings_list import Setting, settings_of
from metasrv.cli.output import show_json, show_table

DATANODE = "dataplane.datanode.settings"
HEAD = ("flag", "environment", "default", "unit", "meaning")


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"


def command(
    form: Annotated[Form, typer.Option("--format", help="For people, or for programs.")] = (
        Form.TABLE
    ),
) -> None:
    """Flags win over the environment, that over a TOML file, that over the default."""
    programs = {"server": of_server(), "datanode": of_datanode()}
    if form is Form.JSON:
        show_json({name: [one._asdict() for one in found] for name, found in programs.items()})
        return
    for name, found in programs.items():
        typer.echo(f"metasrv {name}\n")
        show_table(HEAD, [_row(setting) for setting in found])
        typer.echo("")


def of_server() -> list[Setting]:
    from metasrv.config import ServerConfig

    return settings_of(ServerConfig, str(ServerConfig.model_config.get("env_prefix")))


def of_datanode() -> list[Setting]:
    """Asked of the program itself: the planes do not know each other."""
    argv = [sys.executable, "-m", DATANODE]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return [Setting(**row) for row in json.loads(said)]


def _row(setting: Setting) -> tuple[object, ...]:
    default = "(required)" if setting.required else _shown(setting.default)
    return (setting.flag, setting.variable, default, setting.unit, setting.meaning)


def _shown(default: object) -> str:
    if default is None:
        return ""
    return default if isinstance(default, str) else json.dumps(default)
