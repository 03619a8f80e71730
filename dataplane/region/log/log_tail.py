"""Reads the retained log of an open region for copies that lack its last records."""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from dataplane.log.records import RecordType, SegmentHeader, SegmentScan, scan_records
from dataplane.region.disk.disk import Disk
from dataplane.region.format.names import Numbered, parse_segment, segment_name, segments
from dataplane.region.log.log_writer import PositionedRecord
from dataplane.region.log.logged_group import SCHEMA_ID_BYTES, schema_ids
from dataplane.region.manifests.manifest import Manifest


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """The payload of a SCHEMA record, as it was logged."""

    data: bytes

    @property
    def id(self) -> bytes:
        return self.data[:SCHEMA_ID_BYTES]

    def encode(self) -> bytes:
        return self.data


@dataclass(frozen=True, slots=True)
class LogPart:
    """A segment, or a part of it, that a manifest or an opening lets a replay read."""

    root: str
    name: Numbered
    bytes: int


class LogTail:
    """Keeps the segment that was read last: a copy that catches up asks for one after another. Not
    safe for two threads."""

    def __init__(self, disk: Disk, root: str, region_id: int) -> None:
        self._disk = disk
        self._root = root
        self._region_id = region_id
        self._part: LogPart | None = None
        self._groups: tuple[PositionedRecord, ...] = ()

    def after(
        self, manifest: Manifest, sequence: int, end: int, bytes_max: int
    ) -> list[PositionedRecord]:
        """Records behind *sequence*, up to *end*, which are durable; at least one if there is any,
        and no more than fit. Empty where the log does not reach back to *sequence*.

        Raises NotFound for a segment that a flush has removed meanwhile: ask again.
        """
        groups: list[PositionedRecord] = []
        following, size = sequence + 1, 0
        for part in self._parts(manifest):
            for group in self._read(part):
                if group.position.sequence > end:
                    return groups
                if group.position.sequence < following:
                    continue
                size += len(group.payload)
                is_next = group.position.sequence == following
                if not is_next or (groups and size > bytes_max):
                    return groups
                groups.append(group)
                following += 1
        return groups

    def _parts(self, manifest: Manifest) -> Iterator[LogPart]:
        """Oldest first; own segments as long as they are now."""
        for entry in manifest.sealed:
            name = parse_segment(entry.name)
            if not entry.covered and name is not None:
                yield LogPart(entry.root or self._root, name, entry.bytes)
        own = segments(self._disk.list(self._root))
        for name in own:
            if name.of == manifest.id.of and name.number >= manifest.log_from:
                yield LogPart(self._root, name, self._disk.size(self._path(self._root, name)))

    def _read(self, part: LogPart) -> tuple[PositionedRecord, ...]:
        if part != self._part:
            path = self._path(part.root, part.name)
            data = self._disk.read(path, 0, part.bytes)
            scan = scan_records(data, SegmentHeader(self._region_id, part.name), path)
            self._part, self._groups = part, tuple(_records(scan, path))
        return self._groups

    def _path(self, root: str, name: Numbered) -> str:
        return posixpath.join(root, segment_name(name))


def _records(scan: SegmentScan, path: str) -> Iterator[PositionedRecord]:
    schemas: dict[bytes, StoredSchema] = {}
    for record in scan.records:
        if record.type == RecordType.SCHEMA:
            schema = StoredSchema(bytes(record.payload))
            schemas[schema.id] = schema
        elif record.type == RecordType.GROUP:
            needed = [schemas[id] for id in schema_ids(record.payload, path)]
            yield PositionedRecord(record.position, record.payload, needed)
        else:
            type_ = RecordType(record.type)
            yield PositionedRecord(record.position, record.payload, type=type_)
