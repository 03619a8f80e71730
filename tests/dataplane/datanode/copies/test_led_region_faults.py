"""A fault of our own while a region begins to lead ends that opening, and not the node."""

import pytest

from dataplane.datanode.copies.led_region import LeaderClocks, LedRegion
from dataplane.region.following.leading import LedOpening, lead_new
from metasrv_base.errors import MetaError, Unavailable
from tests.dataplane.datanode.copies.fetch_bench import copies
from tests.dataplane.region.rig import SPEC, place


async def test_given_a_fault_when_the_opening_is_counted_then_the_region_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: LedOpening) -> None:
        raise MemoryError

    monkeypatch.setattr(LedOpening, "count", fail)
    clocks, ends = LeaderClocks(lambda: 0, lambda: True), list[MetaError]()
    led = LedRegion(lead_new(place(), SPEC, 1), copies(), clocks, lambda _: None)
    led.on_end = ends.append

    await led.run()

    assert ends == [led.ended]
    with pytest.raises(Unavailable):
        led.must_be_readable()
