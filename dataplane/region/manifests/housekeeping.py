"""Finds the files that a manifest has made superfluous, and removes them after the look."""

import posixpath
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from dataplane.region.disk.disk import Disk
from dataplane.region.format.names import (
    ATTEMPTS,
    DATA,
    SHARE,
    UNFINISHED,
    Opening,
    attempt_of,
    fence_name,
    fences,
    is_attempt,
    is_data_file,
    is_share,
    manifest_name,
    manifests,
    segment_name,
    segments,
    statement_files,
    statements_name,
)
from dataplane.region.manifests.fence import look
from dataplane.region.manifests.manifest import Manifest
from metasrv_base.errors import NotFound

MANIFESTS_KEPT = 2  # the current one, and the one before it for a person who looks


def superseded(names: Sequence[str], current: Manifest) -> list[str]:
    """Names in the own root that `current` and the openings up to its own do not need."""
    mine = current.id.of
    needed = {entry.name for entry in current.sealed if entry.root is None}
    older_manifests = [m for m in manifests(names) if m <= current.id][:-MANIFESTS_KEPT]
    unfinished = manifests(n.removesuffix(UNFINISHED) for n in names if n.endswith(UNFINISHED))
    old_segments = [
        segment_name(segment)
        for segment in segments(names)
        if segment.of < mine or (segment.of == mine and segment.number < current.log_from)
    ]
    return [
        *(fence_name(fence) for fence in fences(names) if fence < mine),
        *(manifest_name(manifest) for manifest in older_manifests),
        *(manifest_name(m) + UNFINISHED for m in unfinished if m <= current.id),
        *(name for name in old_segments if name not in needed),
        *_old_statements(names, current),
    ]


def _old_statements(names: Sequence[str], current: Manifest) -> list[str]:
    """A file behind the last that is named may be one that the next manifest names."""
    named = [entry.name for entry in current.statement_files]
    last = max(statement_files(named), default=None)
    return [
        statements_name(file)
        for file in statement_files(names)
        if file.of < current.id.of or (last is not None and file < last)
        if statements_name(file) not in named
    ]


def remove_superseded(disk: Disk, root: str, current: Manifest) -> None:
    """Removes superseded files after `current` was published: names, look, remove. Raises Conflict
    `stale-epoch` with nothing removed behind a higher fence."""
    names = superseded(disk.list(root), current)
    look(disk, root, current.id.of)
    for name in names:
        # An older opening that looked in time may be removing the same names.
        with suppress(NotFound):
            disk.remove(posixpath.join(root, name))


def obsolete_paths(
    disk: Disk,
    root: str,
    current: Manifest,
    kept_attempts: Collection[str],
    kept_files: Collection[str] = (),
) -> list[str]:
    """Paths of files and folders in the own root that no manifest names and no attempt claims.
    While a mark is open, a job may be reading as of it, and no attempt goes.

    `kept_files`: names of data files that are being written, or still being read.
    """
    named = {entry.name for entry in current.files if entry.root is None}
    adopted = {attempt_of(name) for name in named}
    claimed = adopted.union(map(attempt_of, kept_files))
    data = [
        posixpath.join(root, DATA, name)
        for name in _listed(disk, posixpath.join(root, DATA))
        if is_data_file(name)
        and f"{DATA}/{name}" not in named
        and f"{DATA}/{name}" not in kept_files
    ]
    attempts = [
        posixpath.join(root, ATTEMPTS, name)
        for name in _listed(disk, posixpath.join(root, ATTEMPTS))
        if is_attempt(name) and name not in claimed and f"{ATTEMPTS}/{name}" not in kept_attempts
        if not current.marks
    ]
    left = [
        posixpath.join(root, name)
        for folder in sorted(filter(None, adopted))
        for name in _files_of(disk, root, folder)
        if name not in named and name not in kept_files
    ]
    return data + attempts + left


def _files_of(disk: Disk, root: str, attempt: str) -> list[str]:
    """The files of an adopted attempt, relative to the root."""
    folder = f"{ATTEMPTS}/{attempt}"
    names = (f"{folder}/{file}" for file in _listed(disk, posixpath.join(root, folder)))
    return [name for name in names if attempt_of(name) is not None or is_share(name)]


def remove_obsolete(disk: Disk, root: str, mine: Opening, paths: Iterable[str]) -> None:
    """Looks, then removes; what is gone already is as it should be."""
    look(disk, root, mine)
    for path in paths:
        with suppress(NotFound):
            if path.endswith((".parquet", SHARE)):
                disk.remove(path)
            else:
                disk.remove_tree(path)


def _listed(disk: Disk, folder: str) -> list[str]:
    try:
        return disk.list(folder)
    except NotFound:
        return []
