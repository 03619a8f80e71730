"""Reads log segments of older openings: seals what has no seal yet, never reads beyond one."""

import posixpath
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile

import pyarrow as pa

from dataplane.log.records import (
    HEADER_BYTES,
    RECORD_HEADER_BYTES,
    TAKE_NONE,
    LogPosition,
    RecordType,
    SegmentHeader,
    SegmentScan,
    header_of,
    refuse_gap,
    refuse_unknown,
    scan_records,
)
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.lost import lost_if_missing
from dataplane.region.format.columns import ColumnDef, file_schema
from dataplane.region.format.conforming import conformed
from dataplane.region.format.families import ROWS
from dataplane.region.format.names import Numbered, segment_name, segments
from dataplane.region.log import log_format_v1
from dataplane.region.log.log_format_v1 import decode_batch
from dataplane.region.log.logged_change import PositionedChange, decode_change
from dataplane.region.log.logged_group import (
    JOINED_MAX,
    LoggedGroup,
    decode_groups,
    rows_in,
    take_schema,
)
from dataplane.region.manifests.manifest import Manifest, SealedEntry
from metasrv_base.errors import Corrupt

JOINED_BYTES = 1 << 20
"""The size of groups that are joined: as much of a segment is in memory twice."""

NO_RECORD = LogPosition(0, 0)


@dataclass(frozen=True, slots=True)
class SealedLog:
    """One segment up to its seal."""

    entry: SealedEntry
    scan: SegmentScan
    path: str

    def groups(self) -> Iterator[LoggedGroup]:
        """Yields the groups of `records`."""
        return (record for record in self.records() if isinstance(record, LoggedGroup))

    def records(self) -> Iterator[LoggedGroup | PositionedChange]:
        """Yields groups and changes in order, decoded as they are asked for; small groups that
        follow each other are joined. None keeps the segment in memory. Raises Corrupt for a record
        that cannot be replayed, or that does not follow the one before it."""
        schemas: dict[bytes, pa.Schema] = {}
        last: LogPosition | None = None
        waiting: list[bytes] = []
        waiting_bytes = 0
        for record in self.scan.records:
            refuse_unknown(record, _KNOWN, self.path)
            refuse_gap(last, record, self.path)
            if record.type == RecordType.SCHEMA:
                yield from decode_groups(waiting, schemas, self.path)
                waiting, waiting_bytes = [], 0
                take_schema(record.payload, schemas, self.path)
                continue
            last = record.position
            if record.type == RecordType.CHANGE:
                yield from decode_groups(waiting, schemas, self.path)
                waiting, waiting_bytes = [], 0
                change = decode_change(record.payload, self.path)
                yield PositionedChange(record.position.sequence, change)
                continue
            if self.scan.format == log_format_v1.FORMAT:
                yield decode_batch(bytes(record.payload), self.path)
                continue
            waiting.append(bytes(record.payload))
            waiting_bytes += len(record.payload)
            if len(waiting) == JOINED_MAX or waiting_bytes >= JOINED_BYTES:
                yield from decode_groups(waiting, schemas, self.path)
                waiting, waiting_bytes = [], 0
        yield from decode_groups(waiting, schemas, self.path)

    def changes(self) -> Iterator[PositionedChange]:
        """Yields the changes alone; no group is decoded. Raises Corrupt for one that cannot be."""
        for record in self.scan.records:
            if record.type == RecordType.CHANGE:
                change = decode_change(record.payload, self.path)
                yield PositionedChange(record.position.sequence, change)

    @property
    def sequence(self) -> int:
        """The sequence of the last record that takes a position; 0 if there is none."""
        taking = (record for record in reversed(self.scan.records) if record.type not in TAKE_NONE)
        return next((record.position.sequence for record in taking), 0)

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """Yields epoch, first and last sequence of records that follow each other in one epoch.
        None of log format 1, whose sequences begin again with each epoch."""
        if self.scan.format == log_format_v1.FORMAT:
            return
        taking = (record for record in self.scan.records if record.type not in TAKE_NONE)
        for epoch, records in groupby(taking, key=lambda record: record.position.epoch):
            sequences = [record.position.sequence for record in records]
            yield epoch, sequences[0], sequences[-1]

    def rows(self) -> int:
        """Counts the rows of all groups, superseded ones and entries included. Reads no values,
        except in log format 1, whose groups it decodes. Raises Corrupt for an unknown record."""
        for record in self.scan.records:
            refuse_unknown(record, _KNOWN, self.path)
        if self.scan.format == log_format_v1.FORMAT:
            return sum(part.rows.num_rows for group in self.groups() for part in group.parts)
        groups = (record for record in self.scan.records if record.type == RecordType.GROUP)
        return sum(rows_in(record.payload, self.path) for record in groups)


_KNOWN = (RecordType.SCHEMA, RecordType.GROUP, RecordType.CHANGE)


def seal_segment(disk: Disk, root: str, region_id: int, name: Numbered, is_last: bool) -> SealedLog:
    """Decides what of a segment counts: its whole records, as far as they can be seen now.

    Only an opening's last segment can have a torn tail: the others were synced to their end before
    the next was made. Raises Corrupt for damage anywhere else.
    """
    text = segment_name(name)
    path = posixpath.join(root, text)
    with lost_if_missing(root, text):
        length = disk.size(path)
    data = _read(disk, root, text, length)
    scan = _scanned(data, SegmentHeader(region_id, name), path)
    if not is_last and scan.length < len(data):
        raise Corrupt(segment=path, damaged_at=scan.length, reason="not the last segment")
    crc32 = f"{zlib.crc32(memoryview(data)[: scan.length]):08x}"
    entry = SealedEntry(root=root, name=text, bytes=scan.length, crc32=crc32, rows=0)
    rows = SealedLog(entry, scan, path).rows()
    return SealedLog(entry.model_copy(update={"rows": rows}), scan, path)


def read_sealed(disk: Disk, root: str, entry: SealedEntry) -> SealedLog:
    """Reads a segment up to its seal. Raises Corrupt if these are not the bytes that were sealed,
    Unavailable `region-lost` if they are gone."""
    path = posixpath.join(root, entry.name)
    data = _read(disk, root, entry.name, entry.bytes)
    if len(data) != entry.bytes or f"{zlib.crc32(data):08x}" != entry.crc32:
        raise Corrupt(segment=path, bytes=len(data), sealed=entry.bytes)
    format_header = header_of(data, path)
    if format_header is None:
        if data:
            raise Corrupt(segment=path, damaged_at=0, sealed=entry.bytes)
        return SealedLog(entry, SegmentScan(None, (), 0), path)
    says = segment_name(Numbered(*format_header[1].name))
    if says != entry.name:
        raise Corrupt(segment=path, says=says)
    scan = _scanned(data, format_header[1], path)
    if scan.length != entry.bytes:
        raise Corrupt(segment=path, damaged_at=scan.length, sealed=entry.bytes)
    return SealedLog(entry, scan, path)


def cut_log(disk: Disk, own_root: str, log: SealedLog, sequence: int) -> SealedLog | None:
    """The log without records behind that sequence: sealed shorter, the segment itself stays as it
    is. None: nothing is left of it. Raises Corrupt for log format 1, which numbers anew in each
    epoch."""
    if log.scan.format == log_format_v1.FORMAT:
        raise Corrupt(segment=log.path, format=log.scan.format, reason="it cannot be cut")
    kept = tuple(takewhile(lambda record: record.position.sequence <= sequence, log.scan.records))
    if len(kept) == len(log.scan.records):
        return log if kept else None
    if not kept:
        return None
    length = HEADER_BYTES + sum(RECORD_HEADER_BYTES + len(record.payload) for record in kept)
    data = _read(disk, log.entry.root or own_root, log.entry.name, length)
    shorter = replace(log, scan=replace(log.scan, records=kept, length=length))
    crc32 = f"{zlib.crc32(data):08x}"
    update = {"bytes": length, "crc32": crc32, "rows": shorter.rows()}
    return replace(shorter, entry=log.entry.model_copy(update=update))


def sealed_rows(log: SealedLog, columns: Sequence[ColumnDef], family: int = ROWS) -> pa.Table:
    """All rows of a family in the log, as `file_schema` of its `columns`, in log order, superseded
    ones too."""
    schema = file_schema(columns)
    parts = [schema.empty_table()]
    for group in log.groups():
        own = (part.rows for part in group.parts if part.family == family)
        parts += (conformed(pa.Table.from_batches([rows]), schema) for rows in own)
    return pa.concat_tables(parts)


def unsealed_segments(names: Sequence[str], manifest: Manifest) -> list[Numbered]:
    """The segments of the manifest's own opening that its files do not hold, oldest first.

    Raises Corrupt if one in between is missing, or if a later opening wrote without a manifest:
    an opening publishes one before it serves.
    """
    all_segments = segments(names)
    if any(segment.of > manifest.id.of for segment in all_segments):
        raise Corrupt(found=segment_name(all_segments[-1]), manifest=list(manifest.id))
    own = [s for s in all_segments if s.of == manifest.id.of and s.number >= manifest.log_from]
    for expected, segment in enumerate(own, start=manifest.log_from):
        if segment.number != expected:
            missing = Numbered(segment.epoch, segment.opening, expected)
            raise Corrupt(missing=segment_name(missing), found=segment_name(segment))
    return own


def last_position(disk: Disk, root: str, manifest: Manifest) -> LogPosition:
    """The position of the last record in the files and the log of *root*, that of other roots left
    out; NO_RECORD: there is none with a position. Reads the whole log, and changes nothing.

    Raises Corrupt for a log that is damaged, Unavailable `region-lost` for one that is gone.
    """
    in_files = manifest.in_files
    last = NO_RECORD if in_files is None else LogPosition(in_files.epoch, in_files.sequence)
    for log in _own_logs(disk, root, manifest):
        for epoch, _, sequence in log.runs():
            last = max(last, LogPosition(epoch, sequence))
    return last


def _own_logs(disk: Disk, root: str, manifest: Manifest) -> Iterator[SealedLog]:
    growing = unsealed_segments(disk.list(root), manifest)
    for entry in manifest.sealed:
        if entry.root in (None, root):
            yield read_sealed(disk, root, entry)
    for name in growing:
        yield seal_segment(disk, root, manifest.spec.region_id, name, name == growing[-1])


def _read(disk: Disk, root: str, name: str, length: int) -> bytes:
    with lost_if_missing(root, name):
        return disk.read(posixpath.join(root, name), 0, length)


def _scanned(data: bytes, expected: SegmentHeader, path: str) -> SegmentScan:
    format_header = header_of(data, path)
    if format_header is not None and format_header[0] == log_format_v1.FORMAT:
        scan = log_format_v1.scan_records(data, path)
        if scan.header != expected:
            raise Corrupt(segment=path, found=str(scan.header), expected=str(expected))
        return scan
    return scan_records(data, expected, path)
