"""Orders as operations on folders: regions are made, opened and deleted here, and nowhere else."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from dataplane.datanode.copies.members import is_in_sync, is_learner
from dataplane.datanode.folders.deletion import delete_region_root, is_below
from dataplane.datanode.folders.quarantine import Quarantine
from dataplane.region.disk.disk import Disk
from dataplane.region.engine.region_changes import RegionChange
from dataplane.region.engines.engine import RegionEngine, ServedRegion
from dataplane.region.engines.lsm import limited
from dataplane.region.engines.registry import ENGINES, engine_of
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.following.copy_region import CopyRegion
from dataplane.region.following.leading import (
    LedOpening,
    lead,
    lead_alone,
    lead_new,
    needs_another_epoch,
)
from dataplane.region.format.columns import RegionSpec, columns_told
from dataplane.region.format.names import Opening
from dataplane.region.format.schema import RegionSchema
from dataplane.region.memory.budget import MemoryBudget
from dataplane.region.place import OpenOrder, RegionLimits, RegionPlace
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, Refused
from metasrv_base.wire.node.orders import (
    CreateRegion,
    DeleteQuarantined,
    DiscardRoot,
    DropRegion,
    OpenRegion,
    QuarantineRoot,
    SetSchema,
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DiskStore:
    """Regions under `node_root`; existing ones may be opened anywhere the node can read."""

    disk: Disk
    clock: Clock
    node_root: str
    limits: RegionLimits = field(default_factory=RegionLimits)
    cache: BlockCache = field(default_factory=BlockCache)
    shared_roots: tuple[str, ...] = ()
    """Folders beside the node's own below which it may delete what regions have left."""
    budget: MemoryBudget = field(default_factory=MemoryBudget)
    engines: Mapping[str, RegionEngine] = field(default_factory=lambda: ENGINES)
    """The engines of this node, by name."""

    def create(self, order: CreateRegion) -> ServedRegion:
        """Raises Refused for a root that does not lie under the node's own, and as `engine_of`."""
        engine = engine_of(self.engines, order.engine, order.engine_options)
        new_place, spec = self._new(order)
        options = order.engine_options
        return engine.create(new_place, spec, order.epoch, _replaced(order), options)

    def open(self, order: OpenRegion) -> ServedRegion:
        """Raises Refused as `engine_of`."""
        engine = engine_of(self.engines, order.engine, order.engine_options)
        region_place = self._existing(order)
        return engine.open(region_place, _open_order(order), order.engine_options)

    def lead(self, order: CreateRegion | OpenRegion) -> LedOpening:
        """Opens or makes a region that has copies. Raises as `lead` and `lead_new`, and Refused as
        `create`."""
        engine_of(self.engines, order.engine, order.engine_options)
        if isinstance(order, CreateRegion):
            new_place, spec = self._new(order)
            region_place = limited(new_place, order.engine_options)
            return lead_new(region_place, spec, order.epoch, _replaced(order))
        region_place = limited(self._existing(order), order.engine_options)
        if not order.borrows:
            return lead(region_place, _open_order(order))
        if is_in_sync(order.copies):  # it joined while the process before led, and has all rows
            raise needs_another_epoch(int(order.region_id), order.epoch)
        return lead_alone(region_place, _open_order(order))

    def follow(self, order: CreateRegion | OpenRegion) -> CopyRegion:
        """Opens or makes a copy. Raises as `CopyRegion`, and Refused as `create`."""
        engine_of(self.engines, order.engine, order.engine_options)
        if isinstance(order, CreateRegion):
            new_place, spec = self._new(order)
            region_place, replaced = limited(new_place, order.engine_options), _replaced(order)
            return CopyRegion.create(
                region_place, spec, order.epoch, replaced, is_learner=is_learner(order)
            )
        region_place = limited(self._existing(order), order.engine_options)
        return CopyRegion(region_place, int(order.region_id))

    def drop(self, order: DropRegion) -> None:
        self._delete(checked_root(order.root), int(order.region_id))

    def discard(self, order: DiscardRoot, region: ServedRegion) -> None:
        """Raises Conflict `action-not-allowed` while the region reads it, or lives in it."""
        root = checked_root(order.root)
        if root == region.place.root or root in region.borrowed_roots:
            raise Conflict("action-not-allowed", action="discard", state="in use", root=root)
        self._delete(root, int(order.region_id))

    def remove_folder(self, order: DiscardRoot | QuarantineRoot | DeleteQuarantined) -> None:
        """Raises as `drop`, `Quarantine.take` and `Quarantine.delete`."""
        root, region_id = checked_root(order.root), int(order.region_id)
        quarantine = Quarantine(self.disk, self.node_root)
        match order:
            case DiscardRoot():
                self._delete(root, region_id)
            case QuarantineRoot():
                fence = Opening(order.fence_epoch, order.fence_opening)
                quarantine.take(root, region_id, fence, order.at_ms)
            case DeleteQuarantined():
                quarantine.delete(root, region_id, order.at_ms)

    def _existing(self, order: OpenRegion) -> RegionPlace:
        """The place of a region that is to be opened, with its folders out of quarantine."""
        quarantine = Quarantine(self.disk, self.node_root)
        for root in (checked_root(order.root), *map(checked_root, order.borrows)):
            if quarantine.put_back(root):
                log.warning("folder_put_back", region_id=order.region_id, root=root)
        return self._place(order.root)

    def _new(self, order: CreateRegion) -> tuple[RegionPlace, RegionSpec]:
        root = checked_root(order.root)
        if not is_below(root, self.node_root):
            raise Refused("invalid-request", reason=f"{root} is not under {self.node_root}")
        spec = RegionSpec(
            region_id=int(order.region_id),
            columns=columns_told(order.columns),
            schema_floor=order.schema_floor,
            schema_version=order.schema_version,
            indexes=tuple(sorted(order.indexes)),
        )
        return self._place(root), spec

    def _place(self, root: str) -> RegionPlace:
        return RegionPlace(self.disk, root, self.clock, self.limits, self.cache, self.budget)

    def _delete(self, root: str, region_id: int) -> None:
        """Raises Refused for a folder that this node may not delete, with nothing deleted."""
        allowed = (self.node_root, *self.shared_roots)
        if not any(is_below(root, folder) for folder in allowed):
            reason = f"{root} is outside the folders in which this node deletes"
            raise Refused("invalid-request", reason=reason, root=root, allowed=list(allowed))
        delete_region_root(self.disk, root, region_id)


def _replaced(order: CreateRegion) -> list[str]:
    return [checked_root(left) for left in order.replaces]


def _open_order(order: OpenRegion) -> OpenOrder:
    schema = schema_of(order)
    return OpenOrder(
        region_id=int(order.region_id),
        epoch=order.epoch,
        borrows=tuple(checked_root(root) for root in order.borrows),
        unannounced=frozenset(order.unannounced),
        columns=schema.columns,
        schema_version=schema.version,
        schema_floor=schema.floor,
        indexes=schema.indexes,
        dead_indexes=schema.dead,
    )


def checked_root(root: str) -> str:
    """Raises Refused unless it is absolute and has one spelling."""
    if not posixpath.isabs(root) or posixpath.normpath(root) != root or root == "/":
        raise Refused(
            "invalid-request", reason="a root is an absolute path without . or ..", root=root
        )
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


def change_of(order: SetSchema) -> RegionChange:
    """Raises as `schema_of`."""
    closes = tuple(order.close_marks)
    return RegionChange(schema_of(order), order.mark, closes, order.reserves_version)


def publish(region: ServedRegion, change: RegionChange) -> int:
    """Changes a region without copies, as `ServedRegion.set_schema`."""
    return region.set_schema(change.schema, change.mark, change.closes, reserves=change.reserves)
