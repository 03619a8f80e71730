"""Reads log segments of older openings: seals what has no seal yet, never reads beyond one."""

import posixpath
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from base.errors import Corrupt
from dataplane.region.batch_format import LoggedBatch, decode_batch
from dataplane.region.columns import VERSION, ColumnDef, file_schema
from dataplane.region.conforming import conformed
from dataplane.region.disk import Disk
from dataplane.region.families import ROWS, sliced
from dataplane.region.log_format import BATCH, SegmentScan, scan_segment
from dataplane.region.lost import lost_if_missing
from dataplane.region.manifest import Manifest, SealedEntry
from dataplane.region.names import Numbered, segment_name, segments


@dataclass(frozen=True, slots=True)
class SealedLog:
    """One segment's batches up to its seal, in order, and the sequence of the last (0: none)."""

    entry: SealedEntry
    batches: tuple[LoggedBatch, ...]
    sequence: int


def seal_segment(disk: Disk, root: str, name: Numbered, is_last: bool) -> SealedLog:
    """Decides what of a segment counts: its whole records, as far as they can be seen now.

    Only an opening's last segment can have a torn tail: the others were synced to their end before
    the next was made. Raises Corrupt for damage anywhere else.
    """
    text = segment_name(name)
    path = posixpath.join(root, text)
    with lost_if_missing(root, text):
        length = disk.size(path)
    data = _read(disk, root, text, length)
    scan = scan_segment(data, path)
    if not is_last and scan.length < len(data):
        raise Corrupt(segment=path, damaged_at=scan.length, reason="not the last segment")
    sealed = SealedEntry(
        root=root,
        name=text,
        bytes=scan.length,
        crc32=f"{zlib.crc32(data[: scan.length]):08x}",
        rows=0,
    )
    log = _decoded(scan, sealed, path)
    rows = sum(batch.rows.num_rows for batch in log.batches)
    return SealedLog(sealed.model_copy(update={"rows": rows}), log.batches, log.sequence)


def read_sealed(disk: Disk, root: str, entry: SealedEntry) -> SealedLog:
    """Reads a segment up to its seal. Raises Corrupt if these are not the bytes that were sealed,
    Unavailable `region-lost` if they are gone."""
    path = posixpath.join(root, entry.name)
    data = _read(disk, root, entry.name, entry.bytes)
    if len(data) != entry.bytes or f"{zlib.crc32(data):08x}" != entry.crc32:
        raise Corrupt(segment=path, bytes=len(data), sealed=entry.bytes)
    return _decoded(scan_segment(data, path), entry, path)


def sealed_rows(log: SealedLog, columns: Sequence[ColumnDef], family: int = ROWS) -> pa.Table:
    """All rows of a family in the log, as `file_schema` of its `columns`, in log order, superseded
    ones too."""
    schema = file_schema(columns)
    parts = [schema.empty_table()]
    for batch in log.batches:
        for rows in (rows for found, rows in sliced(batch.rows) if found == family):
            stamps = pa.repeat(pa.scalar(batch.head.version, pa.int64()), rows.num_rows)
            table = pa.Table.from_batches([rows]).append_column(VERSION, stamps)
            parts.append(conformed(table, schema))
    return pa.concat_tables(parts)


def unsealed_segments(names: Sequence[str], manifest: Manifest) -> list[Numbered]:
    """The segments of the manifest's own opening that its files do not hold, oldest first.

    Raises Corrupt if one in between is missing, or if a later opening wrote without a manifest:
    an opening publishes one before it serves.
    """
    found = segments(names)
    if any(segment.of > manifest.id.of for segment in found):
        raise Corrupt(found=segment_name(found[-1]), manifest=list(manifest.id))
    own = [s for s in found if s.of == manifest.id.of and s.number >= manifest.log_from]
    for expected, segment in enumerate(own, start=manifest.log_from):
        if segment.number != expected:
            missing = Numbered(segment.epoch, segment.opening, expected)
            raise Corrupt(missing=segment_name(missing), found=segment_name(segment))
    return own


def _read(disk: Disk, root: str, name: str, length: int) -> bytes:
    with lost_if_missing(root, name):
        return disk.read(posixpath.join(root, name), 0, length)


def _decoded(scan: SegmentScan, entry: SealedEntry, path: str) -> SealedLog:
    if scan.header is not None and segment_name(scan.header.name) != entry.name:
        raise Corrupt(segment=path, says=segment_name(scan.header.name))
    if scan.length != entry.bytes:
        raise Corrupt(segment=path, damaged_at=scan.length, sealed=entry.bytes)
    sequence = 0
    batches = []
    for record in scan.records:
        if record.kind != BATCH or (sequence and record.sequence != sequence + 1):
            raise Corrupt(segment=path, kind=record.kind, sequence=record.sequence, last=sequence)
        sequence = record.sequence
        batches.append(decode_batch(record.payload, path))
    return SealedLog(entry, tuple(batches), sequence)
