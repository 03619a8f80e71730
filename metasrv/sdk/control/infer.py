"""A TableSpec from an Arrow schema: what `metasrv import --create` shows. Pure."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from metasrv_base.errors import Refused
from metasrv_base.schema.arrow_types import holding
from metasrv_base.wire.api.tables import ColumnSpec, HashPartition, TableSpec

NO_TYPES: Mapping[str, str] = {}


def infer_spec(
    name: str,
    schema: pa.Schema,
    key: Sequence[str],
    partitions: int = 1,
    types: Mapping[str, str] = NO_TYPES,
) -> TableSpec:
    """All columns, `key` as the primary key, hashed over `partitions` regions. *types*: of columns
    whose type is not inferred, by name. Raises Refused."""
    missing = [column for column in key if column not in schema.names]
    if missing or not key:
        expected = "columns of the file: " + ", ".join(schema.names)
        raise Refused("invalid-request", pointer="/primary_key", found=missing, expected=expected)
    columns = tuple(
        ColumnSpec(
            name=field.name,
            type=types.get(field.name) or type_text(field),
            nullable=field.name not in key,
        )
        for field in schema
    )
    partition = HashPartition(by="hash", columns=tuple(key), count=partitions)
    return TableSpec(
        name=name,
        columns=columns,
        primary_key=tuple(key),
        partition=partition if partitions > 1 else None,
    )


def type_text(field: pa.Field) -> str:
    """Returns the narrowest column type that holds every value of an Arrow type. Raises Refused."""
    column_type = holding(field.type)
    if column_type is None:
        raise Refused(
            "invalid-request",
            pointer=f"/{field.name}",
            found=str(field.type),
            expected="a type that a table has",
        )
    return column_type.text
