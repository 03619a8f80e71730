"""Holds of writes at a leader: of regions that nobody writes to, and at a node that has started."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dataplane.datanode.regions.hand_over import HandOvers
from dataplane.region.copies.leader_view import CopyName
from metasrv_base.errors import Conflict, Unavailable
from metasrv_base.wire.node.orders import HandOver
from tests.sim.loop import SimClock, SimLoop, run

HOLD_MS = 3_000
ME, NEXT = CopyName("dn-1", "/1"), CopyName("dn-2", "/2")


async def _done(_: object) -> None:
    """Nothing is under way, and the copy has all."""


def leading(region_id: int) -> Any:
    view = SimpleNamespace(name=ME, members=SimpleNamespace(in_sync=frozenset({ME, NEXT})))
    led = SimpleNamespace(view=view, must_be_readable=lambda: None, until_it_has_all=_done)
    owner = SimpleNamespace(change=_done)
    return SimpleNamespace(
        region_id=region_id, epoch=1, owner=owner, led=led, followed=None, state="open"
    )


def hold(region_id: int) -> HandOver:
    return HandOver(
        number=1,
        region_id=str(region_id),
        epoch=1,
        phase="hold",
        node=NEXT.node,
        root=NEXT.root,
        hold_ms=HOLD_MS,
    )


def test_given_many_idle_regions_that_are_handed_over_then_few_holds_are_remembered() -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        hand_overs = HandOvers(leading, cast(Any, None), clock, cast(Any, None))
        for region_id in range(1, 101):
            await hand_overs.carry_out(hold(region_id))
            await clock.sleep_ms(1_000)

        assert len(hand_overs._holds) <= 4

    run(main, 1)


@pytest.mark.parametrize(
    ("slot", "refusal"),
    [
        ({"state": "opening", "led": None, "owner": None}, Unavailable),
        ({"state": "restarted", "led": None, "owner": None}, Unavailable),
        ({"epoch": 0}, Unavailable),
        ({"state": "lost", "led": None, "owner": None}, Conflict),
        ({"led": None}, Conflict),
    ],
)
def test_given_a_leader_that_is_not_open_yet_when_it_is_to_hold_writes_then_that_is_tried_again(
    slot: dict[str, Any], refusal: type[Exception]
) -> None:
    async def main(loop: SimLoop) -> None:
        def started(region_id: int) -> Any:
            return SimpleNamespace(**{**vars(leading(region_id)), **slot})

        hand_overs = HandOvers(started, cast(Any, None), SimClock(loop), cast(Any, None))
        with pytest.raises(refusal):
            await hand_overs.carry_out(hold(1))

    run(main, 1)
