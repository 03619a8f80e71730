"""The placeholders of values in every help text: names of the field, not types of Python."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from metasrv.cli.main import COMMANDS, application
from metasrv.cli.programs.program_help import METAVARS, _parameter
from metasrv_base.settings_list import SettingFlag
from tests.metasrv.cli.conftest import Run

NAME = re.compile(r"[A-Z][A-Z_]*(?:[:=|][A-Z]+)?(?:,?\.\.\.)?|\[NODE\]")
CHOICE = re.compile(r"<?[a-z]+(?:\|[a-z]+)+>?")
TYPES = {"STR", "INT", "INTEGER", "FLOAT", "PATH", "BOOL", "LIST", "NUMBER", "STRING", "ANY"}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its path, as the program has it."""
    root: Any = get_command(application([name for name, _, _ in COMMANDS]))
    context = root.context_class(root)
    for name in root.commands:
        yield from _below(root.get_command(context, name), f"metasrv {name}")


def _below(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _below(child, f"{path} {name}")


def placeholders() -> Iterator[tuple[str, str | None, str | None]]:
    """(command and parameter, its own name, what help shows beside it): a flag has neither."""
    for path, command in commands():
        context = command.context_class(command)
        for param in command.params:
            beside = param.display_type_rich(context)
            is_flag = getattr(param, "is_flag", False)
            is_option = param.opts[0].startswith("-")
            own = None if is_flag else beside if is_option else param.metavar
            yield f"{path} {param.opts[0]}", own, beside


def is_name(text: str) -> bool:
    return bool(CHOICE.fullmatch(text)) or (
        bool(NAME.fullmatch(text)) and text.partition(",")[0] not in TYPES
    )


@pytest.mark.parametrize("text", ["<str>", "<list[str]>", "INTEGER", "<int range>", "PATH", "x"])
def test_given_a_type_then_it_is_no_name(text: str) -> None:
    assert not is_name(text)


def test_given_every_command_then_its_values_have_names_and_no_types() -> None:
    shown = list(placeholders())

    wrong = [row for row in shown if any(text and not is_name(text) for text in row[1:])]
    assert wrong == []
    assert [where for where, own, beside in shown if beside and not own] == []
    assert len(shown) > 400


def test_given_a_flag_or_an_argument_then_help_shows_no_type(run: Run) -> None:
    shown = run("table", "rename", "-h").stdout

    assert "NEW_NAME" in shown
    assert "<" not in shown.replace("<=", "")


@pytest.mark.parametrize("kind", METAVARS)
@pytest.mark.parametrize("unit", ["", "ms", "bytes"])
def test_given_a_setting_then_its_flag_has_its_unit_or_a_name(kind: str, unit: str) -> None:
    setting = SettingFlag("--x", "X", None, False, unit, "It is so.", kind=kind)

    (option,) = _parameter(setting).annotation.__metadata__

    assert is_name(option.metavar)
