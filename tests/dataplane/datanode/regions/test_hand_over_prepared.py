"""What copies have in memory is in files before a leader hands its region over."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from dataplane.datanode.regions.hand_over import FLUSH_LOOK_MS, PREPARED_BYTES, HandOvers
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.following.copy_region import CopyRegion
from metasrv_base.wire.node.orders import HandOver
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.rig import REGION_ID, write
from tests.sim.loop import SimClock, SimLoop, run

PREPARE = HandOver(number=1, region_id=str(REGION_ID), epoch=1, phase="prepare")


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
