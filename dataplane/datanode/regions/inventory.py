"""The folders of regions on a node's disk, with what their fences and manifests say. Reads only."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from dataplane.region.disk.disk import Disk
from dataplane.region.disk.read_only import ReadOnlyDisk
from dataplane.region.format.names import fences
from dataplane.region.manifests.fence import read_fence
from dataplane.region.manifests.manifest import Manifest, read_current_manifest
from metasrv_base.errors import MetaError, NotFound
from metasrv_base.wire.node.adoption import INVENTORY_ROOTS_MAX, FoundRoot

REGIONS = "regions"
_NAME = re.compile(r"(0|[1-9][0-9]{0,18})(-[0-9]{1,20}){1,2}")
"""Region, epoch, and of a copy that was added later the version of the copies."""


def inventory(
    disk: Disk, node_root: str, first: int, last: int
) -> tuple[list[FoundRoot], int | None]:
    """Folders of regions *first* to *last*, and the region at which the next page begins (None:
    there is none). Blocking."""
    looked, parent = ReadOnlyDisk(disk), posixpath.join(node_root, REGIONS)
    roots: list[FoundRoot] = []
    for region_id, names in groupby(_named(looked, parent, first, last), key=lambda pair: pair[0]):
        if len(roots) >= INVENTORY_ROOTS_MAX:
            return roots, region_id
        paths = (posixpath.join(parent, name) for _, name in names)
        roots += (root for path in paths for root in _root(looked, region_id, path))
    return roots, None


def _named(disk: Disk, parent: str, first: int, last: int) -> list[tuple[int, str]]:
    try:
        names: Iterable[str] = disk.list(parent)
    except NotFound:  # a new node
        return []
    pairs = [(int(match[1]), name) for name in names if (match := _NAME.fullmatch(name))]
    return sorted(pair for pair in pairs if first <= pair[0] <= last)


def _root(disk: Disk, region_id: int, path: str) -> Iterator[FoundRoot]:
    """Yields nothing for a folder that was deleted meanwhile, or has no fence."""
    try:
        names = disk.list(path)
    except NotFound:
        return
    raised = fences(names)
    if not raised:
        return
    highest = max(raised)
    facts = FoundRoot(
        region_id=str(region_id),
        root=path,
        fence_epoch=highest.epoch,
        fence_opening=highest.number,
    )
    content = read_fence(disk, path, highest)
    if content is not None:
        update = {"opener": content.root, "fenced_ms": content.created_ms}
        facts = facts.model_copy(update=update)
    try:
        manifest = read_current_manifest(disk, path, region_id)
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
