"""Actions of an operator on a running cluster: a drain under a writer, maintenance with an
expiry."""

import asyncio
from pathlib import Path

import pytest

from tests.process.harness.node_outages import rows_of
from tests.process.harness.rig import running, table_spec
from tests.process.harness.writer import Writer, wrong_rows

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]


async def test_given_a_writer_when_its_node_is_drained_then_it_lives_empty_and_no_row_is_lost(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as rig, rig.client() as db:
        await db.tables.create(table_spec("t", regions=2))
        writer = Writer(db.table("t"))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(writer.run())
            drained = await db.nodes.drain("dn-1", "a new disk")
            ended = await db.procedures.wait(drained.id, 600)
            after = writer.begun

            async def writes_again() -> bool:
                return writer.acknowledged > after

            await rig.until(writes_again)
            writer.stop()

        async def lives_empty() -> bool:
            node = await db.nodes.get("dn-1")
            return (node.state, node.leads, node.cordon is not None) == ("alive", 0, True)

        await rig.until(lives_empty)
        rows = await rows_of(db, "t")
        violations = await rig.check()

    assert ended.result is not None
    assert ended.result["left"] == []
    assert wrong_rows(rows, [writer]) == []
    assert violations == ()


async def test_given_maintenance_when_leader_and_node_die_then_nothing_moves_until_it_expires(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, metasrvs=2) as rig, rig.client() as db:
        await db.tables.create(table_spec("t", regions=1))
        node = (await db.tables.route("t")).regions[0].leader
        assert node is not None
        await db.cluster.set_maintenance(True, "racks", 3_600)
        first = await rig.leader()
        await rig.kill(first)
        second = await rig.leader(other_than=first)
        await rig.kill(node)

        async def is_held() -> bool:
            return '"reason": "maintenance"' in rig.log_of(second)

        await rig.until(is_held)
        held = await db.failovers.list()
        await db.cluster.set_maintenance(True, "racks", 1)

        async def moved() -> bool:
            route = (await db.tables.route("t")).regions[0]
            return route.leader != node and route.state == "open"

        await rig.until(moved)
        shown = await db.cluster.maintenance()

    assert held == []
    assert (shown.enabled, shown.reason) == (False, "racks")
