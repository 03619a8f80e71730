"""States of a region at a fake datanode, and the files that it says it has."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.node.copies import RegionCopies
from metasrv_base.wire.node.inputs import Borrowed, BorrowedFile, SealedSegment
from metasrv_base.wire.node.orders import (
    DataFile,
    HandOver,
    OpenRegion,
    Order,
    OrderError,
    OrderResult,
)
from tests.fakes.datanodes.disk import Folder, Rows

LOG = "wal-1"
"""A file of this name stands for a log segment."""


class Opening(StrEnum):
    """The progress of a node with a region that it was ordered to open."""

    ASKED = "before it began"
    FENCED = "behind its fences"
    MADE = "before it answered"
    ANSWERED = "as it answered"
    ANNOUNCED = "before it was leased"


@dataclass
class Serving:
    """A region that a node has open."""

    epoch: int
    root: str
    copies_version: int = 0
    """The version of the region's copies that it was told."""
    has_set: bool = False
    """It leads, and another copy is in the set: the heartbeat lease is not used (P4.5)."""
    holds: bool = False
    """It makes writes wait for the next leader."""

    def tell(self, copies: RegionCopies) -> None:
        """The newest copies count. One that is about to join is required before the route says so
        (docs/protocols.md P5.10)."""
        if copies.version < self.copies_version:
            return
        is_joining = self.has_set and copies.version == self.copies_version
        has_others = any(copy.role == "in-sync" for copy in copies.members)
        self.has_set = (is_joining or has_others) and not copies.last_leaves
        self.copies_version = copies.version

    def hand_over(self, order: HandOver) -> None:
        """Writes wait from `hold` to `resume`, as long as it leads."""
        self.holds = order.phase == "hold"


@dataclass
class Executed:
    """The last order a node executed for a region: a repeat is given the stored answer."""

    place: tuple[int, int]
    """Term and number."""
    result: OrderResult


def data_file(name: str, rows: Rows, family: int = 0) -> DataFile:
    return DataFile(
        name=name,
        rows=len(rows),
        bytes=len(rows),
        min_key="00",
        max_key="ff",
        min_version=0,
        max_version=1,
        checksum="0" * 8,
        footer_bytes=0,
        footer_checksum="0" * 8,
        row_checksum="0" * 16,
        family=family,
    )


def refuse_lost_leaders(order: OpenRegion, claimed: Mapping[str, Folder]) -> None:
    """As dataplane/region/engine/takeover.py: whoever raised a fence above the newest manifest,
    and has no root among those that are read, may have served from it.
    """
    newest = max(folder.epoch for folder in claimed.values())
    for folder in claimed.values():
        for epoch, root in folder.raised.items():
            if newest < epoch < order.epoch and root not in {*claimed, *order.unannounced}:
                raise Unavailable("region-lost", root=root, epoch=epoch)


def result_of(order: Order, error: MetaError | None) -> OrderResult:
    shown = None if error is None else OrderError(code=error.code, facts=dict(error.facts))
    return OrderResult(number=order.number, region_id=order.region_id, error=shown)


def was_led_before(order: OpenRegion, folder: Folder | None) -> bool:
    """As dataplane/region/following/leading.py: whether a former process led copies from that root
    at the epoch of the order."""
    has_others = order.copies is not None and len(order.copies.members) > 1
    return has_others and folder is not None and folder.epoch == order.epoch


def borrowed_by(region_id: str, serving: Serving, folder: Folder) -> Borrowed:
    """The inputs of other roots that the region in *folder* reads still."""
    return Borrowed(
        region_id=region_id,
        epoch=serving.epoch,
        root=serving.root,
        columns=[],
        marks=[],
        files=[
            BorrowedFile(root=root, file=data_file(name, rows))
            for (root, name), rows in folder.inputs.items()
            if name != LOG
        ],
        segments=[
            SealedSegment(root=root, name=name, bytes=len(rows), checksum="0" * 8)
            for (root, name), rows in folder.inputs.items()
            if name == LOG
        ],
    )
