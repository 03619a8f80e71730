"""A statement as one part per region: keys encoded, rows routed, bodies ready to send. Pure."""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from base.errors import Refused, Unavailable
from base.rows.layout import Layout
from base.rows.limited import check_keys, check_rows
from base.schema.keybatch import encode_batch
from base.wire.batches import HEADER_KEY, OP_DELETE, OP_PUT, BatchHeader
from base.wire.limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX

Op = Literal["insert", "upsert", "delete"]
ABSENT = 0
"""Expected version of a key that must not be there."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one region is sent. Atomic there."""

    number: int
    """Of the region."""
    rows: pa.RecordBatch
    """`_key`, `_op`, `_expect` for an insert, and for a put the values."""


def split(layout: Layout, rows: pa.RecordBatch, op: Op) -> list[Part]:
    """`rows` as `convert.to_batch` makes them; for a delete the key columns are enough.

    In order of region. Raises Refused for what no region would take: a key that stands twice, a
    part too large.
    """
    if not rows.num_rows:
        return []
    keyed = with_keys(layout, rows, op)
    check_keys(keyed.column("_key"))
    check_rows(keyed)
    if pc.count_distinct(keyed.column("_key")).as_py() < keyed.num_rows:
        raise Refused("invalid-request", pointer="/rows", reason="a key stands twice in the rows")
    parts = by_region(layout, rows, keyed)
    for part in parts:
        if part.rows.nbytes > BATCH_BYTES_MAX or part.rows.num_rows > BATCH_ROWS_MAX:
            raise Refused("body-too-large", limit_bytes=BATCH_BYTES_MAX, limit_rows=BATCH_ROWS_MAX)
    return parts


def with_keys(layout: Layout, rows: pa.RecordBatch, op: Op) -> pa.RecordBatch:
    """The batch a region takes, for all regions at once. Raises Refused for rows of a table with
    constraints: a region takes them as they are; Unavailable while a type changes: it would take
    them in one type, and some reader knows the other."""
    if op != "delete":
        _must_be_taken_as_they_are(layout)
    count = rows.num_rows
    keys = encode_batch(layout.key_types, [rows.column(one.field) for one in layout.key])
    arrays = [
        keys,
        pa.repeat(pa.scalar(OP_DELETE if op == "delete" else OP_PUT, pa.uint8()), count),
    ]
    names = ["_key", "_op"]
    if op == "insert":
        arrays.append(pa.repeat(pa.scalar(ABSENT, pa.int64()), count))
        names.append("_expect")
    if op != "delete":
        arrays += rows.columns
        names += rows.schema.names
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _must_be_taken_as_they_are(layout: Layout) -> None:
    if layout.is_constrained:
        reason = "the table has constraints: rows are written through a frontend"
        raise Refused("invalid-request", reason=reason)
    if layout.changes_type:
        reason = "the type of a column changes: meanwhile rows are written through a frontend"
        raise Unavailable("not-ready", what=layout.name, reason=reason)


def by_region(layout: Layout, rows: pa.RecordBatch, keyed: pa.RecordBatch) -> list[Part]:
    numbers = layout.router.numbers([rows.column(one.field) for one in layout.routed_by])
    present = sorted(pc.unique(numbers).to_pylist())
    if len(present) == 1:
        return [Part(present[0], keyed)]
    return [Part(number, keyed.filter(pc.equal(numbers, number))) for number in present]


def newest_of_each_key(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Of rows with one key the last, as if they had been sent one after the other."""
    keys: list[bytes] = rows.column("_key").to_pylist()
    last = {key: place for place, key in enumerate(keys)}
    if len(last) == len(keys):
        return rows
    return rows.take(pa.array(sorted(last.values()), pa.int64()))


def body_of(rows: pa.RecordBatch, header: BatchHeader) -> bytes:
    """The Arrow IPC stream that a region takes."""
    metadata = {HEADER_KEY: header.model_dump_json().encode()}
    schema = rows.schema.with_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(rows.replace_schema_metadata(metadata))
    data: bytes = sink.getvalue().to_pybytes()
    return data
