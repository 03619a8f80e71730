"""A scripted service, and the command line as a function."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner, Result

from metasrv.cli.environment import FOLDER_VARIABLE
from metasrv.cli.main import application
from tests.metasrv.cli.rest import Rest, serving

Run = Callable[..., Result]
kept_command = cache(get_command)
"""A command keeps nothing of its call; to build one takes longer than most of these tests."""


@cache
def application_of(command: str) -> typer.Typer:
    return application([command])


@pytest.fixture
def rest() -> Iterator[Rest]:
    with serving() as found:
        yield found


@pytest.fixture
def impatient(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a command that gets no answer, or the same refusal each time: longer patience changes
    nothing that it says. Long enough for one answer on a busy machine."""
    monkeypatch.setattr("metasrv.cli.options.PATIENCE_MS", 500)
    monkeypatch.setattr("metasrv.cli.plain_read.PATIENCE_S", 0.1)
    monkeypatch.setattr("metasrv.sdk.control.service.LEARN_MS_MAX", 100)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """`run("table", "list")`: exit code and both streams."""
    monkeypatch.delenv("METASRV_URL", raising=False)
    monkeypatch.setenv("METASRV_CONTEXT", "")  # put back behind a test of `--context`
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "no-playground"))
    monkeypatch.setattr("metasrv.cli.options.PATIENCE_MS", 1_000)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("typer.testing._get_command", kept_command)

    def call(*args: str, **environment: str) -> Result:
        return CliRunner().invoke(application_of(args[0]), list(args), env=environment)

    return call
