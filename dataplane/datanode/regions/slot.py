"""A region that a node was ordered to serve or to copy, and how its state is reported."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from dataplane.datanode.copies.followed import FollowedRegion
from dataplane.datanode.copies.led_region import LedRegion
from dataplane.datanode.copies.members import leader_of
from dataplane.datanode.regions.region_owner import CLOSED, RegionOwner
from dataplane.region.copies.leader_silence import FollowedHere
from dataplane.region.copies.promises import CopyHere
from dataplane.region.disk.lost import is_lost
from metasrv_base.errors import Conflict, Unavailable
from metasrv_base.wire.node.copies import CopyStanding
from metasrv_base.wire.node.nodes import HEARTBEAT_REGIONS_MAX, RegionStat
from metasrv_base.wire.node.orders import (
    CloseRegion,
    CreateRegion,
    DiscardRoot,
    DropRegion,
    OpenRegion,
    Order,
    QuarantineRoot,
)

ServeOrder = CreateRegion | OpenRegion
State = Literal["opening", "open", "lost", "restarted"]


@dataclass(slots=True)
class Slot:
    """A region that this node was ordered to serve, at one epoch."""

    order: ServeOrder
    state: State = "opening"
    owner: RegionOwner | None = None
    """Set while `open`, unless this node has a copy of it alone."""
    led: LedRegion | None = None
    """Set beside `owner` once the region has other copies."""
    followed: FollowedRegion | None = None
    """Set while this node has a copy of it."""
    copies_version: int = 0
    """The highest version of its copies that an order has named."""
    min_in_sync: int = 1
    """The minimum of copies in sync that this order has named."""
    lost_ms: int = 0
    """The time at which it was last found `lost`."""

    @property
    def region_id(self) -> int:
        return int(self.order.region_id)

    @property
    def epoch(self) -> int:
        return self.order.epoch

    @property
    def known_version(self) -> int:
        """The highest version of its copies that it knows, by an order or by its own request."""
        led_version = 0 if self.led is None else self.led.copies.version
        return max(self.copies_version, led_version)

    def make_way(self, order: Order) -> None:
        """Takes what *order* says of the copies for which an order before it may wait. Those that
        the route names no more need not answer; nobody need once *order* closes the region, or
        opens it at a later epoch."""
        if self.led is None or order.epoch < self.epoch:
            return
        if isinstance(order, ServeOrder) and is_here(self.order, order):
            if order.copies is not None:
                self.led.hear(order.copies)
        elif order.epoch > self.epoch or isinstance(order, CloseRegion | DropRegion):
            self.led.end(Conflict("stale-epoch", reason=CLOSED))

    def note_copies(self, order: ServeOrder) -> None:
        copies = order.copies
        if copies is not None and copies.version >= self.copies_version:
            self.copies_version, self.min_in_sync = copies.version, copies.min_in_sync

    @property
    def lacks_copies(self) -> bool:
        """Whether the region has no other copy, and may acknowledge nothing without one
        (docs/protocols.md P5.12). A leader of copies judges that itself."""
        return self.led is None and self.min_in_sync > 1

    def must_have_minimum(self) -> None:
        """Raises Unavailable `too-few-copies` if it lacks copies."""
        if self.lacks_copies:
            facts = {"region_id": str(self.region_id), "copies": 1, "min_in_sync": self.min_in_sync}
            raise Unavailable("too-few-copies", **facts)


def followed_here(slots: Iterable[Slot]) -> Iterator[FollowedHere]:
    """The copies of this node that are in the sets of their regions, as it was told last."""
    for slot in slots:
        copies = slot.order.copies
        if slot.followed is None or copies is None:
            continue
        if standing_of(slot) == "in-sync":
            yield FollowedHere(slot.region_id, slot.epoch, leader_of(copies).node)


def copy_of(slot: Slot | None) -> CopyHere | None:
    """The copy of this node; None: it has none. A leader from its order on, before the region is
    open."""
    if slot is None or slot.state == "lost":
        return None
    followed = 0 if slot.followed is None else slot.followed.copy.epoch
    is_leader = slot.order.role == "leader"
    return CopyHere(slot.order.root, max(slot.epoch, followed), is_leader=is_leader)


def must_be_unused(order: DiscardRoot | QuarantineRoot, slot: Slot | None) -> None:
    """Raises Conflict `action-not-allowed` if the region is here, and lives in the folder that an
    order removes, or reads it. No other region reads it: its fences are of one region."""
    if slot is None:
        return
    used = [slot.order.root]
    if slot.owner is not None:
        used += slot.owner.region.borrowed_roots
    elif isinstance(slot.order, OpenRegion):
        used += slot.order.borrows
    if order.root in used:
        raise Conflict("action-not-allowed", action=order.op, state="in use", root=order.root)


def must_have_room(count: int) -> None:
    """Raises Unavailable `node-not-eligible` if a node with *count* regions may have no other one:
    its heartbeats could not report it."""
    if count >= HEARTBEAT_REGIONS_MAX:
        reason = f"the node has {count} regions, {HEARTBEAT_REGIONS_MAX} at most"
        raise Unavailable("node-not-eligible", reason=reason)


def is_reported(slot: Slot) -> bool:
    """A region that a higher fence has ended is not here any more."""
    stopped_by = slot.owner.stopped_by if slot.owner is not None else None
    return stopped_by is None or is_lost(stopped_by)


def stat_of(slot: Slot) -> RegionStat:
    lost = slot.owner is not None and slot.owner.stopped_by is not None
    size = slot.owner.region.stats() if slot.owner is not None and not lost else None
    return RegionStat(
        region_id=slot.order.region_id,
        epoch=slot.epoch,
        state="lost" if lost else slot.state,
        rows=size.rows if size else 0,
        bytes=size.bytes if size else 0,
        wal_bytes=size.wal_bytes if size else 0,
        files=size.files if size else 0,
        borrowed_bytes=size.borrowed_bytes if size else 0,
        version=size.version if size else 0,
        root=slot.order.root,
        copies_version=slot.known_version,
    )


def standing_of(slot: Slot) -> CopyStanding | None:
    """The copy of this node, by its last order; None: the region has no such copy any more."""
    if slot.order.role == "leader":
        return "leader"
    copies = slot.order.copies
    members = () if copies is None else copies.members
    return next((copy.role for copy in members if copy.root == slot.order.root), None)


def is_here(order: ServeOrder, again: ServeOrder, *, any_epoch: bool = False) -> bool:
    """Whether a region that serves by `order` serves as `again` asks, but for its schema and its
    copies. A root that it may stop to borrow it has stopped to borrow already, by adoption."""
    same = order.root == again.root and order.role == again.role
    return same and (any_epoch or order.epoch == again.epoch)
