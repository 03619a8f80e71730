"""Deletion of a region's folder: only below an allowed folder, only after all of it was looked at.

An order is not believed: what is deleted must carry a fence of the region, and hold nothing that a
region would not have made. The fences go last, so that what an interrupted deletion leaves can
still be told whose it is.
"""

import posixpath
from collections.abc import Sequence

from dataplane.region.disk.disk import Disk
from dataplane.region.format.names import ATTEMPTS, DATA, fence_name, fences, is_our_folder, is_ours
from dataplane.region.manifests.fence import read_fence
from metasrv_base.errors import NotFound, Refused

STRANGERS_SHOWN_MAX = 20


def is_below(path: str, folder: str) -> bool:
    """Whether the normal path *path* lies strictly below *folder*."""
    return path.startswith(folder.rstrip("/") + "/")


def delete_region_root(disk: Disk, root: str, region_id: int) -> None:
    """A folder that is not there is deleted already.

    Raises Refused, with nothing deleted, for a folder that is not this region's alone.
    """
    try:
        entries = disk.walk(root)
    except NotFound:
        return
    must_hold_no_strangers(root, entries)
    _must_be_of(disk, root, region_id, entries)
    for folder in (DATA, ATTEMPTS):
        disk.remove_tree(posixpath.join(root, folder))
    raised = {fence_name(fence) for fence in fences(entries)}
    for name in entries:
        if "/" not in name and name not in raised:
            disk.remove(posixpath.join(root, name))
    disk.sync_folder(root)
    disk.remove_tree(root)


def must_hold_no_strangers(root: str, entries: Sequence[str]) -> None:
    """Raises Refused for a folder in which something lies that no region makes. *entries*: all that
    is below it."""
    strangers = [
        name for name in entries if not (is_our_folder(name) if name[-1] == "/" else is_ours(name))
    ]
    if strangers:
        raise Refused(
            "invalid-request",
            reason=f"{root} holds files that no region makes",
            root=root,
            strangers=strangers[:STRANGERS_SHOWN_MAX],
            strangers_total=len(strangers),
        )


def _must_be_of(disk: Disk, root: str, region_id: int, entries: Sequence[str]) -> None:
    """Checks that a folder is of this region. A folder without a fence that can be read may hold
    torn fences alone: its creation, or its deletion, was interrupted."""
    raised = fences(entries)
    contents = [read_fence(disk, root, fence) for fence in raised]
    owners = {content.region_id for content in contents if content is not None}
    files = [name for name in entries if name[-1] != "/"]
    is_bare = not owners and len(files) == len(raised)
    if owners != {region_id} and not is_bare:
        reason = f"{root} has no fence of this region, or one of another"
        raise Refused("invalid-request", reason=reason, root=root, regions=sorted(owners))
