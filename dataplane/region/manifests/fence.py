"""The fence: the highest `fence-{epoch}-{opening}` in a root alone may act on it (P5).

Whoever opens a region first creates its fence, syncs file and folder, and only then reads anything.
A leader writes first, looks second, acts third. The name decides; the content says who raised it
and where its own root lies, so that a later opener can tell a leader that never served from one
whose storage is gone.
"""

import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from dataplane.region.disk.disk import Disk, write_file
from dataplane.region.disk.lost import lost_if_missing
from dataplane.region.format.names import Opening, fence_name, fences
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable

FENCE_BYTES_MAX = 64 << 10


class FenceContent(BaseModel):
    """The content of a fence file. `created_ms` tells two files of one name apart."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal[1] = 1
    region_id: int
    epoch: int
    opening: int
    root: str
    """The opener's own root: where its manifests and log go."""
    created_ms: int

    @property
    def of(self) -> Opening:
        return Opening(self.epoch, self.opening)


def highest_fence(disk: Disk, root: str) -> Opening | None:
    return max(fences(disk.list(root)), default=None)


def raise_own_fence(disk: Disk, root: str, claim: FenceContent) -> FenceContent:
    """Creates the next opening's fence of `claim.epoch` in the opener's own root, with a number
    above `claim.opening`. Raises Conflict `stale-epoch` behind a higher fence.
    """
    while True:
        present = fences(disk.list(root))
        stop_if_behind(Opening(claim.epoch, 0), max(present, default=None), within_epoch=True)
        used = [fence.number for fence in present if fence.epoch == claim.epoch]
        mine = claim.model_copy(update={"opening": max([claim.opening, *used]) + 1})
        try:
            _create(disk, root, mine)
        except Conflict:
            continue  # another opening of this epoch took the number; it has made progress
        look(disk, root, mine.of)
        return mine


def raise_borrowed_fence(disk: Disk, root: str, mine: FenceContent) -> None:
    """Creates the same fence in a borrowed root.

    Raises Conflict `stale-epoch` behind a higher one, or if another opening of this number was
    faster: the own root cannot show both, and whoever is lost says so (takeover.py).
    """
    stop_if_behind(mine.of, highest_fence(disk, root))
    try:
        _create(disk, root, mine)
    except Conflict as error:
        raise Conflict("stale-epoch", epoch=mine.epoch, found=fence_name(mine.of)) from error
    look(disk, root, mine.of)


def look(disk: Disk, root: str, mine: Opening) -> None:
    """Reads the highest fence, after a write and before acting on it. Raises Conflict `stale-epoch`
    behind a higher fence.

    A root or a fence that is gone is no permission either: Unavailable `region-lost`.
    """
    with lost_if_missing(root):
        highest = highest_fence(disk, root)
    if highest is None or highest < mine:
        raise Unavailable("region-lost", root=root)
    stop_if_behind(mine, highest)


@contextmanager
def stale_before_wrong(disk: Disk, root: str, mine: Opening) -> Iterator[None]:
    """Raises Conflict `stale-epoch` in place of an error of the block if a later opening has fenced
    this one: its cleaning may be the cause."""
    try:
        yield
    except MetaError:
        look(disk, root, mine)
        raise


def stop_if_behind(mine: Opening, highest: Opening | None, within_epoch: bool = False) -> None:
    if highest is None:
        return
    if highest.epoch > mine.epoch or (highest > mine and not within_epoch):
        raise Conflict("stale-epoch", epoch=mine.epoch, found=fence_name(highest))


def read_fence(disk: Disk, root: str, fence: Opening) -> FenceContent | None:
    """Reads a fence; returns None if it is torn or gone, so that its opener had not finished
    raising it and never served."""
    try:
        data = disk.read(posixpath.join(root, fence_name(fence)), 0, FENCE_BYTES_MAX)
        return FenceContent.model_validate_json(data)
    except (NotFound, ValidationError):
        return None


def _create(disk: Disk, root: str, content: FenceContent) -> None:
    """A full disk keeps nothing of it: whoever opens a region there tries again and again."""
    path = posixpath.join(root, fence_name(content.of))
    write_file(disk, path, content.model_dump_json().encode())
    disk.sync_folder(root)
