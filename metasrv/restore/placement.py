"""The location of a restored region: a pure function of its route and of what nodes hold.

A leader raises its fence in every root that it reads, its own first, and publishes a manifest in
its own root before it serves (docs/protocols.md P5). So the root with the highest manifest holds
all rows that were acknowledged, unless a higher fence in it names a root that nobody told of. Only
what is certain is opened, one epoch above every fence; all else stays lost, with the reason.

Copies of a region have manifests of one epoch, and nothing on a disk says who led, or who was in
the set. Of those of the highest epoch the one with the last record has every row that was
acknowledged in it (P5.9): it leads alone, and the others are made anew (docs/decisions/0408).
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


COPIES_JUMP = 1 << 20
"""More versions of a region's copies than there are between a backup and its restore: they never
fall, and folders are named by them."""
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

    @property
    def log_end(self) -> tuple[int, int]:
        return self.root.log_epoch or 0, self.root.log_sequence or 0

    @property
    def tells_log_end(self) -> bool:
        return self.root.log_epoch is not None or self.root.error is not None


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

    def rank(root: HeldRoot) -> tuple[object, ...]:
        is_leader = (root.node, root.root.root) == (region.leader, region.root)
        return root.manifest[0], root.log_end, is_leader, root.manifest, root.fence

    newest = max(held, key=rank, default=None)
    if newest is None:
        return RestoredPlacement(RegionFate.MISSING, region, "no node has a folder of it")
    unread = [other for other in held if other.root.error and _may_be_newer(other, newest)]
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


def _may_be_newer(unread: HeldRoot, newest: HeldRoot) -> bool:
    """Whether a folder without a manifest that can be read may have a later one than *newest*: so
    its fences say, or they cannot be read either."""
    return unread.root.fence_epoch == 0 or unread.fence >= newest.manifest


def is_in_doubt(held: Sequence[HeldRoot]) -> bool:
    """Whether several folders have manifests of the highest epoch, as copies of a region do, and
    not all of them say where their logs end."""
    epochs = [root.manifest[0] for root in held]
    newest = [root for root in held if root.manifest[0] == max(epochs) > 0]
    return len(newest) > 1 and not all(root.tells_log_end for root in newest)


def _opened(region: RegionRoute, newest: HeldRoot, highest: int) -> RestoredPlacement:
    root = newest.root
    opened = region.with_copies(
        (),
        leader=newest.node,
        epoch=max(region.epoch, highest) + 1,
        state=RegionState.OPEN,
        root=root.root,
        announced=True,
        borrows=tuple(root.borrows),
        unannounced=(),
        unverified=False,
    )
    if region.copies_version:
        version = region.copies_version + COPIES_JUMP
        opened = opened.model_copy(update={"copies_version": version})
    is_kept = (region.leader, region.root) == (newest.node, root.root)
    if is_kept:
        return RestoredPlacement(RegionFate.KEPT, opened, root=root)
    reason = f"at {newest.node} in {root.root}, and no more at {region.leader} in {region.root}"
    return RestoredPlacement(RegionFate.MOVED, opened, reason, root)
