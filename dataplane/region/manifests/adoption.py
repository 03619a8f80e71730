"""Borrowed inputs go, a job's files come: the two lists that one manifest exchanges."""

import posixpath
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dataplane.region.disk.disk import Disk
from dataplane.region.format.columns import columns_to_tell
from dataplane.region.format.families import ROWS
from dataplane.region.format.names import ATTEMPTS, attempt_of
from dataplane.region.manifests.floor import check_index
from dataplane.region.manifests.manifest import FileEntry, Manifest, StoredPosition
from dataplane.region.manifests.marks import version_of_mark
from metasrv_base.errors import Conflict, NotFound, Refused
from metasrv_base.wire.node.inputs import Borrowed, BorrowedFile, SealedSegment, Snapshot
from metasrv_base.wire.node.orders import DataFile

ADOPTED_KEPT = 64  # procedures that a manifest remembers; one is live at a time


@dataclass(frozen=True, slots=True)
class Ingest:
    """Sorted entries of one index, or rows. `attempt` is `attempts/{name}`."""

    procedure: str
    attempt: str
    index: int
    """ROWS: rows."""
    mark: str
    files: Sequence[DataFile]
    unique_columns: tuple[int, ...] = ()
    """The columns of a unique index, in its order; none: it is not unique."""

    @property
    def name(self) -> str:
        """The name by which a manifest remembers it: a procedure may fill more indexes than one."""
        return f"{self.procedure}/{self.index}"


def borrowed_inputs(manifest: Manifest, root: str) -> Borrowed:
    """Returns the files and logs that a job must bring over. They do not change until it is
    adopted."""
    return Borrowed(
        region_id=str(manifest.spec.region_id),
        epoch=manifest.epoch,
        root=root,
        columns=columns_to_tell(manifest.spec.columns),
        indexes=list(manifest.indexes),
        marks=[mark.version for mark in manifest.marks],
        files=[
            BorrowedFile(root=entry.root, file=data_file(entry))
            for entry in manifest.files
            if entry.root is not None
        ],
        segments=[
            SealedSegment(root=entry.root, name=entry.name, bytes=entry.bytes, checksum=entry.crc32)
            for entry in manifest.sealed
            if entry.root is not None
        ],
    )


def snapshot_files(
    manifest: Manifest, root: str, mark: str, families: Collection[int]
) -> Snapshot | None:
    """Returns the files that hold the rows as of a mark, provided that memory holds none of them.
    None: there is no such mark."""
    version = version_of_mark(manifest, mark)
    if version is None:
        return None
    return Snapshot(
        region_id=str(manifest.spec.region_id),
        epoch=manifest.epoch,
        root=root,
        columns=columns_to_tell(manifest.spec.columns),
        mark=mark,
        version=version,
        files=[
            BorrowedFile(root=entry.root or root, file=data_file(entry))
            for entry in manifest.files
            if entry.family in families
        ],
    )


def adopted(
    manifest: Manifest,
    procedure: str,
    attempt: str,
    files: Sequence[DataFile],
    borrowed_to: StoredPosition | None,
) -> Manifest:
    """The manifest without anything borrowed and with the job's files, but for indexes that died
    meanwhile; its number is the caller's.

    *borrowed_to*: the last record of the borrowed logs; None: it is not known, or was in files
    before. `attempt` and the names of `files` are relative to the root:
    `attempts/{attempt}/{name}`.
    """
    entries = (_entry(attempt, file) for file in files)
    living = [entry for entry in entries if entry.family not in manifest.dead_indexes]
    return manifest.model_copy(
        update={
            "files": (*(e for e in manifest.files if e.root is None), *living),
            "sealed": tuple(e for e in manifest.sealed if e.root is None),
            "adopted": (*manifest.adopted, procedure)[-ADOPTED_KEPT:],
            "in_files": borrowed_to or manifest.in_files,
        }
    )


def ingested(manifest: Manifest, source: Ingest, version: int) -> Manifest:
    """The manifest with the entries that a job made of rows as of a mark, or with the rows that it
    brought; its number is the caller's. `version`: the highest given.

    Raises Conflict `version-mismatch` if the mark is not open: tombstones that the files must lose
    to may be gone; and for rows while somebody reads as of a moment behind their version. Raises
    Refused for files of another family, of versions never given, or of rows that do not bear the
    mark's.
    """
    marked = version_of_mark(manifest, source.mark)
    if marked is None:
        raise Conflict("version-mismatch", mark=source.mark, reason="it is not open")
    low, high = 0, version
    if source.index == ROWS:
        _check_rows(manifest, source.mark, marked)
        low = high = marked
    else:
        check_index(manifest.table_schema, source.index, manifest.schema_version)
    entries = tuple(_entry(source.attempt, file) for file in source.files)
    for entry in entries:
        if entry.family != source.index or entry.min_version < low or entry.max_version > high:
            facts = {"family": entry.family, "max_version": entry.max_version}
            raise Refused("invalid-request", file=entry.name, **facts)
    return remembered(manifest, source.name, entries)


def remembered(manifest: Manifest, name: str, entries: Sequence[FileEntry]) -> Manifest:
    """The manifest with files that a job has made, which are taken once under that name."""
    return manifest.model_copy(
        update={
            "files": (*manifest.files, *entries),
            "adopted": (*manifest.adopted, name)[-ADOPTED_KEPT:],
        }
    )


def _check_rows(manifest: Manifest, mark: str, version: int) -> None:
    """Rows that come in at a version show in every later mark: what is read as of it would be
    another thing than before. And nobody makes their entries."""
    if manifest.indexes:
        raise Refused("invalid-request", reason=f"the table has indexes {manifest.indexes}")
    for other in manifest.marks:
        if other.name != mark and other.version >= version:
            reason = f"{other.name} is open behind it"
            raise Conflict("version-mismatch", mark=mark, reason=reason)


def sync_attempt(disk: Disk, root: str, attempt: str, files: Sequence[DataFile]) -> None:
    """Whoever wrote the files, after this a crash cannot take them back. Raises Refused if one is
    not there in the size that the job says."""
    for file in files:
        path = posixpath.join(root, file.name)
        try:
            size = disk.size(path)
        except NotFound as error:
            raise Refused("invalid-request", file=file.name, reason="not there") from error
        if size != file.bytes:
            raise Refused("invalid-request", file=file.name, bytes=file.bytes, found=size)
        disk.sync_file(path)
    if files:
        for folder in (posixpath.join(root, attempt), posixpath.join(root, ATTEMPTS), root):
            disk.sync_folder(folder)


def data_file(entry: FileEntry) -> DataFile:
    return DataFile(
        name=entry.name,
        family=entry.family,
        rows=entry.rows,
        bytes=entry.bytes,
        min_key=entry.min_key,
        max_key=entry.max_key,
        min_version=entry.min_version,
        max_version=entry.max_version,
        checksum=entry.crc32,
        footer_bytes=entry.footer_bytes,
        footer_checksum=entry.footer_crc32,
        row_checksum=entry.row_checksum,
    )


def entry_of(file: DataFile, root: str | None = None) -> FileEntry:
    return FileEntry(
        root=root,
        name=file.name,
        family=file.family,
        bytes=file.bytes,
        crc32=file.checksum,
        footer_bytes=file.footer_bytes,
        footer_crc32=file.footer_checksum,
        rows=file.rows,
        row_checksum=file.row_checksum,
        min_key=file.min_key,
        max_key=file.max_key,
        min_version=file.min_version,
        max_version=file.max_version,
    )


def _entry(attempt: str, file: DataFile) -> FileEntry:
    owner = attempt_of(file.name)
    if owner is None or f"{ATTEMPTS}/{owner}" != attempt:
        raise Refused("invalid-request", file=file.name, attempt=attempt)
    return entry_of(file)
