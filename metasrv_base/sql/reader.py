"""One statement read from left to right: what the grammars are made of."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from metasrv_base.errors import Refused
from metasrv_base.sql.faults import fault_at, near
from metasrv_base.sql.split import StatementText
from metasrv_base.sql.tokens import SqlSort, SqlToken, TextSpan, tokens

T = TypeVar("T")


class Reader:
    """The tokens of a statement, and the place that is read next."""

    def __init__(self, statement: StatementText) -> None:
        self.statement = statement
        self.places: dict[str, TextSpan] = {}
        """JSON pointer into what the statement asks for -> where the text says it."""
        self._tokens = tokens(statement)
        self._next = 0

    def rewind(self) -> None:
        """Begins again, with the same tokens."""
        self.places, self._next = {}, 0

    # -- looking

    @property
    def token(self) -> SqlToken:
        """The token that comes next."""
        return self._tokens[self._next]

    def is_next(self, *words: str) -> bool:
        """Whether these words and marks come next, in this order."""
        ahead = self._tokens[self._next : self._next + len(words)]
        return len(ahead) == len(words) and all(map(_is, ahead, words))

    @property
    def is_at_end(self) -> bool:
        return self.token.sort is SqlSort.END

    # -- reading

    def take(self) -> SqlToken:
        token = self.token
        self._next += token.sort is not SqlSort.END
        return token

    def takes(self, *words: str) -> bool:
        """Reads these words and marks if all of them come next."""
        there = self.is_next(*words)
        self._next += len(words) if there else 0
        return there

    def must_take(self, *words: str) -> None:
        for word in words:
            if not self.takes(word):
                raise self.unexpected(word, choices=(word,))

    def choose(self, *words: str) -> str:
        """Reads one of *words*."""
        for word in words:
            if self.takes(word):
                return word
        raise self.unexpected(_either(words), choices=words)

    def name(self, expected: str, pointer: str | None = None) -> str:
        """Reads a name, with or without quotes. Case counts, with quotes and without."""
        token = self.token
        if token.sort not in (SqlSort.WORD, SqlSort.NAME):
            raise self.unexpected(expected)
        if pointer is not None:
            self.places[pointer] = token.span
        return self.take().text

    def text(self, expected: str, pointer: str | None = None) -> str:
        """Reads a string."""
        if self.token.sort is not SqlSort.TEXT:
            raise self.unexpected(f"{expected}, in single quotes")
        if pointer is not None:
            self.places[pointer] = self.token.span
        return self.take().text

    def whole_number(self, expected: str, pointer: str | None = None) -> int:
        if self.token.sort is not SqlSort.NUMBER or not self.token.text.isdigit():
            raise self.unexpected(expected)
        if pointer is not None:
            self.places[pointer] = self.token.span
        return int(self.take().text)

    def listed(self, read: Callable[[int], T]) -> tuple[T, ...]:
        """Reads `( item, .. )`, at least one; *read* is told the number of its item, from 0."""
        self.must_take("(")
        items = self.several(read)
        if not self.takes(")"):
            raise self.unexpected(", or )")
        return items

    def several(self, read: Callable[[int], T]) -> tuple[T, ...]:
        """Reads `item, ..`, at least one."""
        items = [read(0)]
        while self.takes(","):
            items.append(read(len(items)))
        return tuple(items)

    def bracketed(self) -> tuple[str, TextSpan]:
        """Reads `( .. )` as it is written, without the outer brackets."""
        self.must_take("(")
        start, depth = self.token.span.start, 1
        while True:
            token = self.take()
            if token.sort is SqlSort.END:
                raise self.unexpected(")")
            depth += _is(token, "(") - _is(token, ")")
            if not depth:
                span = TextSpan(start, token.span.start)
                return self.statement.source[span.start : span.end].strip(), span

    @contextmanager
    def placed(self, pointer: str) -> Iterator[None]:
        """Notes that the text read within says that part of what the statement asks for."""
        first = self._next
        yield
        last = max(first, self._next - 1)
        self.places[pointer] = TextSpan(self._tokens[first].span.start, self._tokens[last].span.end)

    def must_end(self, expected: str = "the end of the statement") -> None:
        if not self.is_at_end:
            raise self.unexpected(expected)

    # -- refusing

    def unexpected(
        self, expected: str, *, choices: Sequence[str] = (), token: SqlToken | None = None
    ) -> Refused:
        """The refusal of a token, by default the next one; *choices*: words of which one may have
        been meant."""
        token = token or self.token
        span = token.span
        actual = self.statement.source[span.start : span.end]
        hint = near(token.text, choices) if token.sort is SqlSort.WORD else {}
        return fault_at(self.statement.source, span.start, actual=actual, expected=expected, **hint)


def _is(token: SqlToken, word: str) -> bool:
    if token.sort is SqlSort.MARK:
        return token.text == word
    return token.word == word


def _either(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
