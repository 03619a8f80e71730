"""Mistakes of leaders of regions with copies, planted for one world at a time."""

from collections.abc import Mapping
from dataclasses import replace

from dataplane.datanode.copies.led_region import LedRegion
from dataplane.region.copies.leader_view import CopyName, LeaderView, LeaveReason, RecordState
from dataplane.region.copies.staleness import AppliedLog, CommonAt, CopyStaleness
from tests.crash.enumeration import Patch

AGE_MS = 3_600_000
_sound_leaves = LeaderView.leaves
_sound_tell = CopyStaleness.tell


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


def _tells_no_age(self: CopyStaleness, position: CommonAt, applied: AppliedLog | None) -> None:
    """A copy that was told a position once, and takes its rows for new ones from then on."""
    _sound_tell(self, position._replace(as_of_ms=position.as_of_ms + AGE_MS), applied)


PATCHES: dict[str, tuple[Patch, ...]] = {
    "acknowledged before a copy has it": ((LedRegion, "_counted", _counts_at_once),),
    "a learner counted for min_in_sync": (
        (LeaderView, "has_minimum", property(_learners_counted)),
    ),
    "a copy forgets the age of its rows": ((CopyStaleness, "tell", _tells_no_age),),
    "a set that shrinks at the leader alone": ((LeaderView, "leaves", _shrinks_alone),),
}
"""By name."""
