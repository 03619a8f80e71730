"""The checksum of the rows of a file, as its manifest has it: a stored format.

The sum modulo 2^64 over the rows, so it is independent of their order and of how they are cut. Of a
row: the avalanche (`row_hash`) of the sum over key, version, tombstone and values; of each the
avalanche of its hash and its element's salt; a null counts as nothing, as does a column that the
file lacks. It is marked by `MARK`. A manifest of before has BLAKE2b of each row's text instead
(`checksum`), without a mark.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from dataplane.region.format.checksum import RowsDigest, digest_as_text
from dataplane.region.format.columns import KEY, OP, VERSION
from dataplane.region.format.parts import PartSize, cut
from dataplane.region.format.row_hash import Hashes, avalanche, hashes_of

MARK = "2:"
_AT_A_TIME = PartSize(rows=8192, bytes=1 << 20)
_SYSTEM = {KEY: 1, VERSION: 2, OP: 3}
_FIRST_ID = 16
_SALT = 0xA0761D6478BD642F  # odd, with as many ones as zeros


def stored_text(digest: RowsDigest) -> str:
    return MARK + digest.hex


def digest_as(listed: str, table: pa.Table) -> RowsDigest:
    """The digest in the form that a manifest has *listed*."""
    return digest_stored(table) if listed.startswith(MARK) else digest_as_text(table)


def text_as(listed: str, digest: RowsDigest) -> str:
    return stored_text(digest) if listed.startswith(MARK) else digest.hex


def digest_stored(table: pa.Table | pa.RecordBatch) -> RowsDigest:
    """Over key, version, tombstone and values."""
    return digest_with_keys(table)[0]


def digest_with_keys(table: pa.Table | pa.RecordBatch) -> tuple[RowsDigest, Hashes]:
    """And the hashes of the keys, in order."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    keys, total = [np.zeros(0, np.uint64)], 0
    for part in cut(table, _AT_A_TIME):
        for batch in part.to_batches():
            keys.append(hashes_of(batch.column(KEY)))
            total += int(_rows(batch, keys[-1]).sum(dtype=np.uint64))
    return RowsDigest(table.num_rows, total % (1 << 64)), np.concatenate(keys)


def _rows(batch: pa.RecordBatch, keys: Hashes) -> Hashes:
    hashes = _salted(keys, _SYSTEM[KEY])
    for code, column in _elements(batch):
        alike = _is_one_number(column)
        part = _salted(hashes_of(column[:1] if alike else column), code)
        if column.null_count:
            part[column.is_null().to_numpy(zero_copy_only=False)] = 0
        hashes += part
    return avalanche(hashes)


def _is_one_number(column: pa.Array) -> bool:
    """Whether one integer stands in every row, as in versions and tombstones of a job's files."""
    if column.null_count or not len(column) or not pa.types.is_integer(column.type):
        return False
    values = column.to_numpy()
    return bool(values[0] == values[-1] and (values == values[0]).all())


def _elements(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Array]]:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in (VERSION, OP):
            yield _SYSTEM[name], column
        elif name == "_row":
            yield _FIRST_ID, column
        elif name != KEY:
            yield _FIRST_ID + int(name.removeprefix("c")), column


def _salted(hashes: Hashes, code: int) -> Hashes:
    return avalanche(hashes ^ np.uint64(code * _SALT % (1 << 64)))
