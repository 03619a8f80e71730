"""The folders of regions on a node's disk, with what their fences and manifests say. Reads only.

Those in quarantine are listed apart, with the roots that they were. A folder that cannot be read is
listed with the error, which is no error of the others.
"""

import posixpath
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from dataplane.datanode.folders.quarantine import (
    QUARANTINE,
    REGION_NAME,
    REGIONS,
    Quarantined,
    parsed,
)
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.read_only import ReadOnlyDisk
from dataplane.region.format.names import fence_name, fences
from dataplane.region.log.sealed_log import last_position
from dataplane.region.manifests.fence import read_fence
from dataplane.region.manifests.manifest import Manifest, read_current_manifest
from metasrv_base.errors import MetaError, NotFound
from metasrv_base.wire.model import INT64_END
from metasrv_base.wire.node.adoption import INVENTORY_ROOTS_MAX, FoundRoot, QuarantinedRoot


@dataclass(slots=True)
class FolderPage:
    """A page of an inventory."""

    roots: list[FoundRoot] = field(default_factory=list)
    quarantined: list[QuarantinedRoot] = field(default_factory=list)
    following: int | None = None
    """The region at which the next page begins; None: there is none."""


class _Named(NamedTuple):
    """A folder, by its name."""

    region_id: int
    path: str
    held: Quarantined | None
    """The quarantine that it is in; None: it is none."""


def inventory(
    disk: Disk, node_root: str, first: int, last: int, *, log_ends: bool = False
) -> FolderPage:
    """Folders of regions *first* to *last*. *log_ends*: their logs are read. Blocking."""
    looked, page = ReadOnlyDisk(disk), FolderPage()
    every = sorted(
        named for named in _all_named(looked, node_root) if first <= named.region_id <= last
    )
    for region_id, folders in groupby(every, key=lambda named: named.region_id):
        if len(page.roots) + len(page.quarantined) >= INVENTORY_ROOTS_MAX:
            page.following = region_id
            break
        for _, path, held in folders:
            if held is None:
                page.roots += _root(looked, region_id, path, log_ends=log_ends)
            else:
                page.quarantined += _quarantined(looked, node_root, path, held, log_ends=log_ends)
    return page


def _all_named(disk: Disk, node_root: str) -> Iterator[_Named]:
    regions, quarantine = (posixpath.join(node_root, name) for name in (REGIONS, QUARANTINE))
    for name in _list(disk, regions):
        if (match := REGION_NAME.fullmatch(name)) is not None:
            yield _Named(int(match[1]), posixpath.join(regions, name), None)
    for name in _list(disk, quarantine):
        if (held := parsed(name)) is not None:
            yield _Named(held.region_id, posixpath.join(quarantine, name), held)


def _list(disk: Disk, folder: str) -> Iterable[str]:
    with suppress(NotFound):  # a new node, or one that has put nothing there
        return disk.list(folder)
    return ()


def _quarantined(
    disk: Disk, node_root: str, path: str, held: Quarantined, *, log_ends: bool
) -> Iterator[QuarantinedRoot]:
    """Yields a folder without a fence too: its deletion was interrupted."""
    former = posixpath.join(node_root, REGIONS, held.name)
    folder = FoundRoot(region_id=str(held.region_id), root=former)
    size = 0
    try:
        size = _bytes(disk, path)
    except NotFound:  # it was deleted meanwhile
        return
    except MetaError as error:
        folder = folder.model_copy(update={"error": str(error)})
    folder = next(_root(disk, held.region_id, path, log_ends=log_ends), folder)
    yield QuarantinedRoot(
        folder=folder.model_copy(update={"root": former}), path=path, at_ms=held.at_ms, bytes=size
    )


def _bytes(disk: Disk, path: str) -> int:
    files = (name for name in disk.walk(path) if not name.endswith("/"))
    return sum(disk.size(posixpath.join(path, name)) for name in files)


def _root(disk: Disk, region_id: int, path: str, *, log_ends: bool) -> Iterator[FoundRoot]:
    """Yields nothing for a folder that was deleted meanwhile, or has no fence."""
    facts = FoundRoot(region_id=str(region_id), root=path)
    try:
        names = disk.list(path)
    except NotFound:
        return
    except MetaError as error:
        yield facts.model_copy(update={"error": str(error)})
        return
    raised = fences(names)
    if not raised:
        return
    highest = max(raised)
    if max(highest) >= INT64_END:
        yield facts.model_copy(update={"error": f"{fence_name(highest)} is above every epoch"})
        return
    fence = {"fence_epoch": highest.epoch, "fence_opening": highest.number}
    facts = facts.model_copy(update=fence)
    try:
        content = read_fence(disk, path, highest)
        if content is not None:
            update = {"opener": content.root, "fenced_ms": content.created_ms}
            facts = facts.model_copy(update=update)
        manifest = read_current_manifest(disk, path, region_id)
        if manifest is not None and log_ends:
            end = last_position(disk, path, manifest)
            facts = facts.model_copy(update={"log_epoch": end.epoch, "log_sequence": end.sequence})
    except MetaError as error:
        yield facts.model_copy(update={"error": str(error)})
        return
    yield facts if manifest is None else facts.model_copy(update=_content(manifest))


def _content(manifest: Manifest) -> dict[str, object]:
    indexes = (*manifest.indexes, *manifest.dead_indexes)
    return {
        "manifest_epoch": manifest.epoch,
        "manifest_opening": manifest.opening,
        "schema_version": manifest.schema_version,
        "column_max": max((column.id for column in manifest.spec.columns), default=0),
        "columns": [column.id for column in manifest.spec.columns],
        "index_max": max(indexes, default=0),
        "indexes": list(manifest.indexes),
        "borrows": list(manifest.borrowed_roots),
    }
