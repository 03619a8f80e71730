"""Progress bars on stderr, which come up only when something takes longer than a second."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from metasrv_base.clock import SystemClock
from metasrv_base.wire.api.procedures import ProcedureBody

AFTER_MS = 1_000


class ProgressBar:
    """One bar. `total` None: it is not known how far there is to go."""

    def __init__(self, progress: Progress, words: str, after_ms: int) -> None:
        self._progress = progress
        self._clock = SystemClock()
        self._begun_ms = self._clock.mono_ms()
        self._after_ms = after_ms
        self._is_shown = self._closed = False
        self._task = progress.add_task(words, total=None)

    def tell(self, words: str, done: int, total: int | None) -> None:
        self._progress.update(self._task, description=words, completed=done, total=total)
        self.look()

    def wait(self, seconds: float) -> None:
        """While somebody else works."""
        Event().wait(seconds)
        self.look()

    def close(self) -> None:
        self._closed = True
        if self._is_shown:  # rich ends a bar that never began with an empty line
            self._progress.stop()

    def look(self) -> None:
        if self._closed or self._is_shown:
            return
        if self._clock.mono_ms() - self._begun_ms >= self._after_ms:
            self._is_shown = True
            self._progress.start()


@contextmanager
def bar(words: str, *, at_once: bool = False) -> Iterator[ProgressBar]:
    """`at_once`: it is known that it takes longer than a second. Gone when the block ends."""
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    found = ProgressBar(progress, words, 0 if at_once else AFTER_MS)
    try:
        found.look()
        yield found
    finally:
        found.close()


@contextmanager
def procedure_bar(words: str) -> Iterator[Callable[[ProcedureBody], None]]:
    """For `on_progress`: step, progress, and what it is waiting for."""
    with bar(words) as shown:

        def tell(procedure: ProcedureBody) -> None:
            progress = procedure.progress
            done, total = (progress.done, progress.total) if progress else (0, None)
            shown.tell(described(procedure), done, total)

        yield tell


def described(procedure: ProcedureBody) -> str:
    """In one line."""
    text = f"{procedure.kind} {procedure.resource.name}: {procedure.state}, {procedure.step}"
    waiting = [f"{one.kind} of {one.holder}" for one in procedure.waiting_for]
    return f"{text}; waits for {', '.join(waiting)}" if waiting else text
