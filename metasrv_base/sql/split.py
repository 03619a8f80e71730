"""SQL text split into its statements, one at a time: megabytes of it are never held as tokens."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from metasrv_base.sql.faults import fault_at

_PART = re.compile(
    r"""(?P<end>;)
    | (?P<blank>\s++ | --[^\n]*+ | /\*(?:[^*]|\*(?!/))*+\*/)
    | (?P<open>/\*)
    | '(?:[^']|'')*+' | "(?:[^"]|"")*+"
    | (?P<quote>['"])
    | [^;'"\-/\s]++ | .
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement, without the semicolon, in the text that it stands in."""

    source: str
    """All of the text."""
    start: int
    """The place of its first word, in characters of `source`."""
    end: int
    """The offset behind the last character."""

    @property
    def text(self) -> str:
        return self.source[self.start : self.end]


def split(source: str) -> Iterator[StatementText]:
    """Yields the statements that are not empty. Raises Refused `invalid-sql` for a string, a name
    or a comment that does not end."""
    start: int | None = None
    end = 0
    for part in _PART.finditer(source):
        match part.lastgroup:
            case "blank":
                continue
            case "open":
                raise fault_at(source, part.start(), actual="/*", expected="*/ before the end")
            case "quote":
                closing = f"{part[0]} before the end"
                raise fault_at(source, part.start(), actual=part[0], expected=closing)
            case "end":
                if start is not None:
                    yield StatementText(source, start, end)
                start = None
            case _:
                start = part.start() if start is None else start
                end = part.end()
    if start is not None:
        yield StatementText(source, start, end)
