"""Reads rows as of a mark, and writes entries: the only code of a backfill that opens files.

Runs on executors, without Spark. Errors as in `executor`.
"""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.pipelines.jobs.backfill_plan import Survey
from dataplane.pipelines.jobs.executor import Output, mended_by_another_attempt, read_back
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.lost import lost_if_missing
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.files.file_reader import FileReader, FileSource
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.files.footer import read_footer
from dataplane.region.format.columns import DELETE, OP, VERSION, ColumnDef
from dataplane.region.format.families import ENTRY_COLUMNS
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.parts import PartSize
from dataplane.region.indexes.index_entries import IndexDef, entry_keys
from dataplane.region.manifests.adoption import data_file, entry_of
from dataplane.region.memory.memtable import first_of_each_key
from dataplane.region.reads.lookup import LookupView, merge_sources
from dataplane.region.reads.merge import merge_versions
from metasrv_base.errors import Corrupt
from metasrv_base.wire.node.inputs import BorrowedFile, Snapshot
from metasrv_base.wire.node.orders import DataFile

STEPS_MAX = 64
"""The most steps of a survey of one file."""
LOOKS_MAX = 16
"""The most samples taken of a file; each decodes a row group, and takes some of its rows."""
LOOK_ROWS = 32
_ONE_GROUP = PartSize(rows=1, bytes=1)


def survey_file(disk: Disk, borrowed: BorrowedFile, index: IndexDef | None) -> Survey:
    """A look at the footer of a file, and at some of its rows for the entries that they have."""
    entry = entry_of(borrowed.file, borrowed.root)
    reader = FileReader(FileSource(disk, borrowed.root, BlockCache()), entry)
    reader.verify_present()
    with lost_if_missing(borrowed.root, entry.name):
        footer = read_footer(disk, reader.path, entry)
    lows = [low for low, _ in footer.bounds]
    rows = [footer.metadata.row_group(group).num_rows for group in range(len(lows))]
    firsts = range(0, len(lows), -(-len(lows) // STEPS_MAX))
    steps = [(lows[first], sum(rows[first : first + firsts.step])) for first in firsts]
    if index is None:
        return Survey(tuple(steps), ())
    samples: list[bytes] = []
    for first in range(0, len(lows), -(-len(lows) // LOOKS_MAX)):
        table = next(reader.scan(KeyRange(lows[first]), index.columns, _ONE_GROUP))
        places = range(0, table.num_rows, -(-table.num_rows // LOOK_ROWS))
        samples += entry_keys(table.take(pa.array(places)), index).to_pylist()
    return Survey(tuple(steps), tuple(samples))


def rows_at_mark(
    disk: Disk,
    snapshot: Snapshot,
    keys: KeyRange,
    columns: Sequence[ColumnDef],
    on_read: Callable[[int], None] = lambda rows: None,
) -> Iterator[pa.Table]:
    """Yields the newest row of each key at or below the mark, without tombstones, in order of key,
    as `columns.file_schema`.

    Compares every block that is read with its checksum. *on_read* gets the number of stored rows of
    each part that is read; each row counts once.
    """
    source = FileSource(disk, snapshot.root, BlockCache())
    readers = tuple(
        FileReader(source, entry_of(borrowed.file, borrowed.root)) for borrowed in snapshot.files
    )
    for window in merge_versions(merge_sources(LookupView((), readers), keys, columns)):
        on_read(window.num_rows)
        settled = pc.less_equal(window.column(VERSION), pa.scalar(snapshot.version, pa.int64()))
        newest = first_of_each_key(_where(settled, window))
        live = _where(pc.not_equal(newest.column(OP), pa.scalar(DELETE, pa.uint8())), newest)
        if live.num_rows:
            yield live


def _where(mask: pa.ChunkedArray, rows: pa.Table) -> pa.Table:
    """Copies no row where all are wanted."""
    return rows if pc.all(mask, min_count=0).as_py() else rows.filter(mask)


def write_entries(entries: pa.Table, output: Output, family: int) -> DataFile:
    """Writes at least one entry, sorted by key, and reads back the file."""
    output.make_folder()
    target = FileTarget(output.disk, output.root, output.name, ENTRY_COLUMNS, family)
    file = data_file(write_rows(target, [entries]))
    output.disk.sync_folder(output.folder)
    with mended_by_another_attempt():
        stored = read_back(output.disk, output.root, file, ENTRY_COLUMNS)
        if not is_same(stored, entries):
            raise Corrupt(
                path=output.path, reason="it reads back differently from what was written"
            )
    return file


def is_same(stored: Iterator[pa.Table], entries: pa.Table) -> bool:
    offset = 0
    for part in stored:
        if not part.equals(entries.slice(offset, part.num_rows)):
            return False
        offset += part.num_rows
    return bool(offset == entries.num_rows)
