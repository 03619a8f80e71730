"""The `?` of a statement, outside quotes and comments, and the constants that take their places.

A constant stands between blanks: it is never one word with what the text has beside it, and `-?`
begins no comment.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from metasrv.dbapi.errors import ProgrammingError
from metasrv.dbapi.literals import literal

_PART = re.compile(
    r"""(?P<mark>\?)
    | (?P<blank>\s++ | --[^\n]*+ | /\*(?:[^*]|\*(?!/))*+\*/)
    | '(?:[^']|'')*+' | "(?:[^"]|"")*+"
    | (?P<open>/\*|['"])
    | (?P<word>\w++)
    | .
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Template:
    """A statement whose parameters are not bound."""

    pieces: tuple[str, ...]
    """The text before, between and behind the placeholders."""

    @property
    def parameters(self) -> int:
        return len(self.pieces) - 1

    def bound(self, values: Sequence[object]) -> str:
        """Raises ProgrammingError for another number of values, DataError for one that cannot be
        bound."""
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Sequence):
            raise ProgrammingError("Parameters are a sequence, one value for each `?`.")
        if len(values) != self.parameters:
            raise ProgrammingError(
                f"The statement has {self.parameters} placeholders, and {len(values)} values were "
                "given."
            )
        parts = [self.pieces[0]]
        for value, piece in zip(values, self.pieces[1:], strict=True):
            parts += (" ", literal(value), " ", piece)
        return "".join(parts)


@dataclass(frozen=True, slots=True)
class InsertTemplate:
    """`INSERT .. VALUES (..)`, whose row may be repeated."""

    head: str
    """The text up to VALUES, which is the last word of it."""
    row: Template
    """From the bracket on."""


def template(operation: str) -> Template:
    """Raises ProgrammingError for a string, a name or a comment that does not end."""
    pieces, begin = list[str](), 0
    for part in _parts(operation):
        if part.lastgroup == "mark":
            pieces.append(operation[begin : part.start()])
            begin = part.end()
    return Template((*pieces, operation[begin:]))


def insert_template(operation: str) -> InsertTemplate | None:
    """Returns the template of an INSERT of one row with all placeholders in that row; None for any
    other operation."""
    parts = [part for part in _parts(operation) if part.lastgroup != "blank"]
    while parts and parts[-1][0] == ";":
        parts.pop()
    if not parts or parts[0][0].upper() != "INSERT" or parts[-1][0] != ")":
        return None
    values = [
        position
        for position, part in enumerate(parts)
        if part.lastgroup == "word" and part[0].upper() == "VALUES"
    ]
    if not values or parts[values[0] + 1][0] != "(":
        return None
    first = values[0] + 1
    inside = [part[0] for part in parts[first + 1 : -1]]
    if {"(", ")"} & set(inside) or any(part.lastgroup == "mark" for part in parts[:first]):
        return None
    start = parts[first].start()
    return InsertTemplate(operation[:start], template(operation[start : parts[-1].end()]))


def _parts(operation: str) -> Iterator[re.Match[str]]:
    for part in _PART.finditer(operation):
        if part.lastgroup == "open":
            number = part.start() + 1
            raise ProgrammingError(f"What {part[0]} begins at character {number} does not end.")
        yield part
