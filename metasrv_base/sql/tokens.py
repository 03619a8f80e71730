"""The tokens of one statement, cut by sqlglot's tokenizer without the words of any dialect.

Without them every word is a word: the grammar decides by its place whether it is a name, and a
column may be called `date` or `comment` (docs/decisions/0275).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from sqlglot import Token as SqlglotToken
from sqlglot import Tokenizer, TokenType
from sqlglot.errors import TokenError

from metasrv_base.sql.faults import fault_at
from metasrv_base.sql.split import StatementText

STATEMENT_CHARS_MAX = 1 << 20
"""The bound on one statement: its tokens take some fifty times as much memory."""


class SqlSort(StrEnum):
    WORD = "word"
    """A word of the language, or a name without quotes."""
    NAME = "name"
    """A name in double quotes."""
    TEXT = "text"
    """A string in single quotes."""
    BYTES = "bytes"
    """Bytes as X'00ff'; the text is the digits."""
    NUMBER = "number"
    """A number without a sign."""
    MARK = "mark"
    END = "end"


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Characters of the whole text, from `start` to before `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SqlToken:
    sort: SqlSort
    text: str
    """The token as written; a name or a string without its quotes."""
    span: TextSpan

    @property
    def word(self) -> str | None:
        """The word in capital letters; None: it is no word."""
        return self.text.upper() if self.sort is SqlSort.WORD else None


class _Tokenizer(Tokenizer):
    QUOTES: ClassVar[list[tuple[str, str] | str]] = ["'"]
    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"']
    HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]
    COMMENTS: ClassVar[list[str | tuple[str, str]]] = ["--", ("/*", "*/")]
    KEYWORDS: ClassVar[dict[str, TokenType]] = {}
    STRING_ESCAPES: ClassVar[list[str]] = ["'"]
    NESTED_COMMENTS = False
    HINT_START = ""


_SORTS: Mapping[TokenType, SqlSort] = {
    TokenType.VAR: SqlSort.WORD,
    TokenType.IDENTIFIER: SqlSort.NAME,
    TokenType.STRING: SqlSort.TEXT,
    TokenType.HEX_STRING: SqlSort.BYTES,
    TokenType.NUMBER: SqlSort.NUMBER,
}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_MARKS = frozenset("(),.=<>!+-*/%")


def tokens(statement: StatementText) -> tuple[SqlToken, ...]:
    """The tokens of a statement; the last is the END. Raises Refused `invalid-sql`."""
    source, start = statement.source, statement.start
    if statement.end - start > STATEMENT_CHARS_MAX:
        actual = f"a statement of {statement.end - start} characters"
        expected = f"at most {STATEMENT_CHARS_MAX}"
        raise fault_at(source, start, actual=actual, expected=expected)
    try:
        cut = _Tokenizer().tokenize(statement.text)
    except TokenError as error:
        expected = "words, names, numbers and strings of SQL"
        raise fault_at(source, start, actual=statement.text, expected=expected) from error
    return (
        *_typed_tokens(cut, statement),
        SqlToken(SqlSort.END, "", TextSpan(statement.end, statement.end)),
    )


def _typed_tokens(cut: list[SqlglotToken], statement: StatementText) -> Iterator[SqlToken]:
    """Yields our tokens. A number that a word follows without a blank is none."""
    source, before = statement.source, None
    for token in cut:
        span = TextSpan(statement.start + token.start, statement.start + token.end + 1)
        written = source[span.start : span.end]
        sort = _SORTS.get(token.token_type, SqlSort.MARK)
        is_glued = before is not None and before.span.end == span.start
        if not _is_right(sort, written) or (is_glued and _is_part(before, sort)):
            expected = "a word, a name, a number or a string"
            raise fault_at(source, span.start, actual=written, expected=expected)
        before = SqlToken(sort, token.text, span)
        yield before


def _is_right(sort: SqlSort, written: str) -> bool:
    match sort:
        case SqlSort.WORD:
            return _WORD.fullmatch(written) is not None
        case SqlSort.NUMBER:
            return _NUMBER.fullmatch(written) is not None
        case SqlSort.BYTES:
            return written[0] in "xX"
        case SqlSort.NAME:
            return len(written) > 2
        case SqlSort.MARK:
            return written in _MARKS
    return True


def _is_part(before: SqlToken | None, sort: SqlSort) -> bool:
    """Whether a token that follows without a blank makes one thing with the one before it."""
    apart = (SqlSort.MARK, SqlSort.END)
    return before is not None and before.sort not in apart and sort not in apart
