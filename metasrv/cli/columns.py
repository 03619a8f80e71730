"""Lines of a table as text. Pure: no terminal, no colors.

Words are never broken. A table that is too wide wraps its widest cells between words; if even
that is too wide, each row becomes a record of one line per column, as `\\x auto` of psql.
"""

import unicodedata
from collections.abc import Iterator, Sequence

GAP = "  "
WIDE = frozenset("WF")
"""Classes of East Asian width that take two columns of a terminal."""


def table_lines(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None
) -> Iterator[str]:
    """The heading and the rows. *width*: of the terminal in columns; None: no limit."""
    widths = [max(map(columns_of, column)) for column in zip(head, *rows, strict=True)]
    if width is not None and _sum(widths) > width:
        least = [max(map(_word, column)) for column in zip(head, *rows, strict=True)]
        if _sum(least) > width:
            yield from record_lines(head, rows, width)
            return
        widths = _shrunk(widths, least, width)
    for row in (head, *rows):
        cells = [_wrapped(cell, limit) for cell, limit in zip(row, widths, strict=True)]
        for number in range(max(map(len, cells), default=1)):
            parts = [cell[number] if number < len(cell) else "" for cell in cells]
            yield _line(parts, widths)


def that_fit(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, optional: Sequence[str]
) -> list[int]:
    """Returns the numbers of the columns that are shown: without the first of *optional*, then the
    second, and so on, until the rest fits. All, if the rest does not fit without them either."""
    shown = list(range(len(head)))
    if width is None:
        return shown
    widths = [max(map(columns_of, column)) for column in zip(head, *rows, strict=True)]
    for name in ("", *optional):
        shown = [number for number in shown if head[number] != name]
        if _sum([widths[number] for number in shown]) <= width:
            return shown
    return list(range(len(head)))


def record_lines(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None
) -> Iterator[str]:
    """Name and value of each cell, one to a line, with an empty line between two rows."""
    name_width = max(map(columns_of, head), default=0)
    indent = " " * (name_width + len(GAP))
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, cell in zip(head, row, strict=True):
            limit = columns_of(cell) if width is None else max(1, width - len(indent))
            first, *rest = _wrapped(cell, limit)
            yield _line((name, first), (name_width, 0))
            yield from (indent + line for line in rest)


def printable(text: str) -> str:
    """*text* on one line, with control characters escaped: a value must not steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def columns_of(text: str) -> int:
    """Columns of a terminal that *text* takes."""
    if text.isascii():
        return len(text)
    marks = sum(1 for c in text if unicodedata.combining(c))
    return len(text) - marks + sum(1 for c in text if unicodedata.east_asian_width(c) in WIDE)


def _line(parts: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        part + " " * (limit - columns_of(part)) for part, limit in zip(parts, widths, strict=True)
    )
    return GAP.join(padded).rstrip()


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _word(text: str) -> int:
    return max(map(columns_of, text.split()), default=0)


def _shrunk(widths: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Takes from the widest column that can give, one column of the terminal at a time."""
    new_widths = list(widths)
    while _sum(new_widths) > width:
        giving = [number for number, limit in enumerate(new_widths) if limit > least[number]]
        new_widths[max(giving, key=new_widths.__getitem__)] -= 1
    return new_widths


def _wrapped(cell: str, limit: int) -> list[str]:
    """Parts of *cell* that are at most *limit* columns wide, unless one word is wider."""
    if columns_of(cell) <= limit:
        return [cell]
    lines: list[str] = []
    for word in cell.split():
        if lines and columns_of(lines[-1]) + 1 + columns_of(word) <= limit:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]
