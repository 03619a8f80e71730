"""Orders as operations on folders: regions are made, opened and deleted here, and nowhere else."""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field

from base.clock import Clock
from base.errors import Conflict, NotFound, Refused
from base.wire.orders import (
    CreateRegion,
    DiscardRoot,
    DropRegion,
    OpenRegion,
    SetSchema,
)
from dataplane.region.block_cache import BlockCache
from dataplane.region.columns import RegionSpec, columns_told
from dataplane.region.disk import Disk
from dataplane.region.fence import highest_fence, read_fence
from dataplane.region.names import ATTEMPTS, DATA, UNFINISHED, fences, manifests, segments
from dataplane.region.place import OpenOrder, RegionLimits, RegionPlace
from dataplane.region.region import Region
from dataplane.region.schema import RegionSchema


@dataclass(frozen=True, slots=True)
class DiskStore:
    """Regions under `node_root`; existing ones may be opened anywhere the node can read."""

    disk: Disk
    clock: Clock
    node_root: str
    limits: RegionLimits = field(default_factory=RegionLimits)
    cache: BlockCache = field(default_factory=BlockCache)

    def create(self, order: CreateRegion) -> Region:
        """Raises Refused for a root that does not lie under the node's own."""
        root = checked_root(order.root)
        if not root.startswith(self.node_root + "/"):
            raise Refused("invalid-request", reason=f"{root} is not under {self.node_root}")
        spec = RegionSpec(
            region_id=int(order.region_id),
            columns=columns_told(order.columns),
            schema_floor=order.schema_floor,
            schema_version=order.schema_version,
            indexes=tuple(sorted(order.indexes)),
        )
        replaces = [checked_root(left) for left in order.replaces]
        return Region.create(self._place(root), spec, order.epoch, replaces)

    def open(self, order: OpenRegion) -> Region:
        schema = schema_of(order)
        asked = OpenOrder(
            region_id=int(order.region_id),
            epoch=order.epoch,
            borrows=tuple(checked_root(root) for root in order.borrows),
            columns=schema.columns,
            schema_version=schema.version,
            schema_floor=schema.floor,
            indexes=schema.indexes,
            dead_indexes=schema.dead,
        )
        return Region.open(self._place(checked_root(order.root)), asked)

    def drop(self, order: DropRegion) -> None:
        self._delete(checked_root(order.root), int(order.region_id))

    def discard(self, order: DiscardRoot, region: Region) -> None:
        """Raises Conflict `action-not-allowed` while the region reads it, or lives in it."""
        root = checked_root(order.root)
        if root == region.place.root or root in region.manifest.borrowed_roots:
            raise Conflict("action-not-allowed", action="discard", state="in use", root=root)
        self._delete(root, int(order.region_id))

    def _place(self, root: str) -> RegionPlace:
        return RegionPlace(self.disk, root, self.clock, self.limits, self.cache)

    def _delete(self, root: str, region_id: int) -> None:
        """Only a folder that is this region's, or what an interrupted deletion left of one."""
        try:
            names = self.disk.list(root)
        except NotFound:
            return
        fence = highest_fence(self.disk, root)
        raised = read_fence(self.disk, root, fence) if fence is not None else None
        is_other = raised is not None and raised.region_id != region_id
        if is_other or strangers(names):
            raise Refused("invalid-request", reason=f"{root} is not the folder of this region")
        self.disk.remove_tree(root)


def strangers(names: Sequence[str]) -> list[str]:
    """Names that no region would have in its root."""
    whole = [name.removesuffix(UNFINISHED) for name in names]
    return [
        name
        for name in whole
        if name not in (DATA, ATTEMPTS)
        and not (fences([name]) or manifests([name]) or segments([name]))
    ]


def checked_root(root: str) -> str:
    """Raises Refused unless it is absolute and has one spelling."""
    if not posixpath.isabs(root) or posixpath.normpath(root) != root or root == "/":
        raise Refused("invalid-request", reason="a root is an absolute, normal path", root=root)
    return root


def schema_of(order: CreateRegion | OpenRegion | SetSchema) -> RegionSchema:
    """Raises Refused for a floor that no version of the table is above."""
    if order.schema_floor > order.schema_version:
        floor, version = order.schema_floor, order.schema_version
        raise Refused("invalid-request", schema_floor=floor, schema_version=version)
    dead = () if isinstance(order, CreateRegion) else order.dead_indexes
    return RegionSchema(
        order.schema_version,
        order.schema_floor,
        columns_told(order.columns),
        frozenset(order.indexes),
        frozenset(dead),
    )
