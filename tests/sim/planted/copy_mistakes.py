"""Mistakes of leaders of regions with copies, planted for one world at a time."""

from dataplane.datanode.copies.led_region import LedRegion
from dataplane.region.copies.leader_view import RecordState
from tests.crash.enumeration import Patch


async def _counts_at_once(self: LedRegion, sequence: int) -> RecordState:
    """A leader that acknowledges a row when its own log has it."""
    return RecordState.COUNTS


PATCHES: dict[str, tuple[Patch, ...]] = {
    "acknowledged before a copy has it": ((LedRegion, "_counted", _counts_at_once),),
}
"""By name."""
