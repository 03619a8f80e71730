"""Constants of SQL, printed from their JSON forms (metasrv_base/schema/values.py). `constants.py`
reads them; it needs a tokenizer, and clients print alone."""

import base64

from metasrv_base.schema.types import ColumnType
from metasrv_base.sql.quoting import quoted


def literal(value: object, type: ColumnType | None) -> str:
    """The constant that `constant` reads as *value*, the JSON form of a value of *type*."""
    name = None if type is None else type.name
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str() if name == "binary":
            return f"X'{base64.b64decode(value).hex()}'"
        case str() if name == "decimal":
            return value
        case str():
            return quoted(value)
    return repr(value)
