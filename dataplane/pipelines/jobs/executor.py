"""Reads, copies and writes the files of a move: the only code of a move that opens one.

Runs on executors, without Spark. An input that is gone raises Unavailable `region-lost`, one that
is not what its manifest says raises Corrupt; both name it. Output that cannot be written, or reads
otherwise than it was written, raises Unavailable `storage-full` or `not-ready`, or Unknown.
"""

import posixpath
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataplane.pipelines.jobs.plan import RewriteInput, RowFamily
from dataplane.region.compaction.version_retention import KeptVersions
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.lost import lost_if_missing
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.files.block_sums import sums_of
from dataplane.region.files.file_reader import FileReader, FileSource
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.files.footer import read_footer
from dataplane.region.format.checksum import RowsDigest
from dataplane.region.format.columns import KEY, ColumnDef, file_schema
from dataplane.region.format.conforming import conformed
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.stored_digest import digest_stored, stored_text
from dataplane.region.indexes.index_entries import sorted_entries
from dataplane.region.log.sealed_log import read_sealed, sealed_rows
from dataplane.region.manifests.adoption import data_file, entry_of
from dataplane.region.manifests.manifest import SealedEntry
from metasrv_base.errors import Corrupt, NotFound, Unavailable
from metasrv_base.wire.node.inputs import BorrowedFile, SealedSegment
from metasrv_base.wire.node.orders import DataFile

_CHUNK_BYTES = 4 << 20
_BATCH_ROWS = 64 << 10


@dataclass(frozen=True, slots=True)
class Output:
    """The place where one task writes: `name` is relative to `root`, and no other task has it."""

    disk: Disk
    root: str
    name: str

    def make_folder(self) -> None:
        """Makes the attempt's folder, and never the region's: one that was dropped while the job
        ran would lie there for good. Raises Unavailable `region-lost`."""
        with lost_if_missing(self.root):
            self.disk.list(self.root)
        self.disk.make_folder(self.folder)

    @property
    def path(self) -> str:
        return posixpath.join(self.root, self.name)

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.path)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """One range of keys. `file` is None where the range had no rows."""

    received: RowsDigest
    file: DataFile | None


def copy_file(source: BorrowedFile, output: Output) -> DataFile:
    """Byte for byte, by the file system. What it has made must have the checksum of the manifest;
    if not, the source is looked at, to tell whose fault it is."""
    output.make_folder()
    path = posixpath.join(source.root, source.file.name)
    with lost_if_missing(source.root, source.file.name):
        output.disk.size(path)
    crc32 = output.disk.copy(path, output.path)
    output.disk.sync_folder(output.folder)
    if f"{crc32:08x}" != source.file.checksum:
        _verify(output.disk, source.root, source.file)
        reason = "the copy differs from its source"
        raise Unavailable("not-ready", path=output.path, reason=reason)
    return source.file.model_copy(update={"name": output.name})


def read_input(
    disk: Disk, source: RewriteInput, families: Sequence[RowFamily]
) -> Iterator[tuple[RowFamily, pa.Table]]:
    """All stored rows of those families in an input, superseded ones and tombstones too, as
    `columns.file_schema`. An input is read once, whatever it holds."""
    if isinstance(source, SealedSegment):
        entry = SealedEntry(
            root=source.root, name=source.name, bytes=source.bytes, crc32=source.checksum, rows=0
        )
        log = read_sealed(disk, source.root, entry)
        for family in families:
            yield family, sealed_rows(log, family.columns, family.number)
        return
    for family in families:
        if source.file.family == family.number:
            for table in verified_rows(disk, source.root, source.file, family.columns):
                yield family, table


def sorted_run(tables: Sequence[pa.Table], kept: KeptVersions) -> pa.Table:
    """Returns the rows that must be kept, by key and newest first."""
    rows = pa.concat_tables(tables)
    run = sorted_entries(rows)
    assert run.num_rows == rows.num_rows, "sorting loses nothing"
    return kept.of(run)


def write_range(
    tables: Iterator[pa.Table], output: Output, family: RowFamily, kept: KeptVersions
) -> Rewritten:
    """Writes what must be kept of rows that come by key and newest first, and reads it back."""
    rows = _Rows(tables, kept)
    first = next(rows.to_write, None)
    if first is None:
        return Rewritten(rows.received, None)
    output.make_folder()
    columns = family.columns
    target = FileTarget(output.disk, output.root, output.name, columns, family.number)
    file = data_file(write_rows(target, _chain(first, rows.to_write)))
    output.disk.sync_folder(output.folder)
    with mended_by_another_attempt():
        stored = read_back(output.disk, output.root, file, columns)
        digest = sum(map(digest_stored, stored), RowsDigest())
        if (digest.rows, stored_text(digest)) != (file.rows, file.row_checksum):
            raise Corrupt(path=output.path, rows=digest.rows, expected=file.rows)
    return Rewritten(rows.received, file)


def remove_strays(output: Output, prefix: str, named: Sequence[str]) -> None:
    """Deletes what tasks of this run wrote and the result does not name: shares, and files of tasks
    that failed half-way. A folder that holds nothing then goes, too."""
    try:
        names = output.disk.list(output.folder)
    except NotFound:
        return
    strays = [
        name
        for name in names
        if name.startswith(prefix) and f"{posixpath.dirname(output.name)}/{name}" not in named
    ]
    if len(strays) == len(names):
        output.disk.remove_tree(output.folder)
        return
    for name in strays:
        output.disk.remove(posixpath.join(output.folder, name))
    output.disk.sync_folder(output.folder)


class _Rows:
    """Rows on their way from the sort to the writer, counted as they pass."""

    def __init__(self, tables: Iterator[pa.Table], kept: KeptVersions) -> None:
        self.received = RowsDigest()
        self.to_write = self._filtered(tables, kept)

    def _filtered(self, tables: Iterator[pa.Table], kept: KeptVersions) -> Iterator[pa.Table]:
        for table in tables:
            keys = table.column(KEY).combine_chunks()
            if pc.any(pc.greater(keys[:-1], keys[1:])).as_py():
                raise Unavailable("not-ready", reason="rows did not come sorted")
            self.received = self.received + digest_stored(table)
            table = kept.of(table)
            if table.num_rows:
                yield table


def _chain(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from rest


@contextmanager
def mended_by_another_attempt() -> Iterator[None]:
    """Raises Unavailable `not-ready` for a fault of our own output: unlike one of an input, another
    attempt mends it."""
    try:
        yield
    except (Corrupt, Unavailable) as error:
        raise Unavailable("not-ready", **error.facts) from error


def _verify(disk: Disk, root: str, file: DataFile) -> None:
    """Reads a whole file. Raises Corrupt if its bytes are not those of its manifest."""
    path = posixpath.join(root, file.name)
    crc = 0
    with lost_if_missing(root, file.name):
        size = disk.size(path)
    if size != file.bytes:
        raise Corrupt(path=path, bytes=size, expected=file.bytes)
    for offset in range(0, file.bytes, _CHUNK_BYTES):
        with lost_if_missing(root, file.name):
            data = disk.read(path, offset, _CHUNK_BYTES)
        crc = zlib.crc32(data, crc)
    if f"{crc:08x}" != file.checksum:
        raise Corrupt(path=path, checksum=f"{crc:08x}", expected=file.checksum)


def verified_rows(
    disk: Disk, root: str, file: DataFile, columns: Sequence[ColumnDef]
) -> Iterator[pa.Table]:
    """Yields the rows of a file, after its whole body was verified."""
    _verify(disk, root, file)
    reader = FileReader(FileSource(disk, root, BlockCache()), entry_of(file, root))
    return reader.scan(KeyRange(), columns)


def read_back(
    disk: Disk, root: str, file: DataFile, columns: Sequence[ColumnDef]
) -> Iterator[pa.Table]:
    """The rows of a file that was just written, decoded from one read of all its bytes, which are
    compared with its checksum and with those of its blocks first."""
    path = posixpath.join(root, file.name)
    with lost_if_missing(root, file.name):
        data = disk.read(path, 0, file.bytes)
    if len(data) != file.bytes or f"{zlib.crc32(data):08x}" != file.checksum:
        raise Corrupt(path=path, bytes=len(data), expected=file.bytes)
    body = read_footer(disk, path, entry_of(file, root)).body
    if sums_of(memoryview(data)[: body.bytes]) != list(body.sums):
        raise Corrupt(path=path, reason="a block's checksum is wrong")
    schema = file_schema(columns)
    try:
        with pq.ParquetFile(pa.BufferReader(data)) as stored:
            for batch in stored.iter_batches(_BATCH_ROWS, use_threads=False):
                yield conformed(pa.Table.from_batches([batch]), schema)
    except pa.ArrowException as error:
        raise Corrupt(path=path, reason="the file cannot be decoded") from error
