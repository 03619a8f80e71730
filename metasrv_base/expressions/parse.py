"""An expression's text read into its tree: a small part of SQL, and nothing that could be called.

    x := x or x | x and x | not x | v | v = v  (<> != < <= > >=) | v is [not] null
       | v [not] in (v, ..) | v [not] between v and v
    v := v + v  (- * /) | - v | column | 12 | 1.5 | 1e3 | 'text' | true | false | ( x )

A column that is called like a word of the language, or has a `-` in its name, stands in double
quotes. A date, a timestamp or bytes are written as in JSON, in single quotes.
"""

from collections.abc import Callable, Mapping
from typing import get_args

from metasrv_base.errors import Refused
from metasrv_base.expressions.nodes import (
    Among,
    And,
    Arithmetic,
    Arithmetics,
    Between,
    Comparison,
    Comparisons,
    IsNull,
    Negative,
    Node,
    Not,
    Number,
    Or,
    Ref,
    TextLiteral,
    Truth,
)
from metasrv_base.expressions.tokens import Sort, Token, tokens, unexpected

CHARS_MAX = 4_096
DEPTH_MAX = 32
"""Bound on nested brackets and signs, which the parser reads by recursion."""
PARTS_MAX = 256
"""Operators and values."""

_COMPARISONS: Mapping[str, Comparisons] = {
    comparison: comparison for comparison in get_args(Comparisons)
}
_SUMS: Mapping[str, Arithmetics] = {"+": "+", "-": "-"}
_PRODUCTS: Mapping[str, Arithmetics] = {"*": "*", "/": "/"}


def parse(text: str, columns: Mapping[str, int], pointer: str = "") -> Node:
    """Parses a condition over *columns*, ids by name. Raises Refused `invalid-request` with the
    place in the text."""
    if len(text) > CHARS_MAX:
        expected = f"at most {CHARS_MAX} characters"
        raise Refused("invalid-request", pointer=pointer, found=len(text), expected=expected)
    parts = list(tokens(text, pointer))
    if len(parts) > PARTS_MAX:
        expected = f"at most {PARTS_MAX} words"
        raise Refused("invalid-request", pointer=pointer, found=len(parts), expected=expected)
    return _Reader(parts, columns, pointer).whole()


class _Reader:
    """One text from left to right."""

    def __init__(self, parts: list[Token], columns: Mapping[str, int], pointer: str) -> None:
        self._tokens = parts
        self._columns = columns
        self._pointer = pointer
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._or()
        if self._now.sort is not Sort.END:
            raise self._unexpected("an operator or the end")
        return node

    # -- one level of precedence each, the loosest first

    def _or(self) -> Node:
        node = self._and()
        while self._takes(Sort.WORD, "or"):
            node = Or(node, self._and())
        return node

    def _and(self) -> Node:
        node = self._not()
        while self._takes(Sort.WORD, "and"):
            node = And(node, self._not())
        return node

    def _not(self) -> Node:
        if self._takes(Sort.WORD, "not"):
            return Not(self._deeper(self._not))
        return self._predicate()

    def _predicate(self) -> Node:
        left = self._sum()
        if self._now.sort is Sort.MARK and self._now.text in _COMPARISONS:
            return Comparison(_COMPARISONS[self._next().text], left, self._sum())
        if self._takes(Sort.WORD, "is"):
            negated = self._takes(Sort.WORD, "not")
            self._must_take(Sort.WORD, "null")
            return IsNull(left, negated)
        negated = self._takes(Sort.WORD, "not")
        if self._takes(Sort.WORD, "in"):
            return Among(left, self._choices(), negated)
        if self._takes(Sort.WORD, "between"):
            low = self._sum()
            self._must_take(Sort.WORD, "and")
            return Between(left, low, self._sum(), negated)
        if negated:
            raise self._unexpected("in or between")
        return left

    def _choices(self) -> tuple[Node, ...]:
        self._must_take(Sort.MARK, "(")
        choices = [self._sum()]
        while self._takes(Sort.MARK, ","):
            choices.append(self._sum())
        self._must_take(Sort.MARK, ")")
        return tuple(choices)

    def _sum(self) -> Node:
        node = self._product()
        while self._now.sort is Sort.MARK and self._now.text in _SUMS:
            node = Arithmetic(_SUMS[self._next().text], node, self._product())
        return node

    def _product(self) -> Node:
        node = self._signed()
        while self._now.sort is Sort.MARK and self._now.text in _PRODUCTS:
            node = Arithmetic(_PRODUCTS[self._next().text], node, self._signed())
        return node

    def _signed(self) -> Node:
        if self._takes(Sort.MARK, "-"):
            return Negative(self._deeper(self._signed))
        return self._value()

    def _value(self) -> Node:
        token = self._next()
        match token.sort, token.text:
            case Sort.NUMBER, text:
                return Number(text)
            case Sort.TEXT, text:
                return TextLiteral(text)
            case Sort.WORD, "true" | "false":
                return Truth(token.text == "true")
            case Sort.NAME, name:
                return Ref(self._id(token, name))
            case Sort.MARK, "(":
                node = self._deeper(self._or)
                self._must_take(Sort.MARK, ")")
                return node
        self._at -= 1
        raise self._unexpected("a column, a constant or (")

    def _id(self, token: Token, name: str) -> int:
        if name not in self._columns:
            raise unexpected(self._pointer, name, token.offset, "a column of the table")
        return self._columns[name]

    # -- the words

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._now
        self._at += 1
        return token

    def _takes(self, sort: Sort, text: str) -> bool:
        is_it = (self._now.sort, self._now.text) == (sort, text)
        self._at += is_it
        return is_it

    def _must_take(self, sort: Sort, text: str) -> None:
        if not self._takes(sort, text):
            raise self._unexpected(text)

    def _deeper(self, read: Callable[[], Node]) -> Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._unexpected(f"at most {DEPTH_MAX} brackets within each other")
        node = read()
        self._depth -= 1
        return node

    def _unexpected(self, expected: str) -> Refused:
        return unexpected(self._pointer, self._now.text, self._now.offset, expected)
