"""The interactive prompt of `metasrv sql`: reads an input, carries it out, shows the results."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import typer

from metasrv.cli.errors.places import reason_of
from metasrv.cli.near import suggesting
from metasrv.cli.options import show_errors
from metasrv.cli.progress import bar, described, interrupted
from metasrv.cli.prompt.completion import CompletionCandidate, candidates
from metasrv.cli.prompt.history import history_path, prepare
from metasrv.cli.prompt.input_end import has_statement, is_shortcut
from metasrv.cli.prompt.names import NameReader
from metasrv.cli.prompt.results import show_results
from metasrv.cli.prompt.shortcuts import (
    BadShortcut,
    NameScope,
    help_lines,
    session_of,
    shortcut_of,
    sql_of,
)
from metasrv.program.version import VERSION
from metasrv_base.clock import SystemClock
from metasrv_base.errors import Refused
from metasrv_base.sql.split import split

if TYPE_CHECKING:
    from metasrv.sdk.sql.run_sql import SqlOptions
    from metasrv.sdk.sync import Client
    from metasrv_base.wire.api.procedures import ProcedureBody
    from metasrv_base.wire.language.sql import StatementResult

WATCH_S = 2.0
_READ = re.compile(r"(?:SELECT|SHOW|DESCRIBE|DESC|EXPLAIN)\b", re.IGNORECASE)


def run_prompt(client: "Client", session: NameScope, options: "SqlOptions") -> None:
    """Returns at the end of the input. *options*: of all statements."""
    from metasrv.cli.prompt.terminal import terminal

    prompt = Prompt(client, session, options)
    inputs = terminal(prompt.complete, _history())
    typer.echo(rf"metasrv {VERSION} at {', '.join(client.urls)}; \? lists shortcuts, \q leaves")
    while not prompt.is_over:
        try:
            text = inputs.prompt(prompt.words)
            prompt.carry_out(text)
        except KeyboardInterrupt:  # abandons the input
            continue
        except EOFError:
            return


def _history() -> Path | None:
    path = history_path(os.environ)
    try:
        prepare(path)
    except OSError as error:
        typer.echo(f"the history is not kept: {path}: {reason_of(error)}", err=True)
        return None
    return path


class Prompt:
    """One prompt: its scope, and how it shows results. Errors are shown, and it goes on."""

    def __init__(self, client: "Client", session: NameScope, options: "SqlOptions") -> None:
        self._client = client
        self._session = session
        self._options = options
        self._clock = SystemClock()
        self._names = NameReader(client)
        self._names.refresh()
        self._is_expanded = False
        self._is_timed = False
        self._last = ""
        """The statements that were carried out last."""
        self.is_over = False

    @property
    def words(self) -> str:
        """The text before an input."""
        return f"{self._session.catalog}.{self._session.schema}> "

    def complete(self, before: str) -> list[CompletionCandidate]:
        return candidates(before, self._names.names, self._session)

    def carry_out(self, text: str) -> None:
        """Executes *text*, a whole input: a shortcut or statements."""
        if is_shortcut(text):
            try:
                self._shortcut(text)
            except BadShortcut as error:
                typer.echo(f"error: {error}", err=True)
        elif has_statement(text):
            self._last = text
            self._statements(text)

    def _shortcut(self, text: str) -> None:
        shortcut = shortcut_of(text)
        if (statements := sql_of(shortcut, self._session)) is not None:
            self._statements(statements)
            return
        match shortcut.name:
            case r"\q":
                self.is_over = True
            case r"\?":
                typer.echo("\n".join(help_lines()))
            case r"\x":
                self._is_expanded = not self._is_expanded
                typer.echo(f"a line for each {'value' if self._is_expanded else 'row'}")
            case r"\timing":
                self._is_timed = not self._is_timed
                typer.echo(f"timing is {'on' if self._is_timed else 'off'}")
            case r"\c":
                self._session = session_of(shortcut.argument, self._session)
            case r"\i":
                self._file(shortcut.argument)
            case r"\watch":
                self._watch(shortcut.argument)
            case name:
                raise AssertionError(f"{name} is listed and does nothing")

    def _statements(self, text: str) -> bool:
        """Returns whether all of them were done."""
        results: list[StatementResult] = []
        begun_ms = self._clock.mono_ms()
        is_done = False
        try:
            with (
                show_errors(as_json=False, urls=", ".join(self._client.urls)),
                _stoppable(text) as tell,
            ):
                try:
                    self._send(text, results, tell)
                    is_done = True
                finally:
                    show_results(results, self._is_expanded)
        except typer.Exit:  # the error was shown, or Ctrl-C came while results were
            is_done = False
        if self._is_timed:
            typer.echo(f"time: {self._clock.mono_ms() - begun_ms:,} ms")
        if not _only_reads(text):
            self._names.refresh()
        return is_done

    def _send(
        self,
        text: str,
        results: "list[StatementResult]",
        tell: "Callable[[ProcedureBody], None]",
    ) -> None:
        options: SqlOptions = {
            **self._options,
            "catalog": self._session.catalog,
            "schema": self._session.schema,
            "on_progress": tell,
            "on_result": results.append,
        }
        with suggesting(self._client):
            self._client.sql(text, **options)

    def _file(self, name: str) -> None:
        try:
            text = Path(name).expanduser().read_text()
        except (OSError, ValueError) as error:
            raise BadShortcut(f"{name}: {reason_of(error)}") from error
        self._last = text
        self._statements(text)

    def _watch(self, argument: str) -> None:
        """Repeats the last statements until Ctrl-C, or until one fails."""
        try:
            every_s = float(argument or WATCH_S)
        except ValueError:
            every_s = 0
        if not 0.1 <= every_s < float("inf"):
            raise BadShortcut(f"{argument} is not a number of seconds, from 0.1 on")
        if not self._last or not _only_reads(self._last):
            raise BadShortcut("the last input is not a query: it is not repeated")
        while self._statements(self._last):
            Event().wait(every_s)


def _only_reads(text: str) -> bool:
    """Whether *text* surely changes nothing."""
    try:
        return all(_READ.match(statement.text) for statement in split(text))
    except Refused:
        return False


@contextmanager
def _stoppable(text: str) -> "Iterator[Callable[[ProcedureBody], None]]":
    """Shows the progress of changes. Ctrl-C stops the wait, and it is said what goes on. Ends with
    Exit then."""
    last: ProcedureBody | None = None
    with bar("sql") as shown:

        def tell(procedure: "ProcedureBody") -> None:
            nonlocal last
            last = procedure
            progress = procedure.progress
            done, total = (progress.done, progress.total) if progress else (0, None)
            shown.tell(described(procedure), done, total)

        try:
            yield tell
        except KeyboardInterrupt:
            shown.close()
            reads = last is None and _only_reads(text)
            going = [] if last is None else [last]
            lines = ["interrupted; nothing was changed"] if reads else interrupted(going)
            typer.echo("\n".join(lines), err=True)
            raise typer.Exit from None
