"""Mistakes of leaders of regions with copies, planted for one world at a time."""

from collections.abc import Mapping
from dataclasses import replace

from dataplane.datanode.copies.led_region import LedRegion
from dataplane.region.copies.leader_view import CopyName, LeaderView, LeaveReason, RecordState
from tests.crash.enumeration import Patch

_sound_leaves = LeaderView.leaves


async def _counts_at_once(self: LedRegion, sequence: int) -> RecordState:
    """A leader that acknowledges a row when its own log has it."""
    return RecordState.COUNTS


def _learners_counted(self: LeaderView) -> bool:
    """A leader for which a learner is one of the copies that it must have."""
    return len(self.members.in_sync | self.members.learners) >= self.min_in_sync


def _shrinks_alone(self: LeaderView, now_ms: int) -> Mapping[CopyName, LeaveReason]:
    """A leader that requires a silent copy no more, and asks nobody for that."""
    leaving = _sound_leaves(self, now_ms)
    self.members = replace(self.members, in_sync=self.members.in_sync - leaving.keys())
    self._conclude(now_ms)
    return {}


PATCHES: dict[str, tuple[Patch, ...]] = {
    "acknowledged before a copy has it": ((LedRegion, "_counted", _counts_at_once),),
    "a learner counted for min_in_sync": (
        (LeaderView, "has_minimum", property(_learners_counted)),
    ),
    "a set that shrinks at the leader alone": ((LeaderView, "leaves", _shrinks_alone),),
}
"""By name."""
