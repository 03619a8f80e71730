"""What the columns of a region are: ids and types, never names (DESIGN 8)."""

import json
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

from base.schema.types import arrow_type, parse_type
from base.schema.values import JsonScalar, from_json

KEY = "_key"
VERSION = "_version"
OP = "_op"
EXPECT = "_expect"
SYSTEM = (KEY, VERSION, OP)

PUT = 0
DELETE = 1

ORIGIN = b"origin_default"
"""Among a field's metadata: type and origin default of its column, if that is not null."""


class ColumnDef(BaseModel):
    """A column as stored in manifests. `type` is a canonical text of base/schema/types.py."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: int
    type: str
    nullable: bool
    origin_default: JsonScalar | None = None
    """What a row has that was written without the column, in JSON form; None: null."""

    @property
    def name(self) -> str:
        """Its name in files and batches."""
        return column_name(self.id)

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """Of its Arrow fields."""
        found = {b"PARQUET:field_id": str(self.id).encode()}
        if self.origin_default is not None:
            found[ORIGIN] = json.dumps([self.type, self.origin_default]).encode()
        return found


class RegionSpec(BaseModel):
    """What a region is told when it is created; stored in every manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    region_id: int
    columns: tuple[ColumnDef, ...]
    """As they are now; the rest is as it was when the region was created."""
    schema_floor: int = 0
    schema_version: int = 0
    indexes: tuple[int, ...] = ()


def column_name(column_id: int) -> str:
    """Ids begin at 1; 0 is the value of index entries."""
    return f"c{column_id}" if column_id else "_row"


def ordered(columns: Iterable[ColumnDef]) -> tuple[ColumnDef, ...]:
    return tuple(sorted(columns, key=lambda column: column.id))


def chosen(columns: Sequence[ColumnDef], ids: Iterable[int] | None) -> tuple[ColumnDef, ...]:
    """The columns with those ids, by id; None: all. Ids that the region does not know are left
    out: what a column reads as before a region has it is its reader's to say."""
    if ids is None:
        return ordered(columns)
    wanted = set(ids)
    return ordered(column for column in columns if column.id in wanted)


def value_fields(columns: Iterable[ColumnDef]) -> list[pa.Field]:
    """Fields in order of id. Nullable even if the column is not: a tombstone has no values."""
    return [
        pa.field(
            column.name,
            arrow_type(column.type),
            nullable=True,
            metadata=column.metadata,
        )
        for column in ordered(columns)
    ]


def log_schema(columns: Iterable[ColumnDef]) -> pa.Schema:
    """A batch in the log and in memory: its one version stands beside it."""
    key = pa.field(KEY, pa.binary(), nullable=False)
    op = pa.field(OP, pa.uint8(), nullable=False)
    return pa.schema([key, op, *value_fields(columns)])


def file_schema(columns: Iterable[ColumnDef]) -> pa.Schema:
    """Rows in files and in merges."""
    key = pa.field(KEY, pa.binary(), nullable=False)
    version = pa.field(VERSION, pa.int64(), nullable=False)
    op = pa.field(OP, pa.uint8(), nullable=False)
    return pa.schema([key, version, op, *value_fields(columns)])


def row_schema(columns: Iterable[ColumnDef]) -> pa.Schema:
    """Rows as reads answer them."""
    key = pa.field(KEY, pa.binary(), nullable=False)
    version = pa.field(VERSION, pa.int64(), nullable=False)
    return pa.schema([key, version, *value_fields(columns)])


def conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`table` with exactly the fields of `schema`; a column that it lacks reads as its origin
    default. `table` has `_op`."""
    present = set(table.column_names)
    arrays = [
        table.column(field.name)
        if field.name in present
        else pa.chunked_array([originals(field, table.column(OP))])
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def originals(field: pa.Field, ops: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values of a column in rows that were written without it, for their `_op`: its origin
    default in a put; a tombstone has no values."""
    text = (field.metadata or {}).get(ORIGIN)
    if text is None:
        return pa.nulls(len(ops), field.type)
    name, value = json.loads(text)
    type = parse_type(name)
    # A timestamp is the number of its units.
    stored = pa.int64() if type.name == "timestamp" else type.arrow
    origin = pa.scalar(from_json(type, value), stored).cast(type.arrow)
    puts = pa.chunked_array([pc.equal(ops, pa.scalar(PUT, pa.uint8()))]).combine_chunks()
    return pc.if_else(puts, origin, pa.scalar(None, type.arrow))
