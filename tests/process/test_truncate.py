"""A truncate whose node is killed in the middle: rows from before are gone, later ones stay."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.process.harness.node_outages import PATIENT_MS, rows_of
from tests.process.harness.rig import Rig, running, table_spec

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
BEFORE = [{"id": id, "word": "before"} for id in range(200)]
AFTER = [{"id": id, "word": "after"} for id in range(100, 150)]


async def is_cut(rig: Rig) -> bool:
    (route,) = (await rig.keys("__table_route/")).values()
    return all(region["epoch"] > 1 for region in route.value["region_routes"])


async def test_given_a_node_killed_in_the_middle_when_truncated_then_only_later_rows_are_there(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as rig, rig.client() as db:
        await db.tables.create(table_spec("t", regions=4))
        table = db.table("t")
        await table.insert(BEFORE, deadline_ms=PATIENT_MS)
        await rig.kill("dn-1", signal.SIGSTOP)  # what it is ordered now it does not answer
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(db.tables.truncate("t", wait_s=120))
            await rig.until(lambda: is_cut(rig))
            await rig.kill("dn-1")
        await table.insert(AFTER, deadline_ms=PATIENT_MS)
        await rig.restart("dn-1")

        async def is_back() -> bool:
            return (await db.nodes.get("dn-1")).state == "alive"

        await rig.until(is_back)
        rows = sorted(await rows_of(db, "t"), key=lambda row: int(row["id"]))
        violations = await rig.check()
        agreement = await rig.agreement()

    assert rows == AFTER
    assert violations == ()
    assert agreement.wrong == []
