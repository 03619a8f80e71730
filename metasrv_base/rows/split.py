"""Rows as one part per region, and a part as the body that a region takes. Pure."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from metasrv_base.rows.arrow_parts import END_OF_STREAM
from metasrv_base.rows.layout import Layout
from metasrv_base.wire.node.batches import HEADER_KEY, BatchHeader


@dataclass(frozen=True, slots=True)
class RegionPart:
    """Rows of one region. Atomic there."""

    number: int
    """Number of the region in its table."""
    rows: pa.RecordBatch
    """The rows, with `_key`."""


def by_region(layout: Layout, rows: pa.RecordBatch, keyed: pa.RecordBatch) -> list[RegionPart]:
    """Splits *keyed* in order of region; *rows* has the columns by which the table is divided."""
    numbers = layout.router.numbers([rows.column(column.field) for column in layout.routed_by])
    present = sorted(pc.unique(numbers).to_pylist())
    if len(present) == 1:
        return [RegionPart(present[0], keyed)]
    return [RegionPart(number, keyed.filter(pc.equal(numbers, number))) for number in present]


def newest_of_each_key(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the last row of each key, as if rows had been sent one after the other."""
    keys: list[bytes] = rows.column("_key").to_pylist()
    last = {key: position for position, key in enumerate(keys)}
    if len(last) == len(keys):
        return rows
    return rows.take(pa.array(sorted(last.values()), pa.int64()))


def body_of(rows: pa.RecordBatch, header: BatchHeader) -> bytes:
    """The Arrow IPC stream that a region takes."""
    metadata = {HEADER_KEY: header.model_dump_json().encode()}
    schema = rows.schema.with_metadata(metadata)
    return b"".join((schema.serialize(), rows.serialize(), END_OF_STREAM))
