"""A node that leads regions with copies, drained under writers."""

from itertools import pairwise
from pathlib import Path

from metasrv.sdk.client import AsyncClient
from tests.process.harness.copies.copy_outages import copied, leader_of_first
from tests.process.harness.node_outages import PATIENT_MS, acknowledged_again, rows_of, writing
from tests.process.harness.probes import Seen, must
from tests.process.harness.writer import Writer, wrong_rows

WAIT_S = 240


async def leader_drained(folder: Path) -> Seen:
    """The copies of the node move to the fourth one, and others lead its regions: no write is
    refused. The node is then empty, and is removed from the cluster."""
    async with copied(folder, regions=4) as (rig, db):
        firsts = (0, 1_000_000)
        writers = [Writer(db.table("t"), first, statement_ms=PATIENT_MS) for first in firsts]
        async with writing(writers):
            await acknowledged_again(rig, writers)
            drained = await leader_of_first(db)
            began_ms = rig.clock.mono_ms()
            started = await db.nodes.drain(drained, "a new kernel")
            ended = await db.procedures.wait(started.id, wait_s=WAIT_S)
            drained_ms = rig.clock.mono_ms() - began_ms
            await acknowledged_again(rig, writers)
        nodes = await nodes_of_copies(db)
        await db.nodes.decommission(drained, "it is empty")
        rows = await rows_of(db, "t")
        checked = await rig.check()
    numbers = {
        "result": ended.result,
        "drained_ms": drained_ms,
        "longest_gap_ms": longest_gap_ms(writers, began_ms),
        "rows": len(rows),
        "refused": [dict(writer.codes) for writer in writers],
    }
    kept = must(
        it_succeeded=ended.state == "succeeded",
        no_write_refused=not any(writer.codes for writer in writers),
        no_copy_is_left_there=drained not in nodes,
    )
    return Seen(numbers, (*kept, *wrong_rows(rows, writers), *checked))


async def nodes_of_copies(db: AsyncClient) -> set[str | None]:
    """All nodes that have a copy of a region of table t."""
    regions = (await db.tables.route("t")).regions
    return {
        node for each in regions for node in (each.leader, *(copy.node for copy in each.copies))
    }


def longest_gap_ms(writers: list[Writer], since_ms: int) -> int:
    """The longest time between two acknowledged batches of one writer."""
    return max(
        later - earlier
        for writer in writers
        for earlier, later in pairwise(writer.acknowledged_ms)
        if later >= since_ms
    )
