"""One Parquet file or log segment as it is on disk, beside what its manifest says of it."""

import posixpath
import zlib
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.disk.disk import Disk
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.files.file_reader import FileReader, FileSource
from dataplane.region.format.checksum import RowsDigest
from dataplane.region.format.columns import KEY, VERSION
from dataplane.region.format.key_range import KeyRange, lower_bound, upper_bound
from dataplane.region.format.names import Numbered, segment_name
from dataplane.region.format.stored_digest import digest_as, text_as
from dataplane.region.log.sealed_log import SealedLog, read_sealed, seal_segment
from dataplane.region.manifests.manifest import FileEntry, SealedEntry, StatementFile
from metasrv_base.errors import MetaError, NotFound
from metasrv_base.wire.node.inspect import (
    FileContent,
    InspectedFile,
    InspectedSegment,
    SegmentContent,
)

_CHUNK_BYTES = 1 << 20


def reader_of(disk: Disk, root: str, entry: FileEntry) -> FileReader:
    """A reader without a cache: every row group is read once."""
    return FileReader(FileSource(disk, root, BlockCache(0)), entry)


def inspect_file(disk: Disk, root: str, entry: FileEntry, deep: bool) -> InspectedFile:
    """Raises nothing: what is wrong is part of what is said. Deeply: with all its values."""
    inspected = _inspected(disk, root, entry, deep)
    return inspected.model_copy(update={"family": entry.family})


def inspect_statements(disk: Disk, root: str, entry: StatementFile) -> InspectedFile:
    """A file of remembered statements, as far as the manifest names it: it may grow behind that."""
    path = posixpath.join(root, entry.name)
    listed = FileContent(bytes=entry.bytes, crc32=entry.crc32)
    try:
        data = disk.read(path, 0, entry.bytes)
    except NotFound:
        return InspectedFile(path=path, listed=listed, found=None)
    except MetaError as error:
        return InspectedFile(path=path, listed=listed, found=None, error=str(error))
    content = FileContent(bytes=len(data), crc32=f"{zlib.crc32(data):08x}")
    return InspectedFile(path=path, listed=listed, found=content)


def _inspected(disk: Disk, root: str, entry: FileEntry, deep: bool) -> InspectedFile:
    reader = reader_of(disk, root, entry)
    listed = FileContent(
        bytes=entry.bytes,
        crc32=entry.crc32,
        rows=entry.rows,
        row_checksum=entry.row_checksum,
        min_key=entry.min_key,
        max_key=entry.max_key,
        min_version=entry.min_version,
        max_version=entry.max_version,
    )
    try:
        bytes_found = FileContent(**_bytes_of(disk, reader.path).model_dump())
    except NotFound:
        return InspectedFile(path=reader.path, listed=listed, found=None)
    except MetaError as error:
        return InspectedFile(path=reader.path, listed=listed, found=None, error=str(error))
    tally = _Seen(entry.row_checksum)
    try:
        for table in reader.scan_as_written() if deep else reader.scan(KeyRange(), ()):
            tally.add(table, deep)
    except MetaError as error:
        return InspectedFile(path=reader.path, listed=listed, found=bytes_found, error=str(error))
    content = bytes_found.model_copy(update=tally.facts(deep))
    return InspectedFile(
        path=reader.path, listed=listed, found=content, unsorted_at=tally.unsorted_at
    )


def _bytes_of(disk: Disk, path: str) -> FileContent:
    length, crc, offset = disk.size(path), 0, 0
    while part := disk.read(path, offset, _CHUNK_BYTES):
        crc = zlib.crc32(part, crc)
        offset += len(part)
    return FileContent(bytes=length, crc32=f"{crc:08x}")


@dataclass
class _Seen:
    """Facts about the rows of one file, gathered part by part."""

    listed_checksum: str
    digest: RowsDigest = field(default_factory=RowsDigest)
    rows: int = 0
    first: bytes = b""
    last: tuple[bytes, int] | None = None
    versions: tuple[int, int] | None = None
    unsorted_at: int | None = None

    def add(self, table: pa.Table, deep: bool) -> None:
        if not table.num_rows:
            return
        keys = table.column(KEY).combine_chunks()
        versions = table.column(VERSION).combine_chunks()
        if self.last is None:
            self.first = keys[0].as_py()
        if self.unsorted_at is None:
            self._look_for_disorder(keys, versions)
        self.last = (keys[-1].as_py(), versions[-1].as_py())
        span = pc.min_max(versions).as_py()
        low, high = self.versions or (span["min"], span["max"])
        self.versions = (min(low, span["min"]), max(high, span["max"]))
        self.rows += table.num_rows
        if deep:
            self.digest = self.digest + digest_as(self.listed_checksum, table)

    def _look_for_disorder(self, keys: pa.Array, versions: pa.Array) -> None:
        first = (keys[0].as_py(), versions[0].as_py())
        if self.last is not None and not _follows(self.last, first):
            self.unsorted_at = self.rows
            return
        rises = pc.greater(keys[1:], keys[:-1])
        is_older = pc.and_(pc.equal(keys[1:], keys[:-1]), pc.less(versions[1:], versions[:-1]))
        wrong = pc.index(pc.or_(rises, is_older), value=False).as_py()
        if wrong >= 0:
            self.unsorted_at = self.rows + wrong + 1

    def facts(self, deep: bool) -> dict[str, object]:
        low, high = self.versions or (None, None)
        return {
            "rows": self.rows,
            "row_checksum": text_as(self.listed_checksum, self.digest) if deep else None,
            "min_key": lower_bound(self.first).hex(),
            "max_key": upper_bound(self.last[0]).hex() if self.last else "",
            "min_version": low,
            "max_version": high,
        }


def _follows(before: tuple[bytes, int], after: tuple[bytes, int]) -> bool:
    return after[0] > before[0] or (after[0] == before[0] and after[1] < before[1])


@dataclass(frozen=True, slots=True)
class ReadSegment:
    """`log` None: it could not be read, `inspected` tells why."""

    inspected: InspectedSegment
    log: SealedLog | None
    version: int = 0
    """The highest that it has."""


def inspect_sealed(disk: Disk, own_root: str, entry: SealedEntry) -> ReadSegment:
    """A segment of an older opening, up to its seal."""
    root = entry.root or own_root
    path = f"{root}/{entry.name}"
    sealed = SegmentContent(bytes=entry.bytes, crc32=entry.crc32, rows=entry.rows)
    try:
        data = disk.read(path, 0, entry.bytes)
        content = SegmentContent(bytes=len(data), crc32=f"{zlib.crc32(data):08x}", rows=entry.rows)
        if (content.bytes, content.crc32) != (sealed.bytes, sealed.crc32):
            return ReadSegment(InspectedSegment(path=path, sealed=sealed, found=content), None)
        log = read_sealed(disk, root, entry)
        version = _version_of(log)
    except NotFound:
        return ReadSegment(InspectedSegment(path=path, sealed=sealed, found=None), None)
    except MetaError as error:
        inspected = InspectedSegment(path=path, sealed=sealed, found=None, error=str(error))
        return ReadSegment(inspected, None)
    content = content.model_copy(update={"rows": log.rows()})
    return ReadSegment(InspectedSegment(path=path, sealed=sealed, found=content), log, version)


def _version_of(log: SealedLog) -> int:
    """Raises Corrupt if it cannot be decoded."""
    return max((group.version for group in log.groups()), default=0)


def inspect_growing(
    disk: Disk, root: str, region_id: int, name: Numbered, is_last: bool
) -> ReadSegment:
    """A segment of the current opening: all its whole records count."""
    path = f"{root}/{segment_name(name)}"
    try:
        log = seal_segment(disk, root, region_id, name, is_last)
        version = _version_of(log)
    except MetaError as error:
        inspected = InspectedSegment(path=path, sealed=None, found=None, error=str(error))
        return ReadSegment(inspected, None)
    entry = log.entry
    content = SegmentContent(bytes=entry.bytes, crc32=entry.crc32, rows=entry.rows)
    return ReadSegment(InspectedSegment(path=path, sealed=None, found=content), log, version)
