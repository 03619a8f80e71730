"""The text of an expression: `parse` reads the same tree out of it, whatever columns are called.

It is also the stored form (tests/golden/base/expressions.txt), with `c{id}` for every column.
"""

import re
from collections.abc import Callable
from typing import assert_never

from metasrv_base.expressions.nodes import (
    Among,
    And,
    Arithmetic,
    Between,
    Comparison,
    IsNull,
    Negative,
    Node,
    Not,
    Number,
    Or,
    Predicate,
    Ref,
    TextLiteral,
    Truth,
    Value,
    columns_of,
)
from metasrv_base.expressions.parse import parse
from metasrv_base.expressions.tokens import WORDS

OR, AND, NOT, PREDICATE, SUM, PRODUCT, SIGNED, VALUE = range(8)
"""Binding strengths; an operator that binds tighter has a higher one."""
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_STORED_COLUMN = re.compile(r"\bc([0-9]+)\b")


def text_of(node: Node, name_of: Callable[[int], str]) -> str:
    return _Writer(name_of).write(node, OR)


def stored(node: Node) -> str:
    return text_of(node, lambda id: f"c{id}")


def restored(text: str) -> Node:
    """The inverse of `stored`."""
    names = {match[0]: int(match[1]) for match in _STORED_COLUMN.finditer(text)}
    return parse(text, names)


def stored_columns(text: str) -> tuple[int, ...]:
    return columns_of(restored(text))


class _Writer:
    def __init__(self, name_of: Callable[[int], str]) -> None:
        self._name_of = name_of

    def write(self, node: Node, level: int) -> str:
        """Returns the text of a part, in brackets if it binds looser than *level*."""
        own, text = self._written(node)
        return f"({text})" if own < level else text

    def _written(self, node: Node) -> tuple[int, str]:
        match node:
            case Not(of):
                return NOT, f"not {self.write(of, NOT)}"
            case And(left, right):
                return AND, f"{self.write(left, AND)} and {self.write(right, NOT)}"
            case Or(left, right):
                return OR, f"{self.write(left, OR)} or {self.write(right, AND)}"
            case Comparison() | IsNull() | Among() | Between():
                return PREDICATE, self._predicate(node)
            case _:
                return self._value(node)

    def _value(self, node: Value) -> tuple[int, str]:
        match node:
            case Ref(column):
                return VALUE, _name(self._name_of(column))
            case Number(text):
                return VALUE, text
            case TextLiteral(value):
                return VALUE, "'" + value.replace("'", "''") + "'"
            case Truth(value):
                return VALUE, str(value).lower()
            case Negative(of):
                return SIGNED, f"-{self.write(of, SIGNED)}"
            case Arithmetic(op, left, right):
                level = SUM if op in "+-" else PRODUCT
                return level, f"{self.write(left, level)} {op} {self.write(right, level + 1)}"
            case _:
                assert_never(node)

    def _predicate(self, node: Predicate) -> str:
        if isinstance(node, Comparison):
            return f"{self.write(node.left, SUM)} {node.op} {self.write(node.right, SUM)}"
        of, negation = self.write(node.of, SUM), "not " if node.negated else ""
        match node:
            case IsNull():
                return f"{of} is {negation}null"
            case Among():
                choices = ", ".join(self.write(choice, SUM) for choice in node.choices)
                return f"{of} {negation}in ({choices})"
            case Between():
                low, high = self.write(node.low, SUM), self.write(node.high, SUM)
                return f"{of} {negation}between {low} and {high}"


def _name(name: str) -> str:
    is_plain = _BARE.fullmatch(name) is not None and name.lower() not in WORDS
    return name if is_plain else f'"{name}"'
