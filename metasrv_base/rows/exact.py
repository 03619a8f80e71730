"""Arrow arrays of users in the exact type of a column, by the rules of a change of type. Pure.

Arrow rounds, cuts off and guesses where it casts from one kind of value to another. Who still
writes a column's former type has what is stored then (docs/decisions/0100), or is refused.
"""

import pyarrow as pa
import pyarrow.compute as pc

from metasrv_base.schema.arrow_types import holding
from metasrv_base.schema.conversion import Conversion, cast_to_decimals
from metasrv_base.schema.conversion_rules import WAYS, family
from metasrv_base.schema.types import ColumnType


def exactly(type: ColumnType, array: pa.Array) -> pa.Array:
    """Raises ArrowInvalid or ArrowNotImplementedError for what *type* cannot hold."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_decimal(array.type) and type.name == "decimal":
        return cast_to_decimals(array, type)
    source = holding(array.type)
    if source is None or family(source) == family(type):
        return _cast_within(type, array)
    if (family(source), family(type)) not in WAYS:
        return array.cast(type.arrow)  # as a number of units, of which nothing is lost
    converted = Conversion(source, type).of_array(array.cast(source.arrow))
    position = pc.index(converted.misfits, True).as_py()
    if position >= 0:
        raise pa.ArrowInvalid(f"the value at {position} is none of {type.text}")
    return converted.values


def _cast_within(type: ColumnType, array: pa.Array) -> pa.Array:
    """Casts to another type of the same family. A float is rounded to the nearest, as in JSON.
    Raises ArrowInvalid for one beyond the greatest float32, which would become infinite."""
    values = array.cast(type.arrow)
    if values.type == pa.float32() and array.type == pa.float64():
        overflows = pc.and_(pc.is_inf(values), pc.is_finite(array))
        position = pc.index(overflows, True).as_py()
        if position >= 0:
            raise pa.ArrowInvalid(f"the value at {position} is none of {type.text}")
    return values
