"""Progress on stderr of what takes longer than a second: a bar on a terminal, lines in a pipe."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol

import typer

from metasrv_base.clock import Clock, SystemClock

if TYPE_CHECKING:
    from metasrv_base.wire.api.procedures import ProcedureBody, WaitingBody

AFTER_MS = 1_000
LINE_MS = 10_000
"""The time between two lines that differ in their count only."""
STILL_MS = 60_000
"""The time after which a line is printed again although nothing has changed."""
EXIT_INTERRUPTED = 130
"""128 and the number of SIGINT, as shells have it."""


class Display(Protocol):
    """Shows the progress once it has taken long enough."""

    def show(self, words: str, done: int, total: int | None) -> None: ...

    def close(self) -> None: ...


class Screen:
    """A bar of rich, on a terminal. It is gone when it is closed."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}", markup=False),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("", total=None, count="")
        self._progress.start()

    def show(self, words: str, done: int, total: int | None) -> None:
        change: dict[str, Any] = {"completed": done, "total": total, "count": counted(done, total)}
        self._progress.update(self._task, description=words, **change)

    def close(self) -> None:
        self._progress.stop()


class Lines:
    """A line when the words change, every ten seconds while the count does, and else every minute:
    for logs and pipes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._words = ""
        self._line = ""
        self._shown_ms = 0

    def show(self, words: str, done: int, total: int | None) -> None:
        now_ms = self._clock.mono_ms()
        line = ": ".join(part for part in (words, counted(done, total)) if part)
        wait_ms = STILL_MS if line == self._line else LINE_MS if words == self._words else 0
        if now_ms - self._shown_ms < wait_ms:
            return
        self._words, self._line, self._shown_ms = words, line, now_ms
        typer.echo(line, err=True)

    def close(self) -> None:
        return


class ProgressBar:
    """The progress of one command. `total` None: the end is not known."""

    def __init__(self, words: str, after_ms: int) -> None:
        self._clock = SystemClock()
        self._begun_ms = self._clock.mono_ms()
        self._after_ms = after_ms
        self._display: Display | None = None
        self._is_closed = False
        self._last: tuple[str, int, int | None] = (words, 0, None)

    def tell(self, words: str, done: int, total: int | None) -> None:
        self._last = (words, done, total)
        self.look()

    def wait(self, seconds: float) -> None:
        """Shows that it waits, while somebody else works."""
        Event().wait(seconds)
        self.look()

    def close(self) -> None:
        self._is_closed = True
        if self._display is not None:
            self._display.close()

    def look(self) -> None:
        """Shows the last state, if it has taken long enough."""
        if self._is_closed or self._clock.mono_ms() - self._begun_ms < self._after_ms:
            return
        if self._display is None:
            self._display = Screen() if sys.stderr.isatty() else Lines(self._clock)
        self._display.show(*self._last)


@contextmanager
def bar(words: str, *, at_once: bool = False) -> Iterator[ProgressBar]:
    """`at_once`: it is known that it takes longer than a second. Gone when the block ends."""
    progress_bar = ProgressBar(words, 0 if at_once else AFTER_MS)
    try:
        progress_bar.look()
        yield progress_bar
    finally:
        progress_bar.close()


@contextmanager
def procedure_bar(words: str) -> Iterator[Callable[["ProcedureBody"], None]]:
    """Shows a procedure's step, progress and waits, for `on_progress`. Ctrl-C ends the command with
    130 and says which changes go on, of one procedure or several."""
    latest: dict[str, ProcedureBody] = {}
    with bar(words) as shown:

        def tell(procedure: "ProcedureBody") -> None:
            latest[procedure.id] = procedure
            progress = procedure.progress
            done, total = (progress.done, progress.total) if progress else (0, None)
            shown.tell(described(procedure), done, total)

        try:
            yield tell
        except KeyboardInterrupt:
            shown.close()
            going = [procedure for procedure in latest.values() if not procedure.done]
            typer.echo("\n".join(interrupted(going)), err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None


def interrupted(going: Sequence["ProcedureBody"]) -> Iterator[str]:
    """Lines for a command that was interrupted, with the procedures that go on."""
    if not going:
        yield "interrupted before the service answered: the change may have begun"
        yield "  to see it: metasrv procedure list"
    for procedure in going:
        yield f"interrupted; {procedure.kind} goes on as {procedure.id}"
        yield from ways_on(procedure.id)


def ways_on(id: str) -> Iterator[str]:
    """Lines for a procedure that goes on while the command ends."""
    yield f"  to follow it: metasrv procedure watch {id}"
    yield f"  to stop it: metasrv procedure cancel {id}"


def counted(done: int, total: int | None) -> str:
    """`420,000 of 1,000,000`; without a total only what is done, and nothing for 0."""
    if total is not None:
        return f"{done:,} of {total:,}"
    return f"{done:,}" if done else ""


SHORT = 13
"""Characters of an id that tell its millisecond; `procedure get` takes them for the whole id."""
ID_LENGTH = 36


def wait_name(wait: "WaitingBody", *, is_whole: bool = False) -> str:
    """`region_lease of dn-1`, `lock table:1024 of 019aa5d3-1c00`; *is_whole*: with all of the
    id."""
    key = f" {wait.key}" if wait.key else ""
    is_short = len(wait.holder) == ID_LENGTH and not is_whole
    return f"{wait.kind}{key} of {wait.holder[:SHORT] if is_short else wait.holder}"


def described(procedure: "ProcedureBody") -> str:
    """A procedure in one line, which names the index or the columns that it is about."""
    about = " ".join(filter(None, (procedure.resource.name, procedure.change)))
    text = f"{procedure.kind} {about}: {procedure.state}, {procedure.step}"
    waiting = map(wait_name, procedure.waiting_for)
    return f"{text}; waits for {', '.join(waiting)}" if procedure.waiting_for else text
