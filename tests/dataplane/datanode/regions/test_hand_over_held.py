"""A leader that hands its region over: its memory before, and the writes that it holds."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dataplane.datanode.regions.hand_over import FLUSH_LOOK_MS, PREPARED_BYTES, HandOvers
from dataplane.region.copies.leader_view import CopyName
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.following.copy_region import CopyRegion
from metasrv_base.errors import Conflict, Unavailable
from metasrv_base.wire.node.orders import HandOver
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.rig import REGION_ID, write
from tests.sim.loop import SimClock, SimLoop, run

HOLD_MS = 3_000
ME, NEXT = CopyName("dn-1", "/1"), CopyName("dn-2", "/2")
PREPARE = HandOver(number=1, region_id=str(REGION_ID), epoch=1, phase="prepare")


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


def following(copy: CopyRegion) -> Any:
    return SimpleNamespace(
        region_id=REGION_ID,
        epoch=1,
        followed=SimpleNamespace(copy=copy),
        owner=None,
        led=None,
        order=SimpleNamespace(role="copy"),
        state="open",
    )


def test_given_a_flush_of_the_node_s_own_when_prepared_then_no_other_is_waited_for() -> None:
    """Under steady writes each record comes with the word that the last one is common."""

    async def main(loop: SimLoop) -> None:
        clock, loop.thread_ms = SimClock(loop), lambda: 1.0
        region, copy = leader(MemoryDisk(MemoryStore())), copy_at(MemoryDisk(MemoryStore()))
        for number in range(4):
            rows = {b"%d" % number: (number, "x" * PREPARED_BYTES)}
            write(region, f"s-{number}", rows)
        copy.take(sent(region, 0, common=0, upto=1))
        copy.take(sent(region, 1, common=1, upto=2))
        maintenance = copy.maintenance
        assert maintenance is not None
        rights = cast(Any, SimpleNamespace(may_begin_to_write=lambda _: False))
        hand_overs = HandOvers(lambda _: following(copy), rights, clock, cast(Any, None))

        async def node() -> None:
            await clock.sleep_ms(FLUSH_LOOK_MS // 2)
            copy.take(sent(region, 2, common=2, upto=3))
            assert maintenance.flush()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(hand_overs.carry_out(PREPARE))
            tasks.create_task(node())

        assert clock.mono_ms() < 3 * FLUSH_LOOK_MS
        assert maintenance.memory_bytes < PREPARED_BYTES

    run(main, 1)
