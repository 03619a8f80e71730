"""A node that leads regions, with copies and without, drained under writers."""

import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

from metasrv.sdk.client import AsyncClient
from tests.process.harness.copies.copy_outages import copied, leader_of_first
from tests.process.harness.copies.filled_copies import COUNT, FIRST, INDEX, JOB_S, files_in
from tests.process.harness.node_outages import PATIENT_MS, acknowledged_again, rows_of, writing
from tests.process.harness.probes import Seen, must
from tests.process.harness.rig import running, table_spec
from tests.process.harness.writer import Writer, wrong_rows

WAIT_S = 240
GAP_MS_MAX = 5_000
"""A failover takes no writes for 11.5 s: whoever leads next must wait for a lease."""


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


async def only_copies_drained(folder: Path) -> Seen:
    """The only copies of the regions of a node move to other nodes: no write is refused, and none
    waits for a lease. The node is then empty, and is removed from the cluster."""
    async with running(folder, datanodes=3, flags={}) as rig, rig.client() as db:
        await db.tables.create(table_spec("t", regions=6))
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
        copies = [len(each.copies) for each in (await db.tables.route("t")).regions]
        nodes = await nodes_of_copies(db)
        await db.nodes.decommission(drained, "it is empty")
        rows = await rows_of(db, "t")
        checked = await rig.check()
    gap_ms = longest_gap_ms(writers, began_ms)
    numbers = {
        "result": ended.result,
        "drained_ms": drained_ms,
        "longest_gap_ms": gap_ms,
        "rows": len(rows),
        "refused": [dict(writer.codes) for writer in writers],
    }
    kept = must(
        it_succeeded=ended.state == "succeeded",
        nothing_failed_over=(ended.result or {}).get("failover") is None,
        no_write_refused=not any(writer.codes for writer in writers),
        no_write_waited_for_a_lease=gap_ms < GAP_MS_MAX,
        each_region_has_one_copy=not any(copies),
        no_copy_is_left_there=drained not in nodes,
    )
    return Seen(numbers, (*kept, *wrong_rows(rows, writers), *checked))


async def dropped_tables_drained(folder: Path) -> Seen:
    """A node has regions of two dropped tables: one with rows of files and an index, one with
    copies. They move while it is drained; it is removed from the cluster, its process is killed and
    its disk removed. Then both tables are undropped, with every row and every entry."""
    brought = files_in(folder / "in")
    flags = {"import-folders": str(brought)}
    async with running(folder, datanodes=4, flags=flags) as rig, rig.client() as db:
        await db.tables.create(table_spec("gone", regions=6))
        await db.tables.create({**table_spec("copied", regions=3), "replicas": 2})
        writers = {name: Writer(db.table(name), 0, PATIENT_MS) for name in ("gone", "copied")}
        async with writing(list(writers.values())):
            await db.tables.import_files("gone", [str(brought)], wait_s=JOB_S)
            await db.indexes.create("gone", INDEX, wait_s=JOB_S)
            await acknowledged_again(rig, list(writers.values()))
        drained = await leader_of_first(db, "gone")
        for name in writers:
            await db.tables.drop(name)
        started = await db.nodes.drain(drained, "a new kernel")
        ended = await db.procedures.wait(started.id, wait_s=WAIT_S)
        await db.nodes.decommission(drained, "it is empty")
        await rig.kill(drained)
        shutil.rmtree(rig.playground.datanode_roots[drained])
        wrong: list[str] = []
        numbers: dict[str, Any] = {"result": ended.result}
        for name, writer in writers.items():
            await db.tables.undrop(name)
            rows = await rows_of(db, name)
            own = [row for row in rows if row["id"] < FIRST]
            numbers[name] = {"rows": len(rows), "own": len(own), "sent": len(writer.told)}
            wrong += wrong_rows(own, [writer])
        checked = await db.tables.check("gone", wait_s=JOB_S)
    imported = numbers["gone"]["rows"] - numbers["gone"]["own"]
    kept = must(
        it_succeeded=ended.state == "succeeded",
        every_row_of_the_files_is_there=imported == COUNT,
        every_row_has_its_entry=checked.clean and checked.entries >= numbers["gone"]["rows"],
    )
    return Seen(numbers, (*kept, *wrong))


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
