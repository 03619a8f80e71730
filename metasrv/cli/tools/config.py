"""`metasrv config`: every setting of every program as it is in effect here, and its source."""

import json
import os
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from metasrv.cli.output import show_json, show_table
from metasrv_base.settings_list import SettingFlag

PROGRAMS = {
    "datanode": "dataplane.datanode.settings",
    "frontend": "dataplane.frontend.settings",
}
"""The programs of the data plane, each with the module of its settings."""
HEAD = ("flag", "environment", "value", "source", "unit", "meaning")


class ConfigFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


def command(
    form: Annotated[ConfigFormat, typer.Option("--format", help="Output format.")] = (
        ConfigFormat.TABLE
    ),
    config: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file of settings, as programs read it.", dir_okay=False, metavar="FILE"
        ),
    ] = None,
) -> None:
    """Show every setting of the programs, its value and its source.

    A flag has precedence over its environment variable, the variable over the TOML file, the file
    over the default.
    """
    try:
        programs = settings_by_program(config)
    except (ValueError, TypeError, OSError) as error:
        raise typer.BadParameter(f"{config}: {error}") from error
    if form is ConfigFormat.JSON:
        show_json(
            {
                name: [setting._asdict() for setting in settings]
                for name, settings in programs.items()
            }
        )
        return
    for name, settings in programs.items():
        typer.echo(f"metasrv {name}\n")
        show_table(HEAD, [_row(setting) for setting in settings])
        typer.echo("")


def settings_by_program(toml: Path | None = None) -> dict[str, list[SettingFlag]]:
    """Raises ValueError, TypeError, OSError for a file that cannot be read or means nothing."""
    return {"server": of_server(toml), **{name: of_program(name, toml) for name in PROGRAMS}}


def of_server(toml: Path | None = None) -> list[SettingFlag]:
    from metasrv.program.config import ServerConfig

    return ServerConfig.effective_settings(os.environ, toml)


def of_program(name: str, toml: Path | None = None) -> list[SettingFlag]:
    """Settings of another program, printed by that program itself: the planes do not import each
    other."""
    argv = [sys.executable, "-m", PROGRAMS[name], *([str(toml)] if toml else [])]
    output = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return [SettingFlag(**row) for row in json.loads(output)]


def _row(setting: SettingFlag) -> tuple[object, ...]:
    value = "(required)" if setting.required and setting.value is None else _shown(setting.value)
    source = setting.source if value != "(required)" else ""
    return (setting.flag, setting.variable, value, source, setting.unit, setting.meaning)


def _shown(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
