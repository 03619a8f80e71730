"""Checks of keys and rows against the limits of metasrv_base/wire/limits.py. Pure.

Each looks at the size of whole buffers first: only a column that could hold a value beyond the
limit is looked at value by value.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from metasrv_base.errors import Refused
from metasrv_base.wire.limits import ENTRY_KEY_BYTES_MAX, KEY_BYTES_MAX, ROW_BYTES_MAX


def check_keys(keys: pa.BinaryArray) -> None:
    """Raises Refused `limit-exceeded` for a key of a row above KEY_BYTES_MAX."""
    _check("key_bytes", keys, KEY_BYTES_MAX)


def check_entry_keys(keys: pa.BinaryArray, index: str | int) -> None:
    """Raises Refused `limit-exceeded` for a key of an index entry above ENTRY_KEY_BYTES_MAX."""
    _check("entry_key_bytes", keys, ENTRY_KEY_BYTES_MAX, index=index)


def fit_entry_keys(keys: pa.BinaryArray) -> pa.BooleanArray:
    """Whether each can be the key of an entry; no other was ever stored."""
    return pc.less_equal(pc.fill_null(pc.binary_length(keys), 0), ENTRY_KEY_BYTES_MAX)


def check_rows(rows: pa.RecordBatch) -> None:
    """Raises Refused `limit-exceeded` for a row above ROW_BYTES_MAX, all its columns together."""
    if rows.nbytes <= ROW_BYTES_MAX:
        return
    sizes = [_sizes(column) for column in rows.columns]
    total = sizes[0]
    for size in sizes[1:]:
        total = pc.add(total, size)
    _must_fit("row_bytes", total, ROW_BYTES_MAX)


def _check(limit: str, keys: pa.BinaryArray, limit_bytes: int, **facts: Any) -> None:
    if keys.nbytes > limit_bytes:
        _must_fit(limit, pc.binary_length(keys), limit_bytes, **facts)


def _sizes(column: pa.Array) -> pa.Int64Array:
    if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
        return pc.fill_null(pc.binary_length(column), 0).cast(pa.int64())
    return pa.repeat(pa.scalar((column.type.bit_width + 7) // 8, pa.int64()), len(column))


def _must_fit(
    limit: str, sizes: pa.Int32Array | pa.Int64Array, limit_bytes: int, **facts: Any
) -> None:
    largest = pc.max(sizes).as_py() or 0
    if largest > limit_bytes:
        raise Refused(
            "limit-exceeded",
            limit=limit,
            limit_bytes=limit_bytes,
            found_bytes=largest,
            **facts,
        )
