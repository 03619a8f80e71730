"""Reads the commands of a page and the output that it shows, and compares that with a real one."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELLIPSIS = "..."
"""In the shown output: alone, any number of lines; at the end of a line, the rest of that line."""
_VARYING = (
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"\b\d+\.\d+\b"), "FRACTION"),
    (re.compile(r"\s+"), " "),
)
"""Parts of a line that differ from run to run, and the width of columns that depends on them."""


@dataclass(frozen=True)
class Command:
    """One `sh` block of a page, for a shell, with the `text` or `json` block that follows it."""

    line: int
    """The line of the page on which the commands begin, from 1."""
    text: str
    shown: str | None
    """None: the page shows no output."""

    @property
    def stays(self) -> bool:
        """Whether it runs until it is interrupted, in a terminal of its own."""
        return "metasrv playground" in self.text


def commands_of(page: Path) -> Sequence[Command]:
    """In the order of the page. Raises ValueError for a shown output without a command."""
    return tuple(_commands(page.read_text()))


def _commands(text: str) -> Iterator[Command]:
    command: Command | None = None
    for fence in _FENCE.finditer(text):
        language, body = fence.groups()
        if language == "sh":
            if command:
                yield command
            command = Command(text[: fence.start()].count("\n") + 2, body, None)
        elif language in ("text", "json"):
            if command is None:
                raise ValueError(f"output without a command: {body}")
            yield Command(command.line, command.text, body)
            command = None
    if command:
        yield command


def agrees(shown: str, printed: str) -> bool:
    """Whether *printed* is what the page shows, apart from what differs in every run."""
    return _match(_lines(shown), _lines(printed))


def _lines(text: str) -> Sequence[str]:
    lines = (_constant(line) for line in text.splitlines())
    return [line for line in lines if line]


def _constant(line: str) -> str:
    for pattern, replacement in _VARYING:
        line = pattern.sub(replacement, line)
    return line.strip()


def _match(shown: Sequence[str], printed: Sequence[str]) -> bool:
    if not shown:
        return not printed
    if shown[0] == ELLIPSIS:
        return any(_match(shown[1:], printed[skip:]) for skip in range(len(printed) + 1))
    return bool(printed) and _fits(shown[0], printed[0]) and _match(shown[1:], printed[1:])


def _fits(shown: str, printed: str) -> bool:
    if shown.endswith(ELLIPSIS):
        return printed.startswith(shown.removesuffix(ELLIPSIS).rstrip())
    return shown == printed
