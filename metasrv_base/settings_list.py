"""Lists the settings of a program from its model, one row each."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

# Ending of a name -> the unit of its value.
UNITS = {"_ms": "ms", "_s": "s", "_bytes": "bytes"}


DEFAULT, FILE, ENVIRONMENT = "default", "file", "environment"


class SettingFlag(NamedTuple):
    flag: str
    variable: str
    """Name of the environment variable."""
    default: Any
    """The default as JSON; None if there is none."""
    required: bool
    unit: str
    """Empty: it is a text, a count or a switch."""
    meaning: str
    value: Any = None
    """Value in effect for a program started here without flags, in the form of its source."""
    source: str = DEFAULT
    """`default`, `file` or `environment`."""
    kind: str = "text"
    """`text`, `number`, `switch` or `list`."""

    @property
    def name(self) -> str:
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def default_text(self) -> str:
        """The default as a flag would give it; `none`: there is none."""
        default = self.default
        if isinstance(default, list):
            default = ",".join(map(str, default))
        if isinstance(default, bool):
            return str(default).lower()
        return "none" if default in (None, "") else str(default)


def settings_of(model: type[BaseModel], prefix: str) -> list[SettingFlag]:
    """Returns the settings in the order of the model. *prefix*: that of its variables, such as
    METASRV_."""
    return [
        SettingFlag(
            flag=f"--{name.replace('_', '-')}",
            variable=f"{prefix}{name.upper()}",
            default=_plain(field.default),
            required=field.is_required(),
            unit=next((unit for end, unit in UNITS.items() if name.endswith(end)), ""),
            meaning=" ".join((field.description or "").split()),
            value=_plain(field.default),
            kind=_kind(field.annotation),
        )
        for name, field in model.model_fields.items()
    ]


def in_effect(
    settings: list[SettingFlag], table: Mapping[str, Any], environment: Mapping[str, str]
) -> list[SettingFlag]:
    """The same, with values and where they come from: the environment wins over the file."""

    def resolved(setting: SettingFlag) -> SettingFlag:
        if setting.variable in environment:
            return setting._replace(value=environment[setting.variable], source=ENVIRONMENT)
        if setting.name in table:
            return setting._replace(value=table[setting.name], source=FILE)
        return setting

    return [resolved(setting) for setting in settings]


def as_json(settings: list[SettingFlag]) -> str:
    return json.dumps([setting._asdict() for setting in settings])


def table_of(toml: Path | None, program: str) -> Mapping[str, Any]:
    """Reads the table *program* of a file of settings; empty without a file.

    Raises ValueError (tomllib's), TypeError if that is no table, OSError for a file that cannot be
    read.
    """
    if toml is None:
        return {}
    table = tomllib.loads(toml.read_text()).get(program, {})
    if not isinstance(table, dict):
        raise TypeError(f"`{program}` in {toml} is not a table")
    return table


def _plain(default: object) -> object:
    if default is PydanticUndefined:
        return None
    return str(default) if isinstance(default, PurePath) else default


def _kind(annotation: object) -> str:
    if get_origin(annotation) is list:
        return "list"
    if annotation is bool:
        return "switch"
    return "number" if annotation in (int, float) else "text"
