"""Turns a memtable into a Parquet file of the region's own root."""

import posixpath
from collections.abc import Iterator, Sequence

import pyarrow as pa

from dataplane.region.columns import ColumnDef
from dataplane.region.file_writer import FileTarget, write_rows
from dataplane.region.manifest import FileEntry
from dataplane.region.memtable import Memtable
from dataplane.region.names import DATA, Numbered, data_name
from dataplane.region.place import RegionPlace

_SLICE_ROWS = 65_536  # how many rows are encoded and digested at a time


def write_memtable(
    place: RegionPlace, columns: Sequence[ColumnDef], memtable: Memtable, name: Numbered
) -> FileEntry:
    """The newest row of each key. The file is durable, but nothing until a manifest names it."""
    folder = posixpath.join(place.root, DATA)
    place.disk.make_folder(folder)
    table = memtable.sorted_rows(memtable.batches)
    target = FileTarget(place.disk, place.root, data_name(name), columns)
    entry = write_rows(target, _slices(table))
    place.disk.sync_folder(folder)
    return entry


def _slices(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, _SLICE_ROWS):
        yield table.slice(start, _SLICE_ROWS)
