"""Values as `values.py` has them, and the Arrow arrays that hold them."""

from collections.abc import Sequence
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from metasrv_base.schema.instants import SECONDS_MAX, SECONDS_MIN
from metasrv_base.schema.types import PER_SECOND, ColumnType
from metasrv_base.schema.values import Value

_EPOCH = date(1970, 1, 1)


def arrow_array(type: ColumnType, values: Sequence[object]) -> pa.Array:
    """Makes an Arrow array; values of a timestamp are numbers of units."""
    if type.name == "timestamp":
        return pa.array(values, pa.int64()).cast(type.arrow)
    return pa.array(values, type.arrow)


def values_of(type: ColumnType, array: pa.Array) -> list[Value | None]:
    """The inverse. None, too, for a day that has no date: Arrow has millions of years."""
    if type.name == "timestamp":
        array = array.cast(pa.int64())
    if type.name == "date":
        return [_date(day) for day in array.cast(pa.int32()).to_pylist()]
    values: list[Value | None] = array.to_pylist()
    return values


def has_nameless(type: ColumnType, array: pa.Array) -> bool:
    """Whether a day or an instant is beyond the years 0001 to 9999: Arrow has more of them than
    texts and Python can name."""
    if type.name == "date":
        low, high = (date.min - _EPOCH).days, (date.max - _EPOCH).days
        numbers = array.cast(pa.int32())
    elif type.name == "timestamp":
        per_second = PER_SECOND[type.unit]
        low, high = SECONDS_MIN * per_second, SECONDS_MAX * per_second + per_second - 1
        numbers = array.cast(pa.int64())
    else:
        return False
    span = pc.min_max(numbers).as_py()
    return span["min"] is not None and not low <= span["min"] <= span["max"] <= high


def _date(day: int | None) -> date | None:
    try:
        return None if day is None else _EPOCH + timedelta(days=day)
    except OverflowError:
        return None
