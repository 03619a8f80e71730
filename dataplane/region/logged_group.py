"""The payloads of SCHEMA and GROUP records: statements that were written together, and their rows.

A SCHEMA payload is its id and an Arrow schema. The id is a digest of the schema, so that a group
means the same in every segment that has the schema before it.

A GROUP payload, little-endian: the numbers of statements and of parts; for each statement its row
version, the sender's time (milliseconds, 0: not told), its schema version, its rows and the length
of its id; the ids; then the parts, one for each family. A part: family, schema id, the length of
its rows, for each statement its number of rows, and at the next multiple of 8 the rows of all
statements, in order, as one Arrow record batch message without schema.
"""

import hashlib
import struct
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from base.errors import Corrupt
from dataplane.region.columns import KEY, VERSION
from dataplane.region.families import Part

SCHEMA_ID_BYTES = 8
_HEAD = struct.Struct("<II")
_STATEMENT = struct.Struct("<QQQIH")
_PART = struct.Struct(f"<i{SCHEMA_ID_BYTES}sQ")
_ALIGNED = 8


@dataclass(frozen=True, slots=True)
class Statement:
    id: str
    version: int
    """Row version of all its rows."""
    rows: int
    """Entries too."""
    schema_version: int
    sent_ms: int = 0
    """When its first sender made it, by that sender's wall clock; 0: it did not say."""


@dataclass(frozen=True, slots=True)
class LoggedSchema:
    """Of a part's rows as logged: without versions, which stand with the statements."""

    schema: pa.Schema
    id: bytes

    @classmethod
    def of(cls, schema: pa.Schema) -> "LoggedSchema":
        data = schema.serialize().to_pybytes()
        return cls(schema, hashlib.blake2b(data, digest_size=SCHEMA_ID_BYTES).digest())

    def encode(self) -> bytes:
        data: bytes = self.schema.serialize().to_pybytes()
        return self.id + data


@dataclass(frozen=True, slots=True)
class GroupPart:
    """Rows of one family that are to be logged."""

    family: int
    schema: LoggedSchema
    rows: Sequence[tuple[int, pa.RecordBatch]]
    """By the place of their statement in the group, rising."""


@dataclass(frozen=True, slots=True)
class LoggedGroup:
    """Statements in order, and their rows with versions, in order of family."""

    statements: tuple[Statement, ...]
    parts: tuple[Part, ...]

    @property
    def version(self) -> int:
        """The highest."""
        return self.statements[-1].version


def encode_group(statements: Sequence[Statement], parts: Sequence[GroupPart]) -> bytes:
    ids = [one.id.encode() for one in statements]
    pieces = [_HEAD.pack(len(statements), len(parts))]
    pieces += [
        _STATEMENT.pack(one.version, one.sent_ms, one.schema_version, one.rows, len(id))
        for one, id in zip(statements, ids, strict=True)
    ]
    pieces += ids
    at = sum(map(len, pieces))
    for part in parts:
        counts = [0] * len(statements)
        for place, rows in part.rows:
            counts[place] = rows.num_rows
        body = _concatenated([rows for _, rows in part.rows], part.schema.schema).serialize()
        head = _PART.pack(part.family, part.schema.id, body.size)
        head += struct.pack(f"<{len(counts)}I", *counts)
        head += bytes(-(at + len(head)) % _ALIGNED)
        pieces += [head, body]
        at += len(head) + body.size
    return b"".join(pieces)


def decode_group(
    payload: bytes | memoryview, schemas: Mapping[bytes, pa.Schema], source: str
) -> LoggedGroup:
    """The rows share the payload's memory. Raises Corrupt: its checksum was right, it is not."""
    try:
        return _decoded(payload, schemas)
    except (struct.error, KeyError, ValueError, pa.ArrowException) as error:
        raise Corrupt(source=source, reason="a logged group cannot be decoded") from error


def rows_in(payload: bytes | memoryview, source: str) -> int:
    """Rows of a group, entries too, of which nothing else is decoded."""
    try:
        count, _ = _HEAD.unpack_from(payload)
        starts = range(_HEAD.size, _HEAD.size + count * _STATEMENT.size, _STATEMENT.size)
        return sum(_STATEMENT.unpack_from(payload, at)[3] for at in starts)
    except struct.error as error:
        raise Corrupt(source=source, reason="a logged group cannot be decoded") from error


def take_schema(
    payload: bytes | memoryview, known: MutableMapping[bytes, pa.Schema], source: str
) -> None:
    """Adds the schema of a SCHEMA record to those that are known."""
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(payload).slice(SCHEMA_ID_BYTES))
    except (ValueError, OSError, pa.ArrowException) as error:
        raise Corrupt(source=source, reason="a logged schema cannot be decoded") from error
    known[bytes(payload[:SCHEMA_ID_BYTES])] = schema


def stamped(rows: pa.RecordBatch, versions: Sequence[int], counts: Sequence[int]) -> pa.RecordBatch:
    """The rows with `_version`, as `columns.file_schema` of their columns."""
    stamps = pa.array(np.repeat(np.asarray(versions, np.int64), counts))
    key, *values = rows.columns
    field = pa.field(VERSION, pa.int64(), nullable=False)
    return pa.RecordBatch.from_arrays([key, stamps, *values], schema=rows.schema.insert(1, field))


def _concatenated(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (whole,) = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
    return whole


def _decoded(payload: bytes | memoryview, schemas: Mapping[bytes, pa.Schema]) -> LoggedGroup:
    buffer = pa.py_buffer(payload)
    count, part_count = _HEAD.unpack_from(payload)
    at = _HEAD.size + count * _STATEMENT.size
    statements = []
    for fields in _STATEMENT.iter_unpack(payload[_HEAD.size : at]):
        version, sent_ms, schema_version, rows, length = fields
        id = str(payload[at : at + length], "utf-8")
        at += length
        statements.append(Statement(id, version, rows, schema_version, sent_ms))
    versions, parts = [one.version for one in statements], []
    for _ in range(part_count):
        family, schema_id, length = _PART.unpack_from(payload, at)
        counts = struct.unpack_from(f"<{count}I", payload, at + _PART.size)
        at += _PART.size + 4 * count
        at += -at % _ALIGNED
        body = pa.ipc.read_record_batch(buffer.slice(at, length), schemas[schema_id])
        at += length
        rows = stamped(body, versions, counts)
        parts.append(Part(family, rows, rows.column(KEY).to_pylist()))
    if at != len(payload) or not statements:
        raise ValueError(at)
    return LoggedGroup(tuple(statements), tuple(parts))
