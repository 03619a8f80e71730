"""The text of an expression cut into words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from metasrv_base.errors import Refused


class Sort(StrEnum):
    NAME = "name"
    WORD = "word"
    """One of the language; in any case."""
    NUMBER = "number"
    TEXT = "text"
    MARK = "mark"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    sort: Sort
    text: str
    """A word in small letters, a name or a string without its quotes."""
    offset: int
    """Characters from the beginning."""


WORDS = frozenset(("and", "or", "not", "is", "null", "in", "between", "true", "false"))
_TOKEN = re.compile(
    r"""\s+
    | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    | (?P<bare>[A-Za-z_][A-Za-z0-9_]*)
    | "(?P<name>[^"]+)"
    | '(?P<text>(?:[^']|'')*)'
    | (?P<mark><>|!=|<=|>=|[-+*/=<>(),])
    """,
    re.VERBOSE | re.ASCII,
)


def tokens(text: str, pointer: str) -> Iterator[Token]:
    """The last one is the END. Raises Refused for a character that no word begins with."""
    offset = 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            raise unexpected(pointer, text[offset], offset, "a column, a constant or an operator")
        if match.lastgroup is not None:
            yield _token(match.lastgroup, match[match.lastgroup], offset)
        offset = match.end()
    yield Token(Sort.END, "", offset)


def unexpected(pointer: str, text: str, offset: int, expected: str) -> Refused:
    shown = f"{text!r} at character {offset}" if text else "the end"
    return Refused("invalid-request", pointer=pointer, found=shown, expected=expected)


def _token(group: str, text: str, offset: int) -> Token:
    if group == "bare":
        is_word = text.lower() in WORDS
        return Token(Sort.WORD, text.lower(), offset) if is_word else Token(Sort.NAME, text, offset)
    if group == "text":
        return Token(Sort.TEXT, text.replace("''", "'"), offset)
    if group == "mark":
        return Token(Sort.MARK, "<>" if text == "!=" else text, offset)
    return Token(Sort(group), text, offset)
