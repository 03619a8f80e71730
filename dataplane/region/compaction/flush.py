"""Writes each memtable to a Parquet file of the own root, and plans the manifest after it."""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.log.records import LogPosition
from dataplane.region.compaction.version_retention import KeptVersions
from dataplane.region.files.file_writer import (
    FileTarget,
    row_groups,
    write_rows,
    writing_bytes,
)
from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.families import columns_in
from dataplane.region.format.names import DATA, Numbered, data_name
from dataplane.region.manifests.manifest import (
    FileEntry,
    Manifest,
    Mark,
    SealedEntry,
    StoredPosition,
)
from dataplane.region.memory.memory import Memory
from dataplane.region.memory.memtable import Memtable
from dataplane.region.place import RegionPlace


@dataclass(frozen=True, slots=True)
class Frozen:
    """Memtables that are being flushed, and what the log said when they were frozen."""

    memory: Memory
    log_from: int
    sequence: int
    closed_bytes: int


def flush_bytes(memory: Memory) -> int:
    """The memory that a flush takes: families are written one after the other."""
    return max(map(_flush_bytes, memory.memtables()), default=0)


def _flush_bytes(memtable: Memtable) -> int:
    groups = row_groups(memtable.rows, memtable.row_bytes)
    return memtable.copy_bytes + writing_bytes(memtable.rows, memtable.columns, groups)


def write_memtable(
    region_place: RegionPlace,
    columns: Sequence[ColumnDef],
    memtable: Memtable,
    name: Numbered,
    marks: Sequence[Mark],
) -> FileEntry:
    """The newest row of each key, and what open marks keep beside it; `columns` are the table's.

    The file is durable, but nothing until a manifest names it.
    """
    own = columns_in(memtable.family, columns)
    folder = posixpath.join(region_place.root, DATA)
    region_place.disk.make_folder(folder)
    rows = memtable.parts_by_key(every_version=bool(marks))
    if marks:
        rows = map(KeptVersions(mark.version for mark in marks).of, rows)
    target = FileTarget(region_place.disk, region_place.root, data_name(name), own, memtable.family)
    entry = write_rows(target, rows)
    region_place.disk.sync_folder(folder)
    return entry


def flushed(
    manifest: Manifest,
    frozen: Frozen,
    entries: Sequence[FileEntry],
    version: int,
    position: LogPosition | None = None,
) -> Manifest:
    """The number is the caller's. *position*: of the last record that is in the files now.
    A family may have died since its file was begun."""
    living = (entry for entry in entries if entry.family not in manifest.dead_indexes)
    return manifest.model_copy(
        update={
            "version": version,
            "sequence": frozen.sequence,
            "log_from": frozen.log_from,
            "in_files": stored_position(position),
            "files": (*manifest.files, *living),
            "sealed": covered(manifest.sealed),
        }
    )


def stored_position(position: LogPosition | None) -> StoredPosition | None:
    """None also for a position whose epoch is not known."""
    if position is None or (position.epoch == 0 and position.sequence > 0):
        return None
    return StoredPosition(epoch=position.epoch, sequence=position.sequence)


def covered(sealed: Sequence[SealedEntry]) -> tuple[SealedEntry, ...]:
    """Returns the entries that stay listed once all replayed rows stand in own files: the borrowed
    segments, which only an adoption removes. Own segments are not needed any more."""
    return tuple(
        entry.model_copy(update={"covered": True}) for entry in sealed if entry.root is not None
    )
