"""The value of an expression for one row, computed a second time: by walking its tree, in Python.

None is unknown. Raises ArithmeticError for a row whose value cannot be computed.
"""

import operator
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, localcontext
from functools import reduce
from typing import Any

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
)

Row = Mapping[int, Any]
COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def breaks(node: Node, row: Row) -> bool:
    try:
        with localcontext(Context(prec=200)):
            return said(node, row) is False
    except ArithmeticError:
        return True


def said(node: Node, row: Row) -> Any:
    match node:
        case Ref(column):
            return row[column]
        case Number(text):
            return _number(text)
        case TextLiteral(value) | Truth(value):
            return value
        case Negative(of):
            value = said(of, row)
            return None if value is None else _whole(-value)
        case Arithmetic(op, left, right):
            return _arithmetic(op, said(left, row), said(right, row))
        case Not(of):
            return _not(said(of, row), True)
        case And(left, right):
            return _and(said(left, row), said(right, row))
        case Or(left, right):
            return _or(said(left, row), said(right, row))
        case _:
            return _asked(node, row)


def _asked(node: Predicate, row: Row) -> bool | None:
    match node:
        case Comparison(op, left, right):
            return _compared(op, said(left, row), said(right, row))
        case IsNull(of, negated):
            return (said(of, row) is None) is not negated
        case Among(of, choices, negated):
            value = said(of, row)
            found = [_compared("=", value, said(one, row)) for one in choices]
            return _not(reduce(_or, found), negated)
        case Between(of, low, high, negated):
            value = said(of, row)
            ends = _compared(">=", value, said(low, row)), _compared("<=", value, said(high, row))
            return _not(_and(*ends), negated)


def _number(text: str) -> int | float | Decimal:
    if "e" in text.lower():
        return float(text)
    return Decimal(text) if "." in text else int(text)


def _pair(left: Any, right: Any) -> tuple[Any, Any]:
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    return left, right


def _compared(op: str, left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else COMPARE[op](*_pair(left, right))


def _arithmetic(op: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    left, right = _pair(left, right)
    if op == "/" and right == 0:
        raise ZeroDivisionError
    if op == "/" and isinstance(left, int):
        found = abs(left) // abs(right)
        return _whole(found if (left < 0) is (right < 0) else -found)
    compute = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
    return _whole(compute[op](left, right))


def _whole(value: Any) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OverflowError
    return value


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _not(value: bool | None, negated: bool) -> bool | None:
    return value if value is None or not negated else not value
