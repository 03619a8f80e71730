"""Quarantine of regions' folders on a node: `quarantine/{name}@{ms}`, beside `regions/`.

A folder goes there by one rename, and leaves it by one rename or whole. It is in one of the two
places at every moment, also across a power loss: the folder that it enters is synced before the one
that it leaves. `ms` is the time of the leader that ordered it.
"""

import posixpath
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from dataplane.datanode.folders.deletion import delete_region_root, must_hold_no_strangers
from dataplane.region.disk.disk import Disk
from dataplane.region.format.names import Opening, fence_name, fences
from metasrv_base.errors import Conflict, NotFound, Refused
from metasrv_base.wire.model import INT64_END

REGIONS = "regions"
QUARANTINE = "quarantine"
REGION_NAME = re.compile(r"(0|[1-9][0-9]{0,18})(-[0-9]{1,20}){1,2}")
"""Region, epoch, and of a copy that was added later the version of the copies."""
_NAME = re.compile(rf"({REGION_NAME.pattern})@(0|[1-9][0-9]{{0,18}})")


class Quarantined(NamedTuple):
    """A folder in quarantine, by its name."""

    region_id: int
    name: str
    """Its name among the regions' folders."""
    at_ms: int


def parsed(name: str) -> Quarantined | None:
    """Reads the name of a folder in quarantine; None: no folder has such a name there."""
    match = _NAME.fullmatch(name)
    if match is None or max(int(match[2]), int(match[4])) >= INT64_END:
        return None
    return Quarantined(int(match[2]), match[1], int(match[4]))


class Quarantine:
    """The quarantine of one node. Blocking."""

    def __init__(self, disk: Disk, node_root: str) -> None:
        self._disk = disk
        self._regions = posixpath.join(node_root, REGIONS)
        self._folder = posixpath.join(node_root, QUARANTINE)

    def take(self, root: str, region_id: int, fence: Opening, at_ms: int) -> None:
        """Puts a region's folder into quarantine. One that is not there has gone already.

        Raises Refused for a folder that is not of that region, directly below the regions' folder,
        or that holds what no region makes, since `delete` would refuse it; Conflict `stale-epoch`
        if its highest fence is not *fence*.
        """
        name = self._name_of(root, region_id)
        try:
            entries = self._disk.walk(root)
        except NotFound:
            return
        highest = max(fences(entries), default=None)
        if highest != fence:
            there = None if highest is None else fence_name(highest)
            raise Conflict("stale-epoch", root=root, expected=fence_name(fence), found=there)
        must_hold_no_strangers(root, entries)
        self._disk.make_folder(self._folder)
        self._move(root, self._path(name, at_ms), into=self._folder, out_of=self._regions)

    def put_back(self, root: str) -> bool:
        """Puts back the folder that was *root*, the one that came last, unless there is such a
        root. Returns whether it did."""
        if posixpath.dirname(root) != self._regions or self._exists(root):
            return False
        name = posixpath.basename(root)
        times = [held.at_ms for held in self._held() if held.name == name]
        if not times:
            return False
        source = self._path(name, max(times))
        self._move(source, root, into=self._regions, out_of=self._folder)
        return True

    def delete(self, root: str, region_id: int, at_ms: int) -> None:
        """Deletes a folder from quarantine. One that is not there is deleted already.

        Raises Refused, with nothing deleted, as `take` and `delete_region_root`.
        """
        path = self._path(self._name_of(root, region_id), at_ms)
        delete_region_root(self._disk, path, region_id)

    def _held(self) -> Iterator[Quarantined]:
        with suppress(NotFound):
            for name in self._disk.list(self._folder):
                if (held := parsed(name)) is not None:
                    yield held

    def _name_of(self, root: str, region_id: int) -> str:
        folder, name = posixpath.split(root)
        match = REGION_NAME.fullmatch(name)
        if folder != self._regions or match is None or int(match[1]) != region_id:
            reason = f"{root} is no folder of region {region_id} in {self._regions}"
            raise Refused("invalid-request", reason=reason, root=root)
        return name

    def _path(self, name: str, at_ms: int) -> str:
        return posixpath.join(self._folder, f"{name}@{at_ms}")

    def _exists(self, path: str) -> bool:
        try:
            self._disk.list(path)
        except NotFound:
            return False
        return True

    def _move(self, source: str, target: str, *, into: str, out_of: str) -> None:
        self._disk.move_folder(source, target)
        self._disk.sync_folder(into)
        self._disk.sync_folder(out_of)
