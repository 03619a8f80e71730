"""One number for a set of rows, whatever their order, files or batches: for `check` and for moves.

Per row: BLAKE2b with 8 bytes of digest, read as a little-endian integer, over its key and values;
the checksum is the sum modulo 2^64, so the parts of a table may be summed in any order. A row's
bytes are `{length}:{key}` and then, for each column that is not null, in order of column id,
`{id}:{length}:{value}`: a column that a file lacks counts as null. An index entry's key of its row
has the id 0. A value is its bytes if binary
or string, the decimal number if integer, the 0 or 1 of a boolean, the integer of its bits if float,
of its unit if date or timestamp, and the text with all places if decimal.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.format.columns import KEY, OP, VERSION, column_name
from dataplane.region.format.parts import PartSize, cut

_AT_A_TIME = PartSize(rows=8192, bytes=1 << 20)
"""A row's bytes are in memory several times meanwhile."""
_MODULUS = 1 << 64


@dataclass(frozen=True, slots=True)
class RowsDigest:
    """The number of rows and their checksum; `+` joins disjoint sets."""

    rows: int = 0
    checksum: int = 0

    def __add__(self, other: "RowsDigest") -> "RowsDigest":
        return RowsDigest(self.rows + other.rows, (self.checksum + other.checksum) % _MODULUS)

    @property
    def hex(self) -> str:
        """The checksum as files and answers write it: 16 hexadecimal digits."""
        return f"{self.checksum:016x}"


def digest_rows(batch: pa.RecordBatch | pa.Table) -> RowsDigest:
    """Over key and values alone (columns `_key` and `c{id}`): equal rows, equal digest."""
    return _digest(batch, {})


def digest_as_text(batch: pa.RecordBatch | pa.Table) -> RowsDigest:
    """Over key, version, tombstone and values: what a file holds, as manifests of before say it
    (`stored_digest`)."""
    return _digest(batch, {VERSION: b"v", OP: b"o"})


def _digest(batch: pa.RecordBatch | pa.Table, extra: Mapping[str, bytes]) -> RowsDigest:
    table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    total = 0
    for part in cut(table, _AT_A_TIME):
        for rows in part.to_batches():
            for row in row_bytes(rows, extra).to_pylist():
                total += int.from_bytes(hashlib.blake2b(row, digest_size=8).digest(), "little")
    return RowsDigest(table.num_rows, total % _MODULUS)


def row_bytes(batch: pa.RecordBatch, extra: Mapping[str, bytes]) -> pa.Array:
    """The canonical bytes of each row."""
    parts = [_element(b"", batch.column(KEY))]
    parts += [_element(label + b":", batch.column(name)) for name, label in extra.items()]
    for column_id in _column_ids(batch.schema.names):
        parts.append(_element(b"%d:" % column_id, batch.column(column_name(column_id))))
    return pc.binary_join_element_wise(*parts, b"", null_handling="replace", null_replacement=b"")


def _column_ids(names: Sequence[str]) -> list[int]:
    ids = [int(name[1:]) for name in names if name[0] == "c" and name[1:].isdecimal()]
    return [0] * (column_name(0) in names) + sorted(ids)


def _element(label: bytes, column: pa.Array) -> pa.Array:
    value = _canonical(column)
    length = pc.binary_length(value).cast(pa.string()).cast(pa.binary())
    return pc.binary_join_element_wise(label, length, b":", value, b"", null_handling="emit_null")


def _canonical(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_binary(kind):
        return column
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_float32(kind) or pa.types.is_date32(kind):
        column = column.view(pa.int32())
    elif pa.types.is_float64(kind) or pa.types.is_timestamp(kind):
        column = column.view(pa.int64())
    return column.cast(pa.string()).cast(pa.binary())
