"""The output of the demo: a line for each event, with the time that it took, and a summary."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.table import Table

from metasrv_base.clock import Clock


class DemoBar(Protocol):
    """A progress bar of whoever shows the page."""

    def tell(self, words: str, done: int, total: int | None) -> None: ...


Bars = Callable[[str], AbstractContextManager[DemoBar]]


class DemoFailed(Exception):
    """Something the demo promised was not so; the text says what."""


class DemoPage:
    """The console, and every figure worth repeating at the end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun_ms = clock.mono_ms()
        self._figures: list[tuple[str, str]] = []
        self.console = Console(highlight=False, soft_wrap=True)

    def chapter(self, words: str) -> None:
        self.console.print(f"\n[bold]{words}[/bold]")

    def say(self, words: str) -> None:
        seconds = (self._clock.mono_ms() - self._begun_ms) / 1000
        self.console.print(f"[dim]{seconds:6.1f} s[/dim]  {words}")

    def figure(self, name: str, value: str) -> None:
        """Kept for the summary."""
        self._figures.append((name, value))

    @contextmanager
    def step(self, words: str) -> Iterator[None]:
        """Says *words* once the block is done, with its time."""
        before = self._clock.mono_ms()
        yield
        self.say(f"[green]✓[/green] {words}  [dim]{self._clock.mono_ms() - before} ms[/dim]")

    def must(self, holds: bool, words: str) -> None:
        """Says what was verified. Raises DemoFailed if it does not hold."""
        if not holds:
            raise DemoFailed(words)
        self.say(f"[green]✓[/green] {words}")

    def summary(self) -> None:
        table = Table(title="What was measured", title_justify="left", show_header=False)
        for name, value in self._figures:
            table.add_row(name, value)
        self.console.print()
        self.console.print(table)
