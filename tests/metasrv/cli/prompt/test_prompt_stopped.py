"""Ctrl-C ends `\\watch` wherever it comes, also between an answer and the end of its output."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from metasrv.cli.prompt import prompt
from metasrv.cli.prompt.shortcuts import NameScope

if TYPE_CHECKING:
    from metasrv.sdk.sql.run_sql import SqlOptions
    from metasrv.sdk.sync import Client
    from metasrv_base.wire.language.sql import StatementResult

SENT_MAX = 5


@dataclass
class _Client:
    """Answers every text with nothing."""

    sent: int = 0
    options: dict[str, object] = field(default_factory=dict)
    """The options of the last text."""
    urls: Sequence[str] = ("http://127.0.0.1:1",)

    def sql(self, text: str, **options: object) -> None:
        self.sent += 1
        self.options = options
        assert self.sent < SENT_MAX, f"{text} is repeated"

    def show(self, view: str, **options: object) -> None:
        raise RuntimeError("the client is closed")


def test_given_ctrl_c_while_results_are_shown_when_watching_then_nothing_is_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = _Client()
    options: SqlOptions = {"wait_s": 1, "max_lag": 5_000}
    at = prompt.Prompt(cast("Client", client), NameScope("main", "public"), options)
    at.carry_out("show tables;")
    assert client.options.items() > {**options, "schema": "public"}.items()

    def interrupted(results: "Sequence[StatementResult]", is_expanded: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(prompt, "show_results", interrupted)
    at.carry_out(r"\watch 0.1")

    assert client.sent == 2
    assert "interrupted; nothing was changed" in capsys.readouterr().err
