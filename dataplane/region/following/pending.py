"""Records of a copy's log that are not in its memtables, since they may still be cut (P5.9)."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from dataplane.log.records import LogPosition, RecordType
from dataplane.region.format.columns import KEY, OP, VERSION, column_name
from dataplane.region.format.families import ROWS
from dataplane.region.format.schema import RegionSchema
from dataplane.region.log.log_writer import PositionedRecord
from dataplane.region.log.logged_change import PositionedChange, decode_change
from dataplane.region.log.logged_group import LoggedGroup, decode_group, take_schema
from dataplane.region.log.sealed_log import SealedLog, read_sealed
from dataplane.region.manifests.manifest import SealedEntry
from dataplane.region.place import RegionPlace
from metasrv_base.errors import Corrupt, Unavailable

_STREAMED = "a streamed record"


LogEntry = LoggedGroup | PositionedChange


class PendingEntry(NamedTuple):
    position: LogPosition
    entry: LogEntry


class PendingRecords:
    """Groups and changes in order of the log: first those of sealed segments, which are read from
    the disk one segment at a time when they are asked for, then those that came since, in
    memory."""

    def __init__(self, region_place: RegionPlace, sealed: Sequence[SealedEntry]) -> None:
        self._place = region_place
        self._share = region_place.budget.share()
        self._segment_bytes = 0
        self._sealed: Iterator[PendingEntry] = self._of_segments(tuple(sealed))
        self._next_sealed: PendingEntry | None = None
        self._is_read = False
        """Whether all sealed segments were read."""
        self._streamed: deque[PositionedRecord] = deque()
        self.bytes = 0
        """Payloads in memory that were streamed."""

    @property
    def is_empty(self) -> bool:
        return self._peeked() is None and not self._streamed

    def add(self, record: PositionedRecord) -> None:
        self._streamed.append(record)
        self._count(len(record.payload))

    def upto(self, sequence: int) -> Iterator[LogEntry]:
        """Yields the groups and changes up to that sequence, and takes them out."""
        while (sealed := self._peeked()) is not None and sealed.position.sequence <= sequence:
            self._next_sealed = None
            yield sealed.entry
        if not self._is_read:
            return
        while self._streamed and self._streamed[0].position.sequence <= sequence:
            streamed = self._streamed.popleft()
            self._count(-len(streamed.payload))
            yield decoded(streamed)

    def give_up(self) -> None:
        """Nothing is in memory any more."""
        self._streamed.clear()
        self._sealed = iter(())
        self._share.set(0)

    def _count(self, size: int) -> None:
        self.bytes += size
        self._share.set(self.bytes + self._segment_bytes)

    def _peeked(self) -> PendingEntry | None:
        if self._next_sealed is None and not self._is_read:
            self._next_sealed = next(self._sealed, None)
            self._is_read = self._next_sealed is None
        return self._next_sealed

    def _of_segments(self, entries: Sequence[SealedEntry]) -> Iterator[PendingEntry]:
        for entry in entries:
            self._segment_bytes = entry.bytes
            self._count(0)
            yield from entries_of(read_sealed(self._place.disk, self._place.root, entry))
        self._segment_bytes = 0
        self._count(0)


def entries_of(log: SealedLog) -> Iterator[PendingEntry]:
    schemas: dict[bytes, pa.Schema] = {}
    for record in log.scan.records:
        if record.type == RecordType.SCHEMA:
            take_schema(record.payload, schemas, log.path)
        else:
            payload = bytes(record.payload)
            entry = _decoded(record.type, record.position.sequence, payload, schemas, log.path)
            yield PendingEntry(record.position, entry)


def decoded(record: PositionedRecord) -> LogEntry:
    """Raises Corrupt for a record that does not decode, or of a type that this program does not
    know."""
    schemas: dict[bytes, pa.Schema] = {}
    for schema in record.schemas:
        take_schema(schema.encode(), schemas, _STREAMED)
    sequence = record.position.sequence
    return _decoded(record.type, sequence, record.payload, schemas, _STREAMED)


def must_know_columns(group: LoggedGroup, schema: RegionSchema) -> None:
    """Raises Unavailable `region-lost` for rows of a version that the copy was not told of, with
    columns that it does not have: a flush would lose their values. Only a change of before the
    region had copies can be missing in the log."""
    version = max(statement.schema_version for statement in group.statements)
    if version <= schema.version:
        return
    names = {KEY, VERSION, OP}
    for column in schema.columns or ():
        names |= {column.name, *(column_name(origin.id) for origin in column.origin_columns)}
    for part in group.parts:
        unknown = set(part.rows.schema.names) - names
        if part.family == ROWS and unknown:
            reason = "the log of its leader lacks a change of the schema"
            raise Unavailable("region-lost", reason=reason, columns=sorted(unknown))


def _decoded(
    type_: int,
    sequence: int,
    payload: bytes | memoryview,
    schemas: Mapping[bytes, pa.Schema],
    source: str,
) -> LogEntry:
    if type_ == RecordType.GROUP:
        return decode_group(payload, schemas, source)
    if type_ == RecordType.CHANGE:
        return PositionedChange(sequence, decode_change(payload, source))
    raise Corrupt(source=source, record_type=type_, sequence=sequence)
