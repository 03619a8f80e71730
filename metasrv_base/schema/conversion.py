"""Converts values of a column that were written with another type: one, or an array."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from metasrv_base.errors import Refused
from metasrv_base.schema.arrays import arrow_array, values_of
from metasrv_base.schema.conversion_rules import WAYS, ConversionRule, family
from metasrv_base.schema.types import DECIMAL_PRECISION_MAX, ColumnType
from metasrv_base.schema.values import Value


@dataclass(frozen=True, slots=True)
class ConvertedArray:
    values: pa.Array
    """Array of the target's Arrow type; null where a value was null or did not fit."""
    misfits: pa.Array
    """Booleans, never null: which values did not fit."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """Conversion of values of one type to another. Callers handle null, which stays null."""

    source: ColumnType
    target: ColumnType

    @property
    def is_lossless(self) -> bool:
        """Whether every value fits."""
        return self._way.is_lossless(self.source, self.target)

    @property
    def reverse(self) -> "Conversion":
        """Back. What comes back is equal to what went, as far as the source knows equal: of a
        number's text the value, of a zero no sign."""
        return conversion_of(self.target, self.source)

    def of_value(self, value: Value, pointer: str = "") -> Value:
        """Raises Refused `invalid-request` if the value does not fit."""
        converted = self._way.of_value(self.source, self.target, value)
        if converted is None:
            raise Refused(
                "invalid-request",
                pointer=pointer,
                type=self.source.text,
                found=repr(value)[:64],
                expected=f"a value that {self.target.text} can hold",
            )
        return converted

    def of_array(self, array: pa.Array) -> ConvertedArray:
        """Converts each value as `of_value` does."""
        try:
            values = self._cast(array)
        except pa.ArrowInvalid:
            values = self._one_by_one(array)
        return ConvertedArray(values, pc.and_(array.is_valid(), values.is_null()))

    def _cast(self, array: pa.Array) -> pa.Array:
        """All at once, by Arrow; ArrowInvalid where it does not know, or knows better."""
        if self.source == self.target:
            return array
        match family(self.source), family(self.target):
            case ("float", "float"):
                return self._floats(array)
            case (("integer" | "decimal"), "decimal"):
                return cast_to_decimals(array, self.target)
            case pair if pair in _AS_ARROW:
                return array.cast(self.target.arrow)
        raise pa.ArrowInvalid

    def _floats(self, array: pa.Array) -> pa.Array:
        """Arrow rounds without a word."""
        converted = array.cast(self.target.arrow)
        fits = pc.or_(pc.equal(converted.cast(self.source.arrow), array), pc.is_nan(array))
        return pc.if_else(fits, converted, pa.scalar(None, self.target.arrow))

    def _one_by_one(self, array: pa.Array) -> pa.Array:
        """Each distinct value once."""
        distinct = array.dictionary_encode()
        way = self._way.of_value
        values = [
            None if value is None else way(self.source, self.target, value)
            for value in values_of(self.source, distinct.dictionary)
        ]
        return arrow_array(self.target, values).take(distinct.indices)

    @property
    def _way(self) -> ConversionRule:
        return WAYS[family(self.source), family(self.target)]


def conversion_of(source: ColumnType, target: ColumnType) -> Conversion:
    """Raises Refused `invalid-schema-change` where values of one are none of the other."""
    if (family(source), family(target)) not in WAYS:
        raise Refused(
            "invalid-schema-change",
            found=source.text,
            expected=target.text,
            reason=f"no value of {source.text} is one of {target.text}",
        )
    return Conversion(source, target)


def cast_to_decimals(numbers: pa.Array, type: ColumnType) -> pa.Array:
    """Integers or decimals, exactly. Raises ArrowInvalid if one does not fit.

    In 256 bits, since 128 bits that are scaled up too far wrap, and Arrow mostly does not see it.
    """
    if pa.types.is_decimal(numbers.type) and numbers.type.scale < type.scale:
        numbers = numbers.cast(pa.decimal128(DECIMAL_PRECISION_MAX, numbers.type.scale))
    wide = pa.decimal256(2 * DECIMAL_PRECISION_MAX, type.scale)
    return numbers.cast(wide).cast(type.arrow)


_AS_ARROW = frozenset(
    {
        ("boolean", "integer"),
        ("boolean", "string"),
        ("integer", "integer"),
        ("integer", "float"),
        ("integer", "string"),
        ("float", "integer"),
        ("decimal", "integer"),
        ("string", "binary"),
        ("binary", "string"),
        ("date", "timestamp"),
        ("timestamp", "timestamp"),
    }
)
"""Pairs of families where Arrow's checked cast says of whole arrays what we say, or fails."""
