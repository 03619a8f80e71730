"""Arrow arrays of users in the exact type of a column, by the rules of a change of type. Pure.

Arrow rounds, cuts off and guesses where it casts from one kind of value to another. Who still
writes a column's former type has what is stored then (docs/decisions/0100), or is refused.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from base.schema.conversion import Conversion, cast_to_decimals
from base.schema.conversion_ways import WAYS, family
from base.schema.types import DECIMAL_PRECISION_MAX, ColumnType, parse_type

Matches = Callable[[pa.DataType], bool]
_PLAIN: tuple[tuple[Matches, str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_signed_integer, "int64"),
    (pa.types.is_float16, "float32"),
    (pa.types.is_float32, "float32"),
    (pa.types.is_float64, "float64"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_string_view, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_date, "date"),
)


def exactly(type: ColumnType, found: pa.Array) -> pa.Array:
    """Raises ArrowInvalid or ArrowNotImplementedError for what *type* cannot hold."""
    if pa.types.is_dictionary(found.type):
        found = found.dictionary_decode()
    if pa.types.is_decimal(found.type) and type.name == "decimal":
        return cast_to_decimals(found, type)
    source = _type_of(found.type)
    if source is None or family(source) == family(type):
        return found.cast(type.arrow)
    if (family(source), family(type)) not in WAYS:
        return found.cast(type.arrow)  # as a number of units, of which nothing is lost
    converted = Conversion(source, type).of_array(found.cast(source.arrow))
    place = pc.index(converted.misfits, True).as_py()
    if place >= 0:
        raise pa.ArrowInvalid(f"the value at {place} is none of {type.text}")
    return converted.values


def _type_of(type: pa.DataType) -> ColumnType | None:
    """Of our types the one with exactly these values, or more; None: not known."""
    if pa.types.is_timestamp(type):
        return parse_type(f"timestamp({type.unit})")
    if pa.types.is_decimal(type) and 0 <= type.scale <= type.precision <= DECIMAL_PRECISION_MAX:
        return parse_type(f"decimal({type.precision},{type.scale})")
    return next((parse_type(text) for matches, text in _PLAIN if matches(type)), None)
