"""Regions with three copies while their nodes cannot reach one another, and metasrv all of them."""

from collections.abc import Sequence
from pathlib import Path

from metasrv.sdk.client import AsyncClient
from tests.process.harness.copies.copy_outages import (
    CountingReader,
    copied,
    count_at,
    leader_of_first,
    leads_elsewhere,
)
from tests.process.harness.copies.equal_copies import unequal_copies
from tests.process.harness.copies.relays import both_ways, relayed
from tests.process.harness.node_outages import acknowledged_again, rows_of, writers_of, writing
from tests.process.harness.probes import Seen, must
from tests.process.harness.writer import wrong_rows


async def copies_cut(folder: Path) -> Seen:
    """First the leader reaches one of its copies no more, although that one reaches the leader:
    the copy leaves, and writes go on. Then the leader and its copies are cut off from each other:
    a copy leads, and the former leader answers no read that lacks a row. What was sent into a cut
    arrives when it ends, and changes nothing."""
    async with copied(folder, regions=1) as (rig, db), relayed(rig) as relays:
        writers = await writers_of(db, "t")
        async with writing(writers):
            await acknowledged_again(rig, writers)
            await rig.until(lambda: in_sync(db, 3))
            leader = await leader_of_first(db)
            first, *_ = others = await copies_of(db)
            await rig.until(lambda: relays.are_used((leader, each) for each in others))
            await relays.cut((leader, first))
            await rig.until(lambda: has_left(db, first))
            one_way_ms = await acknowledged_again(rig, writers)
            await relays.heal()
            await rig.until(lambda: in_sync(db, 3))

            led_on = await leader_of_first(db) == leader
            bound = await db.table("t").binding.get()
            reader = CountingReader(
                lambda: count_at(bound), lambda: sum(writer.count("ok") for writer in writers)
            )
            await relays.cut(*both_ways(leader, others))
            cut_ms = rig.clock.mono_ms()
            await rig.until(lambda: leads_elsewhere(db, leader))
            promoted_ms = rig.clock.mono_ms() - cut_ms
            cut_off_ms = await acknowledged_again(rig, writers)
            for _ in range(20):
                await reader.once()
            held_bytes = relays.held_bytes
            await relays.heal()
            await acknowledged_again(rig, writers)
            await rig.until(lambda: in_sync(db, 3))
        rows = await rows_of(db, "t")
        unequal = await unequal_copies(rig, db, "t")
        checked = await rig.check()
    numbers = {
        "writable_ms after one copy was cut off": one_way_ms,
        "promoted_ms": promoted_ms,
        "writable_ms after that": cut_off_ms,
        "reads refused at the former leader": reader.refused,
        "bytes that arrived late": held_bytes,
        "rows": len(rows),
    }
    kept = must(
        the_leader_of_one_lost_copy_led_on=led_on,
        something_arrived_late=held_bytes > 0,
        the_former_leader_was_asked=reader.refused > 0,
    )
    wrong = (*kept, *reader.stale, *wrong_rows(rows, writers), *unequal, *checked)
    return Seen(numbers, wrong)


async def copies_of(db: AsyncClient) -> Sequence[str]:
    """The nodes of the other copies in the set of the first region."""
    region = (await db.tables.route("t")).regions[0]
    return [copy.node for copy in region.copies if copy.role == "in-sync"]


async def in_sync(db: AsyncClient, count: int) -> bool:
    return len(await copies_of(db)) == count - 1


async def has_left(db: AsyncClient, node: str) -> bool:
    return node not in await copies_of(db)
