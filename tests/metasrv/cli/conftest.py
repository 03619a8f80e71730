"""A scripted service, and the command line as a function."""

from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner, Result

from metasrv.cli.main import application
from tests.metasrv.cli.rest import Rest, serving

Run = Callable[..., Result]


@pytest.fixture
def rest() -> Iterator[Rest]:
    with serving() as found:
        yield found


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("table", "list")`: exit code and both streams."""
    monkeypatch.delenv("METASRV_URL", raising=False)
    monkeypatch.setattr("metasrv.cli.options.PATIENCE_MS", 200)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*args: str, **environment: str) -> Result:
        return CliRunner().invoke(application([args[0]]), list(args), env=environment)

    return call
