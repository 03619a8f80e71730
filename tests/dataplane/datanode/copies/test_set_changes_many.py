"""Changes of many regions: one request at a time, the most urgent first."""

from collections.abc import Sequence
from typing import cast

from dataplane.datanode.copies.led_region import LedRegion
from dataplane.datanode.copies.set_changes import SetChanges
from metasrv_base.wire.node.copy_changes import CHANGES_MAX, CopyChange, CopyChangeResult
from tests.fakes.clock import FakeClock


class Led:
    """A region that has one change to ask for."""

    def __init__(self, number: int, *, is_waiting: bool) -> None:
        self.is_done, self.waits_for = False, ("dn-2",) if is_waiting else ()
        self._change = CopyChange(
            region_id=str(number),
            epoch=1,
            copies_version=1,
            change="join",
            node="dn-2",
            root="/disks/dn-2/r",
            reason="it has caught up",
        )

    def next_change(self) -> CopyChange | None:
        return None if self.is_done else self._change

    def changed(self, change: CopyChange, result: CopyChangeResult) -> None:
        self.is_done = change == self._change


class Metasrv:
    """Does every change."""

    def __init__(self) -> None:
        self.requests = list[int]()
        """The number of changes of each."""

    async def change_copies(self, changes: Sequence[CopyChange]) -> Sequence[CopyChangeResult]:
        self.requests.append(len(changes))
        return [CopyChangeResult(region_id=each.region_id, copies_version=2) for each in changes]


async def test_given_many_regions_when_asked_then_one_request_and_first_where_a_group_waits() -> (
    None
):
    """A change that has no room in the request is asked for at the next one."""
    regions = [Led(number, is_waiting=number == CHANGES_MAX) for number in range(CHANGES_MAX + 1)]
    metasrv = Metasrv()
    changes = SetChanges(lambda: cast(list[LedRegion], regions), metasrv, FakeClock())

    await changes.ask()
    assert metasrv.requests == [CHANGES_MAX]
    assert regions[-1].is_done
    assert [led.is_done for led in regions].count(False) == 1
    await changes.ask()
    await changes.ask()

    assert metasrv.requests == [CHANGES_MAX, 1], "nothing is left"
