"""A value of each type for rows that nobody gave one."""

from collections.abc import Mapping

from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import ColumnType

_ZEROS: Mapping[str, JsonScalar] = {
    "boolean": False,
    "int8": 0,
    "int16": 0,
    "int32": 0,
    "int64": 0,
    "float32": 0.0,
    "float64": 0.0,
    "string": "",
    "binary": "",
    "date": "1970-01-01",
    "timestamp": "1970-01-01T00:00:00Z",
}


def zero_of(type: ColumnType) -> JsonScalar:
    """Returns the zero of *type* in JSON form."""
    if type.name == "decimal":
        return f"{0:.{type.scale}f}"
    return _ZEROS[type.name]
