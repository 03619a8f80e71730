"""Faults of SQL text: where, what stands there, and what would be right."""

from collections.abc import Iterable
from difflib import get_close_matches

from metasrv_base.errors import Refused

SHOWN_CHARS_MAX = 40  # of what was found
LINE_CHARS_MAX = 68  # of the line that is shown, so that it fits a terminal of 80 columns
CUT = "..."


def fault_at(source: str, offset: int, *, actual: str, expected: str, **facts: object) -> Refused:
    """The refusal `invalid-sql` of a place in *source*, in characters from its beginning: with the
    line and the column, both from 1, and the line itself with a mark under the place."""
    line, column = position(source, offset)
    return Refused(
        "invalid-sql",
        line=line,
        column=column,
        found=shown(actual),
        expected=expected,
        excerpt=excerpt(source, offset),
        **facts,
    )


def position(source: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of a character."""
    before = source[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def excerpt(source: str, offset: int) -> str:
    """The line of a character, at most LINE_CHARS_MAX of it with `...` where it is cut, and below
    it a `^` at the place."""
    first = source.rfind("\n", 0, offset) + 1
    last = source.find("\n", offset)
    last = len(source) if last < 0 else last
    begin = first
    if last - first > LINE_CHARS_MAX:
        begin = max(first, min(offset - LINE_CHARS_MAX // 2, last - LINE_CHARS_MAX))
    end = min(last, begin + LINE_CHARS_MAX)
    before = CUT if begin > first else ""
    after = CUT if end < last else ""
    line = source[begin + len(before) : end - len(after)]
    blank = "".join(
        "\t" if char == "\t" else " " for char in before + source[begin + len(before) : offset]
    )
    return f"{before}{line}{after}\n{blank}^"


def shown(text: str) -> str:
    cut = text if len(text) <= SHOWN_CHARS_MAX else text[: SHOWN_CHARS_MAX - 3] + "..."
    return cut or "the end of the statement"


def near(word: str, choices: Iterable[str]) -> dict[str, str]:
    """The fact `did_you_mean`, if one of *choices* is close to *word*."""
    close = get_close_matches(word.upper(), list(choices), n=1)
    return {"did_you_mean": close[0]} if close and close[0] != word.upper() else {}
