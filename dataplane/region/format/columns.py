"""The columns of a region: ids and types, never names, so that no rename reaches a node."""

import json
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from metasrv_base.engines import LSM
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import arrow_type
from metasrv_base.wire.node.orders import RegionColumn

KEY = "_key"
VERSION = "_version"
OP = "_op"
EXPECT = "_expect"
SYSTEM = (KEY, VERSION, OP)

SCHEMAS_KEPT = 1_024
"""Arrow schemas made lately: to make one takes longer than to find a row."""

PUT = 0
DELETE = 1

ORIGIN_DEFAULT = b"origin_default"
"""Among a field's metadata: type and origin default of its column, if that is not null."""
ORIGIN_COLUMNS = b"origin_columns"
"""Among a field's metadata, if it replaces any: name and type of its column, then of those that it
replaces, the last first."""


class RegionOriginColumn(BaseModel):
    """One that another column has replaced."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: int
    type: str


class ColumnDef(BaseModel):
    """A column as stored in manifests. `type` is a canonical text of
    metasrv_base/schema/types.py.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: int
    type: str
    nullable: bool
    origin_default: JsonScalar | None = None
    """The value of rows that were written without the column, in JSON form; None: null."""
    origin_columns: tuple[RegionOriginColumn, ...] = ()
    """Columns of other types that it replaces, the last of them first: a row that was written
    without it has the first of these that it was written with, converted from each to the next."""

    @property
    def name(self) -> str:
        """Its name in files and batches."""
        return column_name(self.id)

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The metadata of its Arrow fields."""
        metadata = {b"PARQUET:field_id": str(self.id).encode()}
        if self.origin_default is not None:
            metadata[ORIGIN_DEFAULT] = json.dumps([self.type, self.origin_default]).encode()
        if self.origin_columns:
            chain = [(column_name(origin.id), origin.type) for origin in self.origin_columns]
            metadata[ORIGIN_COLUMNS] = json.dumps([(self.name, self.type), *chain]).encode()
        return metadata

    def name_in(self, names: Collection[str]) -> str | None:
        """The one of *names* from which its values are read; None: none of them."""
        if (own := self.name) in names:
            return own
        ids = (origin.id for origin in self.origin_columns)
        return next((name for id in ids if (name := column_name(id)) in names), None)


class RegionSpec(BaseModel):
    """The definition that a region is created with; stored in every manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    region_id: int
    columns: tuple[ColumnDef, ...]
    """The columns as they are now; the rest is as it was when the region was created."""
    schema_floor: int = 0
    schema_version: int = 0
    indexes: tuple[int, ...] = ()
    engine: str = Field(default=LSM, exclude_if=lambda engine: engine == LSM)
    """The engine that made it, so that no other takes what stands in its root for the region."""


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
    id_set = set(ids)
    return ordered(column for column in columns if column.id in id_set)


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
    return _file_schema(tuple(columns))


@lru_cache(SCHEMAS_KEPT)
def _file_schema(columns: tuple[ColumnDef, ...]) -> pa.Schema:
    key = pa.field(KEY, pa.binary(), nullable=False)
    version = pa.field(VERSION, pa.int64(), nullable=False)
    op = pa.field(OP, pa.uint8(), nullable=False)
    return pa.schema([key, version, op, *value_fields(columns)])


def row_schema(columns: Iterable[ColumnDef]) -> pa.Schema:
    """Rows as reads answer them."""
    key = pa.field(KEY, pa.binary(), nullable=False)
    version = pa.field(VERSION, pa.int64(), nullable=False)
    return pa.schema([key, version, *value_fields(columns)])


def columns_told(columns: Iterable[RegionColumn]) -> tuple[ColumnDef, ...]:
    """The columns that an order or a job names, in order of id."""
    return ordered(ColumnDef.model_validate_json(column.model_dump_json()) for column in columns)


def columns_to_tell(columns: Iterable[ColumnDef]) -> list[RegionColumn]:
    """The inverse."""
    return [RegionColumn.model_validate_json(column.model_dump_json()) for column in columns]
