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
    at: int
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
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise unexpected(pointer, text[at], at, "a column, a constant or an operator")
        if found.lastgroup is not None:
            yield _token(found.lastgroup, found[found.lastgroup], at)
        at = found.end()
    yield Token(Sort.END, "", at)


def unexpected(pointer: str, found: str, at: int, expected: str) -> Refused:
    shown = f"{found!r} at character {at}" if found else "the end"
    return Refused("invalid-request", pointer=pointer, found=shown, expected=expected)


def _token(group: str, text: str, at: int) -> Token:
    if group == "bare":
        is_word = text.lower() in WORDS
        return Token(Sort.WORD, text.lower(), at) if is_word else Token(Sort.NAME, text, at)
    if group == "text":
        return Token(Sort.TEXT, text.replace("''", "'"), at)
    if group == "mark":
        return Token(Sort.MARK, "<>" if text == "!=" else text, at)
    return Token(Sort(group), text, at)
