"""What a batch must look like before a region orders it; a refused batch has changed nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from base.errors import Refused
from dataplane.region.columns import (
    DELETE,
    EXPECT,
    KEY,
    OP,
    PUT,
    ColumnDef,
    log_schema,
    originals,
)

ABSENT = 0
"""Expected version of a key that must not be there."""


@dataclass(frozen=True, slots=True)
class Intake:
    """A batch in the region's own form."""

    rows: pa.RecordBatch
    """As `columns.log_schema`: every column of the region, in order."""
    keys: Sequence[bytes]
    expected: Mapping[bytes, int]
    """Row version that must be current, for the keys that ask for one; ABSENT: no row."""


def take_in(batch: pa.RecordBatch, columns: Sequence[ColumnDef]) -> Intake:
    """Raises Refused `invalid-request` with what is wrong."""
    _check_shape(batch, columns)
    schema = log_schema(columns)
    present = set(batch.schema.names)
    arrays = [
        batch.column(field.name) if field.name in present else originals(field, batch.column(OP))
        for field in schema
    ]
    rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
    _check_values(rows, columns)
    keys = rows.column(KEY).to_pylist()
    if len(set(keys)) < len(keys):
        raise Refused("invalid-request", reason="a key stands twice in one batch")
    return Intake(rows, keys, _expectations(batch, keys))


def _check_shape(batch: pa.RecordBatch, columns: Sequence[ColumnDef]) -> None:
    types = {field.name: field.type for field in log_schema(columns)} | {EXPECT: pa.int64()}
    names = batch.schema.names
    if batch.num_rows == 0 or len(set(names)) < len(names) or not {KEY, OP} <= set(names):
        raise Refused("invalid-request", reason="a batch has rows, and _key and _op once each")
    for field in batch.schema:
        if field.name not in types:
            raise Refused("invalid-request", column=field.name, reason="unknown column")
        if field.type != types[field.name]:
            expected, found = str(types[field.name]), str(field.type)
            raise Refused("invalid-request", column=field.name, expected=expected, found=found)


def _check_values(rows: pa.RecordBatch, columns: Sequence[ColumnDef]) -> None:
    ops = rows.column(OP)
    if rows.column(KEY).null_count or ops.null_count:
        raise Refused("invalid-request", reason="_key and _op are never null")
    if not set(pc.unique(ops).to_pylist()) <= {PUT, DELETE}:
        raise Refused("invalid-request", reason="_op is 0 (put) or 1 (delete)")
    puts = pc.equal(ops, pa.scalar(PUT, pa.uint8()))
    for column in columns:
        values = rows.column(column.name)
        if column.nullable or not values.null_count:
            continue
        if pc.any(pc.and_(puts, values.is_null())).as_py():
            raise Refused("invalid-request", column=column.name, reason="null in a put")


def _expectations(batch: pa.RecordBatch, keys: Sequence[bytes]) -> Mapping[bytes, int]:
    if EXPECT not in batch.schema.names:
        return {}
    versions = batch.column(EXPECT).to_pylist()
    pairs = zip(keys, versions, strict=True)
    return {key: version for key, version in pairs if version is not None}
