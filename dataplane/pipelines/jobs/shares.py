"""Rows on their way from the tasks that read them to the tasks that write them.

Each task that reads leaves one file in the attempt's folder: chunks of rows, each an Arrow stream
for one output, then an index of the chunks. So Spark moves names and counts, and no row passes
through Java. The files are not synced; the job deletes them at its end, and the region those of a
job that died (`housekeeping.obsolete_paths`). A chunk arrives as it was left, or not at all.
"""

import posixpath
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from dataplane.pipelines.jobs.executor import Output
from dataplane.region.disk.disk import Disk
from dataplane.region.format.columns import KEY
from dataplane.region.format.key_range import KeyRange, cut_to_range
from dataplane.region.format.names import SHARE
from metasrv_base.errors import NotFound, Unavailable


class Chunk(NamedTuple):
    """Rows for one output, and where they stand in the file."""

    output: int
    start: int
    end: int
    crc32: int
    low: bytes
    """The key of the first row."""
    high: bytes
    """The key of the last row."""


@dataclass(frozen=True, slots=True)
class ShareFile:
    """The file that one task has written. Its name and index go through the driver."""

    root: str
    name: str
    """Relative to the root."""
    index: Chunk
    """The place of the index in the file, a table of the chunks. It belongs to no output."""


_INDEX = pa.schema(
    [(name, pa.binary() if name in ("low", "high") else pa.int64()) for name in Chunk._fields]
)


def write_shares(output: Output, shares: Iterable[tuple[int, pa.Table]]) -> ShareFile:
    """Writes rows for each output, some at a time, as they come."""
    output.make_folder()
    file = output.disk.create(output.path + SHARE)
    chunks: list[Chunk] = []
    offset = 0
    try:
        for number, rows in shares:
            if rows.num_rows:
                data, keys = _encoded(rows), rows.column(KEY)
                file.append(data)
                bounds = keys[0].as_py(), keys[rows.num_rows - 1].as_py()
                chunks.append(Chunk(number, offset, offset + len(data), zlib.crc32(data), *bounds))
                offset += len(data)
        data = _encoded(pa.Table.from_pylist([chunk._asdict() for chunk in chunks], schema=_INDEX))
        file.append(data)
    finally:
        file.close()
    index = Chunk(-1, offset, offset + len(data), zlib.crc32(data), b"", b"")
    return ShareFile(output.root, output.name + SHARE, index)


def read_shares(
    disk: Disk, files: Sequence[ShareFile], output: int, keys: KeyRange | None = None
) -> Iterator[pa.Table]:
    """Rows for one output. *keys*: those in the range alone, of chunks that are sorted by key.
    Raises Unavailable for a file that is gone or damaged."""
    for file in files:
        for row in _decoded(disk, file, file.index).to_pylist():
            chunk = Chunk(**row)
            if chunk.output != output:
                continue
            if keys is None:
                yield _decoded(disk, file, chunk)
            elif keys.overlaps(chunk.low, chunk.high):
                yield cut_to_range(_decoded(disk, file, chunk), keys)


def _encoded(rows: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return memoryview(sink.getvalue())


def _decoded(disk: Disk, file: ShareFile, chunk: Chunk) -> pa.Table:
    path = posixpath.join(file.root, file.name)
    try:
        data = disk.read(path, chunk.start, chunk.end - chunk.start)
    except NotFound as error:
        raise Unavailable("not-ready", path=path, reason="a share is gone") from error
    if zlib.crc32(data) != chunk.crc32:
        raise Unavailable("not-ready", path=path, reason="a share is damaged")
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
