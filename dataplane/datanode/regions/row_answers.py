"""Answers of rows, JSON or one Arrow stream, and the keys and columns of their queries. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from dataplane.region.format.columns import ColumnDef, chosen, row_schema
from dataplane.region.reads.index_scan import ENTRY, entry_schema
from metasrv_base.errors import Refused
from metasrv_base.rows.arrow_parts import ArrowParts
from metasrv_base.rows.convert import json_column
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.batches import Row, ScanRows

JSON_BYTES_MAX = 4 << 20
JSON_ROWS_MAX = 10_000
"""Arrow bytes and rows that one JSON answer is made of; it ends early then, and says `more`."""
JSON_TIMES = 16
"""The memory that rows take as Python values and as JSON, by their bytes in Arrow; measured, of
rows of 50 numbers (`tests/dataplane/datanode/regions/held_reads.py`)."""

_HEXADECIMAL = re.compile(r"[0-9a-fA-F]*")


def answer_schema(query: ScanRows, columns: Sequence[ColumnDef]) -> pa.Schema:
    """The schema of an answer without rows."""
    shown = () if query.entries_only else chosen(columns, query.columns)
    return row_schema(shown) if query.index is None else entry_schema(shown)


def json_rows(batch: pa.RecordBatch | pa.Table, columns: Iterable[ColumnDef]) -> list[Row]:
    """One `Row` per row of `_key`, `_version`, `c{id}`..., and perhaps `_entry`."""
    by_name = {f"c{column.id}": column for column in columns}
    keys: Sequence[bytes] = batch.column("_key").to_pylist()
    entries: Sequence[bytes | None] = [None] * len(keys)
    if ENTRY in batch.schema.names:
        entries = batch.column(ENTRY).to_pylist()
    versions: Sequence[int] = batch.column("_version").to_pylist()
    values = {
        str(by_name[name].id): json_column(parse_type(by_name[name].type), batch.column(name))
        for name in batch.schema.names
        if name in by_name
    }
    return [
        Row(
            key=key.hex(),
            version=version,
            values=_at(values, position),
            entry=None if entry is None else entry.hex(),
        )
        for position, (key, version, entry) in enumerate(zip(keys, versions, entries, strict=True))
    ]


def _at(values: Mapping[str, Sequence[JsonScalar | None]], position: int) -> dict[str, object]:
    return {name: column[position] for name, column in values.items()}


def arrow_bytes(rows: pa.Table, *, more: bool) -> bytes:
    """One whole IPC stream. *more*: it ended at its bound of bytes."""
    stream = ArrowParts(rows.schema)
    last = [nothing_of(rows.schema)] if more else []
    return b"".join([*map(stream.part, [*rows.to_batches(), *last]), stream.end()])


def nothing_of(schema: pa.Schema) -> pa.RecordBatch:
    """The last batch of an answer that ended at its bound of bytes."""
    return pa.RecordBatch.from_pylist([], schema=schema)


def key_of(text: str, pointer: str) -> bytes:
    """Reads a key. Raises Refused."""
    if len(text) % 2 or not _HEXADECIMAL.fullmatch(text):
        raise Refused("invalid-request", pointer=pointer, reason="keys are hexadecimal")
    return bytes.fromhex(text)


def check_columns(columns: Iterable[ColumnDef], ids: Iterable[int] | None) -> None:
    """Raises Refused for ids of columns that are not there."""
    unknown = sorted(set(ids or ()) - {column.id for column in columns})
    if unknown:
        raise Refused("invalid-request", pointer="/columns", reason=f"no columns {unknown[:8]}")
