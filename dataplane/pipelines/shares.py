"""Rows on their way from the task that read them to the task that writes them: one Arrow stream.

Spark moves a few large values and no rows; what arrives is what was sent, or an error.
"""

import zlib
from dataclasses import dataclass

import pyarrow as pa

from metasrv_base.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Packed:
    rows: int
    crc: int
    data: bytes


def packed(table: pa.Table) -> Packed:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return Packed(table.num_rows, zlib.crc32(data), data)


def unpacked(share: Packed) -> pa.Table:
    """Raises Unavailable for one that arrived damaged."""
    if zlib.crc32(share.data) != share.crc:
        raise Unavailable("not-ready", reason="a share arrived damaged")
    with pa.ipc.open_stream(share.data) as reader:
        return reader.read_all()
