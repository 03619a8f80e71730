"""The location of a restored region: a pure function of its route and of what nodes hold.

A leader raises its fence in every root that it reads, its own first, and publishes a manifest in
its own root before it serves (docs/protocols.md P5). So the root with the highest manifest holds
all rows that were acknowledged, unless a higher fence in it names a root that nobody told of. Only
what is certain is opened, one epoch above every fence; all else stays lost, with the reason.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from keys.model.tables import RegionRoute, RegionState
from metasrv_base.values.value_enum import ValueEnum
from metasrv_base.wire.node.adoption import FoundRoot


class RegionFate(ValueEnum):
    KEPT = "kept"
    """The region stays where the backup has it."""
    MOVED = "moved"
    """Elsewhere: it moved after the backup, and opens there."""
    DROPPED = "dropped"
    """A node was ordered to drop it after the backup."""
    MISSING = "missing"
    """No node holds it, or none that holds it has its newest rows."""
    UNREADABLE = "unreadable"
    """The newest of its folders cannot be read."""


OPENED = frozenset({RegionFate.KEPT, RegionFate.MOVED})


@dataclass(frozen=True, slots=True)
class HeldRoot:
    """A folder of a region, and the node that told of it."""

    node: str
    root: FoundRoot

    @property
    def manifest(self) -> tuple[int, int]:
        return self.root.manifest_epoch or 0, self.root.manifest_opening

    @property
    def fence(self) -> tuple[int, int]:
        return self.root.fence_epoch, self.root.fence_opening


@dataclass(frozen=True, slots=True)
class RestoredPlacement:
    fate: RegionFate
    region: RegionRoute
    """The route to store. As it was, unless the region opens."""
    reason: str = ""
    root: FoundRoot | None = None
    """The folder in which it opens."""


def placement_of(
    region: RegionRoute, held: Sequence[HeldRoot], dropped_by: Collection[str]
) -> RestoredPlacement:
    """Decides where a region is. *held* are its folders on all nodes; *dropped_by* the nodes that
    were ordered to drop it."""
    if dropped_by:
        return RestoredPlacement(
            RegionFate.DROPPED, region, f"dropped at {', '.join(sorted(dropped_by))}"
        )
    newest = max(held, key=lambda root: (root.manifest, root.fence), default=None)
    if newest is None:
        return RestoredPlacement(RegionFate.MISSING, region, "no node has a folder of it")
    unread = [other for other in held if other.root.error and other.fence >= newest.manifest]
    if unread:
        reason = f"{unread[0].root.root}: {unread[0].root.error}"
        return RestoredPlacement(RegionFate.UNREADABLE, region, reason)
    if newest.root.manifest_epoch is None:
        return RestoredPlacement(RegionFate.MISSING, region, "no folder of it has a manifest")
    opener = newest.root.opener
    if opener is not None and opener not in {other.root.root for other in held}:
        reason = f"{newest.root.root} was taken over by {opener}, which no node has"
        return RestoredPlacement(RegionFate.MISSING, region, reason)
    return _opened(region, newest, max(other.fence[0] for other in held))


def _opened(region: RegionRoute, newest: HeldRoot, highest: int) -> RestoredPlacement:
    root = newest.root
    opened = region.model_copy(
        update={
            "leader": newest.node,
            "epoch": max(region.epoch, highest) + 1,
            "state": RegionState.OPEN,
            "root": root.root,
            "announced": True,
            "borrows": tuple(root.borrows),
            "unannounced": (),
            "unverified": False,
        }
    )
    is_kept = (region.leader, region.root) == (newest.node, root.root)
    if is_kept:
        return RestoredPlacement(RegionFate.KEPT, opened, root=root)
    reason = f"at {newest.node} in {root.root}, and no more at {region.leader} in {region.root}"
    return RestoredPlacement(RegionFate.MOVED, opened, reason, root)
