"""The engine `memory`: the tree of `lsm` with its files in memory, and without a log.

On the disk stand only a fence, the manifest of the opening that made the region, and a segment
without records once something was acknowledged: enough to tell that there were rows, and that they
are gone. What jobs bring, and what is laid out for jobs to read, are files like those of `lsm`.

A region is made once and never opened: its rows end with the process, or when it is closed.
"""

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.disk.volatile_disk import KeptNames, VolatileDisk
from dataplane.region.engine.opening import OpenedRegion, create_or_open
from dataplane.region.engine.region import Region
from dataplane.region.engine.takeover import claim_roots
from dataplane.region.engines.engine import Options
from dataplane.region.format.columns import DELETE, OP, RegionSpec
from dataplane.region.format.names import UNFINISHED, fences, is_in_attempt, manifests, segments
from dataplane.region.log.volatile_log import VolatileLog
from dataplane.region.place import OpenOrder, RegionPlace
from metasrv_base.engines import MEMORY
from metasrv_base.errors import NotFound, Unavailable
from metasrv_base.wire.node.inputs import Snapshot

NEVER_MS = 1 << 62
"""Rows are not written to files by age."""


class MemoryEngine:
    """Implements RegionEngine."""

    def create(
        self,
        region_place: RegionPlace,
        spec: RegionSpec,
        epoch: int,
        replaces: Sequence[str],
        options: Options,
    ) -> "MemoryRegion":
        if _was_written(region_place):
            raise _lost(region_place.root)
        share = region_place.budget.kept_share()
        disk = VolatileDisk(region_place.disk, region_place.root, NAMES, share.set)
        limits = replace(region_place.limits, flush_age_ms=NEVER_MS)
        in_memory = replace(region_place, disk=disk, limits=limits)
        spec = spec.model_copy(update={"engine": MEMORY})
        bytes_max = options.get("region_bytes")
        opened = create_or_open(in_memory, spec, epoch, replaces)
        return MemoryRegion(in_memory, opened, disk, bytes_max)

    def open(self, region_place: RegionPlace, order: OpenOrder, options: Options) -> "MemoryRegion":
        """The fences go up all the same: whoever served it acknowledges nothing any more."""
        claim_roots(region_place, order)
        raise _lost(region_place.root)


class MemoryRegion(Region):
    """A region of the engine `memory`."""

    def __init__(
        self,
        region_place: RegionPlace,
        opened: OpenedRegion,
        disk: VolatileDisk,
        bytes_max: int | None,
    ) -> None:
        super().__init__(region_place, opened, VolatileLog)
        self._disk = disk
        self._bytes_max = bytes_max
        """The most bytes of its rows; None: the node's memory is the bound."""

    def must_have_room(self, rows: pa.RecordBatch) -> None:
        """Rows can be deleted when nothing can be added, as long as the node has room for that."""
        super().must_have_room(rows)
        budget = self.place.budget
        if budget.kept_bytes >= budget.kept_max:
            what, limit = "the node", budget.kept_max
        elif self._bytes_max is not None and self.stats().bytes >= self._bytes_max:
            what, limit = f"region {self.spec.region_id}", self._bytes_max
        else:
            return
        if not _deletes_only(rows):
            reason = "its memory for rows is full"
            raise Unavailable(what=what, reason=reason, limit_bytes=limit)

    def snapshot(self, mark: str, indexes: Iterable[int] | None = ()) -> Snapshot:
        """Returns a snapshot, as `Region.snapshot`. The files are laid out on the disk for the
        process that asks; they stay there as long as those in memory."""
        snapshot = super().snapshot(mark, indexes)
        for borrowed in snapshot.files:
            self._disk.lay_out(posixpath.join(borrowed.root, borrowed.file.name))
        return snapshot

    def close(self) -> None:
        super().close()
        self._disk.give_up()


def is_kept(name: str) -> bool:
    """Whether a file or folder of that name, relative to the root, is on the disk."""
    whole = [name.removesuffix(UNFINISHED)]
    first = any(manifest.number == 1 for manifest in manifests(whole))
    return first or bool(fences(whole) or segments(whole)) or is_in_attempt(name)


def _stays(name: str) -> bool:
    """Whether the name tells later that there was a region of this engine."""
    return bool(manifests([name]) or segments([name]))


NAMES = KeptNames(is_kept, _stays)


def _was_written(region_place: RegionPlace) -> bool:
    try:
        return bool(segments(region_place.disk.list(region_place.root)))
    except NotFound:
        return False


def _lost(root: str) -> Unavailable:
    reason = "its rows were in the memory of a process that has ended, or has closed it"
    return Unavailable("region-lost", root=root, reason=reason)


def _deletes_only(rows: pa.RecordBatch) -> bool:
    return OP in rows.schema.names and bool(pc.all(pc.equal(rows.column(OP), DELETE)).as_py())
