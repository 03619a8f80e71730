"""`metasrv setting`: what operators change while the service runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metasrv.cli.complete import setting_names
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import AsJson, Url, one_id, service
from metasrv.cli.output import show_facts, show_json, show_table

if TYPE_CHECKING:
    from metasrv_base.wire.node.nodes import SettingBody

app = typer.Typer(no_args_is_help=True)

AT_START = "as started"
"""The value in effect is a setting at the start of each server: `metasrv config` shows those."""
NameArg = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Name of the setting.", autocompletion=setting_names, callback=one_id
    ),
]


@app.command("list")
def list_(metasrv: Url = None, output: Output = None, as_json: AsJson = False) -> None:
    """List all settings, and who changed them."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        settings = client.settings.list()
    rows = [
        (setting.name, _in_effect(setting), setting.unit, setting.version, setting.changed_by)
        for setting in settings
    ]
    head = ("setting", "value", "unit", "version", "changed by")
    names = [setting.name for setting in settings]
    show_form(form, settings, names, lambda: show_table(head, rows))


@app.command("get")
def get(name: NameArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Show one setting, with its default and its meaning."""
    with service(metasrv, as_json) as client:
        setting = client.settings.get(name)
    _show(setting, as_json)


@app.command("set", context_settings={"ignore_unknown_options": True})  # -1 is a value
def set_(
    name: NameArg,
    value: Annotated[
        str,
        typer.Argument(
            help="The value as JSON, e.g. 0.2 or 128; null restores the default.", metavar="VALUE"
        ),
    ],
    expected_version: Annotated[
        int | None,
        typer.Option(
            min=0, help="Change it only if the setting is at this version.", metavar="VERSION"
        ),
    ] = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Change one setting of the running service. Later leaders use the new value too."""
    new_value = _parsed(value)
    with service(metasrv, as_json, {"/value": f"VALUE {value}"}) as client:
        setting = client.settings.put(name, new_value, expected_version)
    _show(setting, as_json)


def _parsed(value: str) -> Any:
    try:
        return json.loads(value, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"{value} is not JSON, such as 0.2, 128, null or true") from error


def _no_number(constant: str) -> None:
    """Raises BadParameter for NaN and the infinities, which a request would send as null."""
    raise typer.BadParameter(f"{constant} is not a number of JSON, such as 0.2 or 128")


def _show(setting: SettingBody, as_json: bool) -> None:
    if as_json:
        show_json(setting)
        return
    default = AT_START if setting.default is None else _text(setting.default)
    shown = {"value": _in_effect(setting), "default": default}
    show_facts({**setting.model_dump(mode="json"), **shown})


def _in_effect(setting: SettingBody) -> str:
    """The value, or the default that stands in its place."""
    if setting.value is not None:
        return _text(setting.value)
    return AT_START if setting.default is None else f"{_text(setting.default)} (default)"


def _text(value: object) -> str:
    return json.dumps(value)
