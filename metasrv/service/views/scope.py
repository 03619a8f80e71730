"""The part of a filter that saves work: columns that must have one of some values. Pure.

A scope only ever leaves out what the whole filter would refuse: the filter judges each row that the
scope lets through, so a scope that knows less is slow, never wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from metasrv_base.expressions.nodes import (
    Among,
    And,
    Comparison,
    Node,
    Number,
    Ref,
    TextLiteral,
)

ScopeValue = str | int


@dataclass(frozen=True, slots=True)
class ViewScope:
    """Conditions that every row of an answer fulfils."""

    values: Mapping[str, frozenset[ScopeValue]] = field(default_factory=dict)
    """Column -> the values that it may have."""

    def texts(self, column: str) -> frozenset[str] | None:
        """The texts that the column may have; None: any."""
        values = self.values.get(column)
        return None if values is None else frozenset(v for v in values if isinstance(v, str))

    def numbers(self, column: str) -> frozenset[int] | None:
        """The numbers that the column may have; None: any."""
        values = self.values.get(column)
        return None if values is None else frozenset(v for v in values if isinstance(v, int))


EVERYTHING = ViewScope()


def scope_of(node: Node, names: tuple[str, ...]) -> ViewScope:
    """Reads `column = constant` and `column IN (..)` of what AND joins. *names*: of the columns, by
    id."""
    values: dict[str, frozenset[ScopeValue]] = {}
    for part in _conjuncts(node):
        column, choices = _equality(part)
        if column is None:
            continue
        name = names[column]
        values[name] = values[name] & choices if name in values else choices
    return ViewScope(values)


def _conjuncts(node: Node) -> list[Node]:
    if isinstance(node, And):
        return [*_conjuncts(node.left), *_conjuncts(node.right)]
    return [node]


def _equality(node: Node) -> tuple[int | None, frozenset[ScopeValue]]:
    """A column and the only values it may have; None: the part says no such thing."""
    match node:
        case Comparison("=", Ref(column), other) | Comparison("=", other, Ref(column)):
            choices = (other,)
        case Among(Ref(column), choices, negated=False):
            pass
        case _:
            return None, frozenset()
    values = [_constant(choice) for choice in choices]
    if any(value is None for value in values):
        return None, frozenset()
    return column, frozenset(value for value in values if value is not None)


def _constant(node: Node) -> ScopeValue | None:
    match node:
        case TextLiteral(value):
            return value
        case Number(text) if text.isdigit():
            return int(text)
    return None
