"""An expression with its types judged, as calls of Arrow functions over whole columns.

Whole numbers are computed in int64, floats in float64, decimals exactly; whatever overflows or
divides by zero is an error of its row. Values are compared within their sort; a number with any
other number. Nothing is converted silently between text and numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from metasrv_base.errors import Refused
from metasrv_base.expressions.nodes import (
    Among,
    And,
    Arithmetic,
    Between,
    Comparison,
    Comparisons,
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
)
from metasrv_base.schema.types import ColumnType
from metasrv_base.schema.values import from_json

BOOLEAN, INTEGER, FLOAT = pa.bool_(), pa.int64(), pa.float64()
CAST = "cast"
DIGITS_MAX = 76  # of a decimal256
INTEGER_DIGITS = 19

_COMPARE: Mapping[Comparisons, str] = {
    "=": "equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_COMPUTE = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked"}
_DIVIDE = {"/": "divide_checked"}


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """Values of a column, as they are stored."""

    column: int
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Constant:
    value: pa.Scalar

    @property
    def type(self) -> pa.DataType:
        return self.value.type

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as an array of one value: Arrow pickles a scalar as a Python value, which has
        no nanoseconds."""
        return _constant, (pa.repeat(self.value, 1),)


@dataclass(frozen=True, slots=True)
class TypedCall:
    """A call of an Arrow function, without options: those cannot be sent to another process."""

    function: str
    of: tuple["Typed", ...]
    type: pa.DataType


def _constant(array: pa.Array) -> Constant:
    return Constant(array[0])


Typed: TypeAlias = ColumnValues | Constant | TypedCall
Types: TypeAlias = Mapping[int, ColumnType]


def typed(node: Node, types: Types, pointer: str = "") -> Typed:
    """Types a condition; *types* are those of columns, by id. Raises Refused `invalid-request`
    unless it is true or false (or null) of every row."""
    condition = _TypeChecker(types, pointer).checked(node)
    if condition.type != BOOLEAN:
        raise _wrong(pointer, str(condition.type), "a condition, true or false of a row")
    return condition


@dataclass(frozen=True, slots=True)
class _TypeChecker:
    types: Types
    pointer: str

    def checked(self, node: Node) -> Typed:
        match node:
            case Not(of):
                return _negated(self._condition(of), True)
            case And(left, right):
                return _both(self._condition(left), self._condition(right))
            case Or(left, right):
                return _either(self._condition(left), self._condition(right))
            case Comparison() | IsNull() | Among() | Between():
                return self._predicate(node)
            case _:
                return self._value(node)

    def _value(self, node: Value) -> Typed:
        match node:
            case Ref(column):
                return ColumnValues(column, self.types[column].arrow)
            case Number(text):
                return self._number(text)
            case TextLiteral(value):
                return Constant(pa.scalar(value, pa.string()))
            case Truth(value):
                return Constant(pa.scalar(value, BOOLEAN))
            case Negative(of):
                operand = self._computable(self.checked(of))
                return TypedCall("negate_checked", (operand,), operand.type)
            case Arithmetic():
                return self._arithmetic(node)
            case _:
                assert_never(node)

    def _predicate(self, node: Predicate) -> Typed:
        match node:
            case Comparison(op, left, right):
                return self._compared(op, left, right)
            case IsNull(of, negated):
                return TypedCall("is_valid" if negated else "is_null", (self.checked(of),), BOOLEAN)
            case Among(of, choices, negated):
                equal = [self._compared("=", of, choice) for choice in choices]
                return _negated(reduce(_either, equal), negated)
            case Between(of, low, high, negated):
                ends = (self._compared(">=", of, low), self._compared("<=", of, high))
                return _negated(_both(*ends), negated)
            case _:
                assert_never(node)

    def _condition(self, node: Node) -> Typed:
        operand = self.checked(node)
        if operand.type != BOOLEAN:
            raise _wrong(self.pointer, str(operand.type), "a condition beside and, or, not")
        return operand

    def _number(self, text: str) -> Constant:
        if not set(text) <= set("0123456789."):
            return Constant(pa.scalar(float(text), FLOAT))
        value = Decimal(text)
        exponent = value.as_tuple().exponent
        scale = -exponent if isinstance(exponent, int) else 0
        digits = max(len(value.as_tuple().digits), scale, 1)
        if scale == 0 and value < 2**63:
            return Constant(pa.scalar(int(value), INTEGER))
        if digits > DIGITS_MAX:
            raise _wrong(self.pointer, text, f"a number of at most {DIGITS_MAX} digits")
        return Constant(pa.scalar(value, pa.decimal256(digits, scale)))

    def _computable(self, operand: Typed) -> Typed:
        """A number as it is computed with."""
        if pa.types.is_integer(operand.type):
            return _cast(operand, INTEGER)
        if pa.types.is_floating(operand.type):
            return _cast(operand, FLOAT)
        if pa.types.is_decimal(operand.type):
            return _cast(operand, pa.decimal256(operand.type.precision, operand.type.scale))
        raise _wrong(self.pointer, str(operand.type), "a number to compute with")

    def _arithmetic(self, node: Arithmetic) -> Typed:
        left, right = (self._computable(self.checked(side)) for side in (node.left, node.right))
        is_decimal = pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type)
        if FLOAT in (left.type, right.type):
            left, right = _cast(left, FLOAT), _cast(right, FLOAT)
        elif is_decimal:
            left, right = _as_decimal(left), _as_decimal(right)
        name = {**_COMPUTE, **_DIVIDE}[node.op]
        if not pa.types.is_decimal(left.type):
            return TypedCall(name, (left, right), left.type)
        if node.op in _DIVIDE:
            raise _wrong(self.pointer, "a division of decimals", "one of floats or of integers")
        if node.op == "*" and left.type.precision + right.type.precision >= DIGITS_MAX:
            raise self._too_wide()
        if node.op != "*":
            left, right = self._alike(left, right, spare=1)
        none = [pa.array([], side.type) for side in (left, right)]
        return TypedCall(name, (left, right), pc.call_function(name, none).type)

    def _alike(self, left: Typed, right: Typed, spare: int = 0) -> tuple[Typed, Typed]:
        """Two decimals at one scale. *spare*: digits that the result may need more."""
        scale = max(left.type.scale, right.type.scale)
        whole = max(side.type.precision - side.type.scale for side in (left, right))
        if scale + whole + spare > DIGITS_MAX:
            raise self._too_wide()
        type = pa.decimal256(scale + whole, scale)
        return _cast(left, type), _cast(right, type)

    def _too_wide(self) -> Refused:
        return _wrong(self.pointer, "decimals too wide", f"{DIGITS_MAX} digits are enough for all")

    def _compared(self, op: Comparisons, left: Node, right: Node) -> Typed:
        pair = self._comparable(self.checked(left), self.checked(right))
        if pair[0].type == BOOLEAN and op not in ("=", "<>"):
            raise _wrong(self.pointer, f"boolean {op}", "= or <> of true and false")
        return TypedCall(_COMPARE[op], pair, BOOLEAN)

    def _comparable(self, left: Typed, right: Typed) -> tuple[Typed, Typed]:
        left, right = self._said_for(left, right.type), self._said_for(right, left.type)
        if left.type == right.type:
            return left, right
        if not (_is_number(left.type) and _is_number(right.type)):
            raise _wrong(self.pointer, f"{left.type} beside {right.type}", "values of one sort")
        left, right = self._computable(left), self._computable(right)
        if FLOAT in (left.type, right.type):
            return _cast(left, FLOAT), _cast(right, FLOAT)
        if left.type == right.type:
            return left, right
        return self._alike(_as_decimal(left), _as_decimal(right))

    def _said_for(self, operand: Typed, other: pa.DataType) -> Typed:
        """A text beside a date, a timestamp or bytes is one of those."""
        type = _WRITTEN.get(other)
        if type is None or not isinstance(operand, Constant) or operand.type != pa.string():
            return operand
        value = from_json(type, operand.value.as_py(), self.pointer)
        stored = pa.int64() if type.name == "timestamp" else type.arrow
        return Constant(pa.scalar(value, stored).cast(type.arrow))


_WRITTEN: Mapping[pa.DataType, ColumnType] = {
    type.arrow: type
    for type in (
        ColumnType("date"),
        ColumnType("binary"),
        *(ColumnType("timestamp", unit=unit) for unit in ("s", "ms", "us", "ns")),
    )
}


def _is_number(type: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)
    )


def _as_decimal(operand: Typed) -> Typed:
    is_decimal = pa.types.is_decimal(operand.type)
    return operand if is_decimal else _cast(operand, pa.decimal256(INTEGER_DIGITS, 0))


def _cast(operand: Typed, type: pa.DataType) -> Typed:
    if operand.type == type:
        return operand
    return TypedCall(CAST, (operand,), type)


def _negated(operand: Typed, negated: bool) -> Typed:
    return TypedCall("invert", (operand,), BOOLEAN) if negated else operand


def _both(left: Typed, right: Typed) -> Typed:
    return TypedCall("and_kleene", (left, right), BOOLEAN)


def _either(left: Typed, right: Typed) -> Typed:
    return TypedCall("or_kleene", (left, right), BOOLEAN)


def _wrong(pointer: str, actual: str, expected: str) -> Refused:
    return Refused("invalid-request", pointer=pointer, found=actual, expected=expected)


def computed(operand: Typed, columns: Mapping[int, pa.Array]) -> pa.Array | pa.Scalar:
    """Evaluates *operand* to one value for each row; constants alone give one value for all.
    Raises ArrowInvalid if the value of a row cannot be computed."""
    match operand:
        case ColumnValues(column):
            return columns[column]
        case Constant(value):
            return value
        case TypedCall(function, of, type):
            arguments: Sequence[object] = [computed(argument, columns) for argument in of]
            options = pc.CastOptions.unsafe(type) if function == CAST else None
            return pc.call_function(function, arguments, options)
        case _:
            assert_never(operand)
