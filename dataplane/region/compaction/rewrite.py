"""Merges files of a region into one run: a window of rows at a time, and only what must be kept."""

import posixpath
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.compaction.compaction import Compaction
from dataplane.region.compaction.version_retention import KeptVersions
from dataplane.region.files.file_reader import FileReader
from dataplane.region.files.file_writer import ROW_GROUP, FileTarget, write_rows, writing_bytes
from dataplane.region.files.split import FileSplitter, groups_max
from dataplane.region.format.columns import DELETE, OP, VERSION, ColumnDef
from dataplane.region.format.families import columns_in
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.names import DATA, Numbered, data_name
from dataplane.region.manifests.manifest import FileEntry
from dataplane.region.place import RegionPlace
from dataplane.region.reads.lookup import LookupView, merge_sources, scan_bytes
from dataplane.region.reads.merge import merge_versions
from dataplane.region.reads.overlaps import most_together


def merge_bytes(region_place: RegionPlace, columns: Sequence[ColumnDef], plan: Compaction) -> int:
    """The memory that `write_compacted` takes: for the inputs that have keys in common, with their
    footers, and for one output. Reads the footers of files whose entries do not tell their size."""
    own = columns_in(plan.family, columns)
    readers = _readers(region_place, plan)
    read = scan_bytes(LookupView((), readers), KeyRange(), own)
    footers = most_together(readers, lambda reader: reader.footer_bytes)
    groups = min(sum(reader.decoded.row_groups for reader in readers), groups_max(len(own)))
    rows = min(sum(entry.rows for entry in plan.inputs), groups * ROW_GROUP.rows)
    return read + footers + writing_bytes(rows, len(own), groups)


def write_compacted(
    region_place: RegionPlace,
    columns: Sequence[ColumnDef],
    plan: Compaction,
    new_name: Callable[[], Numbered],
    check: Callable[[], None],
) -> list[FileEntry]:
    """Durable, but nothing until a manifest names them; by key; none: no row was left.
    `columns` are the table's.

    *check* is called for each window, and raises when the region has been stopped meanwhile.
    """
    own = columns_in(plan.family, columns)
    folder, outputs = posixpath.join(region_place.root, DATA), []
    for rows in FileSplitter(_kept_rows(region_place, own, plan, check), groups_max(len(own))):
        region_place.disk.make_folder(folder)  # a region of jobs' files alone has none
        name = data_name(new_name())
        target = FileTarget(region_place.disk, region_place.root, name, own, plan.family)
        outputs.append(write_rows(target, rows))
    if outputs:
        region_place.disk.sync_folder(folder)
    return outputs


def _kept_rows(
    region_place: RegionPlace,
    columns: Sequence[ColumnDef],
    plan: Compaction,
    check: Callable[[], None],
) -> Iterator[pa.Table]:
    kept = KeptVersions(plan.marks)
    for window in merge_versions(
        merge_sources(LookupView((), _readers(region_place, plan)), KeyRange(), columns)
    ):
        check()
        rows = kept.of(window)
        if plan.drops_tombstones:
            rows = _without_tombstones(rows, up_to=min(plan.marks, default=None))
        if rows.num_rows:
            yield rows


def _readers(region_place: RegionPlace, plan: Compaction) -> tuple[FileReader, ...]:
    return tuple(FileReader(region_place.files, entry) for entry in plan.inputs)


def _without_tombstones(rows: pa.Table, up_to: int | None) -> pa.Table:
    """Removes tombstones up to the version *up_to*; those above the lowest mark stay (P5). None: no
    mark is open, and all go."""
    gone = pc.equal(rows.column(OP), pa.scalar(DELETE, pa.uint8()))
    if up_to is not None:
        gone = pc.and_(gone, pc.less_equal(rows.column(VERSION), pa.scalar(up_to, pa.int64())))
    return rows.filter(pc.invert(gone))
