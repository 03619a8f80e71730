"""Common positions that leaders of this node tell, and that its copies hear (P4.6)."""

from typing import Protocol

from dataplane.datanode.copies.followed import FollowedRegion
from dataplane.datanode.regions.slot import Slot
from dataplane.region.copies.staleness import CommonAt
from metasrv_base.errors import MetaError, NotFound


class ReadableRegions(Protocol):
    """The regions of a node."""

    def serving(self, region_id: int) -> Slot: ...

    def must_have_lease(self, slot: Slot) -> None: ...

    def followed(self, region_id: int) -> FollowedRegion: ...


class NodeCommonPositions:
    """Implements CommonPositions."""

    def __init__(self, regions: ReadableRegions) -> None:
        self._regions = regions

    def common_of(self, region_id: int, epoch: int) -> int | None:
        """The common sequence, from a leader that may read at this moment: then no other leader has
        acknowledged anything. None: another epoch leads here, or it may not read."""
        try:
            slot = self._regions.serving(region_id)
            self._regions.must_have_lease(slot)
        except MetaError:
            return None
        led = slot.led
        return led.view.common if led is not None and led.epoch == epoch else None

    def tell(self, region_id: int, root: str, position: CommonAt) -> None:
        try:
            followed = self._regions.followed(region_id)
        except NotFound:
            return
        if followed.root == root:
            followed.tell(position)
