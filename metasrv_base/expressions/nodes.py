"""An expression over the columns of one row, as a tree: what is asked. It computes nothing.

Columns are named by id, so that a rename leaves every expression as it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

Arithmetics: TypeAlias = Literal["+", "-", "*", "/"]
Comparisons: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Ref:
    column: int


@dataclass(frozen=True, slots=True)
class Number:
    text: str
    """The number as it is written: `12`, `1.50`, `1e3`; never negative."""


@dataclass(frozen=True, slots=True)
class TextLiteral:
    value: str
    """A string; beside a date, a timestamp or bytes the JSON form of such a value."""


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool


@dataclass(frozen=True, slots=True)
class Negative:
    of: "Node"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    op: Arithmetics
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Comparison:
    op: Comparisons
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class IsNull:
    of: "Node"
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Among:
    """`of in (choices)`."""

    of: "Node"
    choices: tuple["Node", ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between:
    """Both ends included."""

    of: "Node"
    low: "Node"
    high: "Node"
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Not:
    of: "Node"


@dataclass(frozen=True, slots=True)
class And:
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Or:
    left: "Node"
    right: "Node"


Value: TypeAlias = Ref | Number | TextLiteral | Truth | Negative | Arithmetic
Predicate: TypeAlias = Comparison | IsNull | Among | Between
Node: TypeAlias = Value | Predicate | Not | And | Or


def parts_of(node: Node) -> tuple[Node, ...]:
    """Returns the child nodes, in the order of the text."""
    match node:
        case Ref() | Number() | TextLiteral() | Truth():
            return ()
        case Negative(of) | IsNull(of) | Not(of):
            return (of,)
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            return left, right
        case And(left, right) | Or(left, right):
            return left, right
        case Among(of, choices):
            return of, *choices
        case Between(of, low, high):
            return of, low, high
        case _:
            assert_never(node)


def columns_of(node: Node) -> tuple[int, ...]:
    """Ids of the columns that it names, each once, in the order of its text."""
    return tuple(dict.fromkeys(_refs(node)))


def _refs(node: Node) -> Iterator[int]:
    if isinstance(node, Ref):
        yield node.column
    for part in parts_of(node):
        yield from _refs(part)
