"""A table with two copies that loses the disk of its leader, and that an operator alters, under
writers."""

import asyncio
import shutil
from pathlib import Path

from metasrv.sdk.client import AsyncClient
from tests.process.harness.copies.copy_outages import leader_of_first
from tests.process.harness.node_outages import acknowledged_again, rows_of, writers_of, writing
from tests.process.harness.probes import Seen, must
from tests.process.harness.rig import Rig, running
from tests.process.harness.writer import wrong_rows

TABLE = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, word TEXT)"
    " PARTITION BY HASH (id) PARTITIONS 2 REPLICAS 2"
)
LOWERED = "ALTER TABLE t SET MIN IN SYNC 1 REASON 'a disk is lost'"
RAISED = "ALTER TABLE t SET REPLICAS 3 MIN IN SYNC DEFAULT"
WIDENED = "ALTER TABLE t ADD COLUMN n BIGINT DEFAULT 7"


async def two_copies_altered(folder: Path) -> Seen:
    """A table made by SQL has two copies. The disk of a leader is lost: writes wait until the
    minimum is lowered. Then the copies of the lost disk are removed, and three copies are wanted,
    and made on the nodes that are left. The table gets a column, and loses another disk."""
    async with running(folder, datanodes=4, flags={}) as rig, rig.client() as db:
        await db.sql(TABLE)
        writers = await writers_of(db, "t")
        async with writing(writers):
            await acknowledged_again(rig, writers)
            dead = await leader_lost(rig, db)
            async with asyncio.TaskGroup() as tasks:
                writable = tasks.create_task(acknowledged_again(rig, writers))
                await db.sql(LOWERED)
            await db.sql(RAISED)
            await remove_copies_at(db, dead)
            await rig.until(lambda: has_three_copies(db, rig, dead))
            await db.sql(WIDENED)
            await leader_lost(rig, db)
            again = await acknowledged_again(rig, writers)
        rows = await rows_of(db, "t")
        agreement = await rig.agreement()
        checked = await rig.check()
    numbers = {"writable_ms": (writable.result(), again), "rows": len(rows)}
    kept = must(every_row_has_the_column={row.pop("n") for row in rows} == {7})
    return Seen(numbers, (*kept, *wrong_rows(rows, writers), *agreement.wrong, *checked))


async def leader_lost(rig: Rig, db: AsyncClient) -> str:
    """Kills the node that leads the first region and removes its root; returns its id."""
    leader = await leader_of_first(db)
    await rig.kill(leader)
    shutil.rmtree(rig.playground.datanode_roots[leader])
    return leader


async def remove_copies_at(db: AsyncClient, node: str) -> None:
    """Removes the copies of *node*, as an operator who does not wait for `safe_lost_time_ms`."""
    for region in (await db.tables.route("t")).regions:
        if node in {copy.node for copy in region.copies}:
            await db.regions.remove_copy(region.region_id, node, reason="its disk is lost")


async def has_three_copies(db: AsyncClient, rig: Rig, dead: str) -> bool:
    """Whether each node that is left has a copy in sync of every region, or leads it."""
    left = rig.playground.datanode_urls.keys() - {dead}
    regions = (await db.tables.route("t")).regions
    return all(
        {region.leader, *(copy.node for copy in region.copies if copy.role == "in-sync")} == left
        for region in regions
    )
