"""The payloads of SCHEMA and GROUP records: statements that were written together, and their rows.

A SCHEMA payload is its id and an Arrow schema. The id is a digest of the schema, so that a group
means the same in every segment that has the schema before it.

A GROUP payload, little-endian: the numbers of statements and of parts; for each statement its row
version, the sender's time (milliseconds, 0: not told), its schema version, its rows and the length
of its id; the ids; then the parts, one for each family. A part: family, schema id, the length of
its rows, for each statement its number of rows, and at the next multiple of 8 the rows of all
statements, in order, as one Arrow record batch message without schema. A part of many tombstones
has the schema `TOMBSTONES`, without values.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dataplane.region.format.columns import KEY, VERSION, log_schema
from dataplane.region.format.families import FamilyRows
from dataplane.region.format.row_keys import RowKeys
from metasrv_base.errors import Corrupt

SCHEMA_ID_BYTES = 8
JOINED_MAX = 64
"""Groups that are replayed as one."""
_HEAD = struct.Struct("<II")
_STATEMENT = struct.Struct("<QQQIH")
_PART = struct.Struct(f"<i{SCHEMA_ID_BYTES}sQ")
_ALIGNED = 8
_UNDECODABLE = (struct.error, KeyError, ValueError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    id: str
    version: int
    """Row version of all its rows."""
    rows: int
    """Entries too."""
    schema_version: int
    sent_ms: int = 0
    """The time at which its first sender made it, by that sender's wall clock; 0: it did not
    say."""


@dataclass(frozen=True, slots=True)
class LoggedSchema:
    """The Arrow schema of a part's rows as logged. It has no versions: the statements hold them."""

    schema: pa.Schema
    id: bytes

    @classmethod
    def of(cls, schema: pa.Schema) -> "LoggedSchema":
        data = schema.serialize().to_pybytes()
        return cls(schema, hashlib.blake2b(data, digest_size=SCHEMA_ID_BYTES).digest())

    def encode(self) -> bytes:
        data: bytes = self.schema.serialize().to_pybytes()
        return self.id + data


TOMBSTONES = LoggedSchema.of(log_schema(()))
"""The schema of tombstones that are logged without values."""


@dataclass(frozen=True, slots=True)
class GroupPart:
    """Rows of one family that are to be logged."""

    family: int
    schema: LoggedSchema
    rows: Sequence[tuple[int, pa.RecordBatch]]
    """Rows by the place of their statement in the group, rising."""


@dataclass(frozen=True, slots=True)
class LoggedGroup:
    """Statements in order, and their rows with versions, in order of family."""

    statements: tuple[LoggedStatement, ...]
    parts: tuple[FamilyRows, ...]

    @property
    def version(self) -> int:
        """The highest."""
        return self.statements[-1].version


def encode_group(statements: Sequence[LoggedStatement], parts: Sequence[GroupPart]) -> bytes:
    ids = [statement.id.encode() for statement in statements]
    pieces = [_HEAD.pack(len(statements), len(parts))]
    pieces += [
        _STATEMENT.pack(
            statement.version, statement.sent_ms, statement.schema_version, statement.rows, len(id)
        )
        for statement, id in zip(statements, ids, strict=True)
    ]
    pieces += ids
    offset = sum(map(len, pieces))
    for part in parts:
        counts = [0] * len(statements)
        for position, rows in part.rows:
            counts[position] = rows.num_rows
        body = _concatenated([rows for _, rows in part.rows], part.schema.schema).serialize()
        head = _PART.pack(part.family, part.schema.id, body.size)
        head += struct.pack(f"<{len(counts)}I", *counts)
        head += bytes(-(offset + len(head)) % _ALIGNED)
        pieces += [head, body]
        offset += len(head) + body.size
    return b"".join(pieces)


def decode_group(
    payload: bytes | memoryview,
    schemas: Mapping[bytes, pa.Schema],
    source: str,
    keys: Mapping[int, Sequence[RowKeys]] | None = None,
) -> LoggedGroup:
    """The rows share the payload's memory. *keys*: those of the rows, by family, where the caller
    has them. Raises Corrupt: the payload's checksum was right, but it is no group."""
    try:
        return _joined([_parsed(payload)], schemas, keys or {})
    except _UNDECODABLE as error:
        raise _undecodable(source) from error


def decode_groups(
    payloads: Iterable[bytes | memoryview], schemas: Mapping[bytes, pa.Schema], source: str
) -> Iterator[LoggedGroup]:
    """Groups that follow each other, joined to larger ones where their schemas allow it: a log of
    groups of one row is then replayed as fast as one of large groups. Tombstones without values
    stay alone: they are many, and take more memory than their payload says."""
    try:
        waiting: list[_Parsed] = []
        schema_ids: dict[int, bytes] = {}
        for payload in payloads:
            parsed = _parsed(payload)
            ids = {part.family: part.schema_id for part in parsed.parts}
            is_other = any(schema_ids.get(family, id) != id for family, id in ids.items())
            is_alone = TOMBSTONES.id in (*ids.values(), *schema_ids.values())
            if waiting and (is_other or is_alone or len(waiting) == JOINED_MAX):
                yield _joined(waiting, schemas, {})
                waiting, schema_ids = [], {}
            waiting.append(parsed)
            schema_ids |= ids
        if waiting:
            yield _joined(waiting, schemas, {})
    except _UNDECODABLE as error:
        raise _undecodable(source) from error


def rows_in(payload: bytes | memoryview, source: str) -> int:
    """Rows of a group, entries too, of which nothing else is decoded."""
    try:
        count, _ = _HEAD.unpack_from(payload)
        starts = range(_HEAD.size, _HEAD.size + count * _STATEMENT.size, _STATEMENT.size)
        return sum(_STATEMENT.unpack_from(payload, start)[3] for start in starts)
    except struct.error as error:
        raise _undecodable(source) from error


def schema_ids(payload: bytes | memoryview, source: str) -> tuple[bytes, ...]:
    """Ids of the schemas that a group needs. Raises as `decode_group`; reads no rows."""
    try:
        return tuple(dict.fromkeys(part.schema_id for part in _parsed(payload).parts))
    except _UNDECODABLE as error:
        raise _undecodable(source) from error


def take_schema(
    payload: bytes | memoryview, schemas: MutableMapping[bytes, pa.Schema], source: str
) -> None:
    """Adds the schema of a SCHEMA record to those that are known."""
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(payload).slice(SCHEMA_ID_BYTES))
    except (ValueError, OSError, pa.ArrowException) as error:
        raise Corrupt(source=source, reason="a logged schema cannot be decoded") from error
    schemas[bytes(payload[:SCHEMA_ID_BYTES])] = schema


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


class _ParsedPart(NamedTuple):
    family: int
    schema_id: bytes
    counts: Sequence[int]
    body: pa.Buffer


class _Parsed(NamedTuple):
    """A payload without a look at its rows."""

    statements: Sequence[LoggedStatement]
    parts: Sequence[_ParsedPart]


def _parsed(payload: bytes | memoryview) -> _Parsed:
    buffer = pa.py_buffer(payload)
    count, part_count = _HEAD.unpack_from(payload)
    offset = _HEAD.size + count * _STATEMENT.size
    statements = []
    for fields in _STATEMENT.iter_unpack(payload[_HEAD.size : offset]):
        version, sent_ms, schema_version, rows, length = fields
        id = str(payload[offset : offset + length], "utf-8")
        offset += length
        statements.append(LoggedStatement(id, version, rows, schema_version, sent_ms))
    parts = []
    for _ in range(part_count):
        family, schema_id, length = _PART.unpack_from(payload, offset)
        counts = struct.unpack_from(f"<{count}I", payload, offset + _PART.size)
        offset += _PART.size + 4 * count
        offset += -offset % _ALIGNED
        parts.append(_ParsedPart(family, schema_id, counts, buffer.slice(offset, length)))
        offset += length
    if offset != len(payload) or not statements:
        raise ValueError(offset)
    return _Parsed(statements, parts)


def _joined(
    groups: Sequence[_Parsed],
    schemas: Mapping[bytes, pa.Schema],
    keys: Mapping[int, Sequence[RowKeys]],
) -> LoggedGroup:
    by_family: dict[int, list[tuple[_Parsed, _ParsedPart]]] = {}
    for group in groups:
        for part in group.parts:
            by_family.setdefault(part.family, []).append((group, part))
    parts = []
    for family, members in sorted(by_family.items()):
        schema = schemas[members[0][1].schema_id]
        bodies = [pa.ipc.read_record_batch(part.body, schema) for _, part in members]
        versions = [statement.version for group, _ in members for statement in group.statements]
        counts = [count for _, part in members for count in part.counts]
        rows = stamped(_concatenated(bodies, schema), versions, counts)
        row_keys = RowKeys.copied(rows.column(KEY), keys.get(family, ()))
        parts.append(FamilyRows(family, rows, row_keys))
    statements = tuple(statement for group in groups for statement in group.statements)
    return LoggedGroup(statements, tuple(parts))


def _undecodable(source: str) -> Corrupt:
    return Corrupt(source=source, reason="a logged group cannot be decoded")
