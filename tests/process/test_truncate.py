"""Truncates where nodes are killed: rows from before are gone, and later ones stay."""

import asyncio
import signal
from pathlib import Path

import pytest

from metasrv.sdk.rows.table import AsyncTable
from metasrv_base.errors import MetaError
from tests.process.harness.node_outages import PATIENT_MS, rows_of
from tests.process.harness.rig import CALM, Rig, running, table_spec

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]
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


async def lost_regions(rig: Rig) -> list[str]:
    """Leaders of the regions of the only table that its route calls lost."""
    (route,) = (await rig.keys("__table_route/")).values()
    regions = route.value["region_routes"]
    return [region["leader"] for region in regions if region["state"] == "lost"]


async def answer(table: AsyncTable, row: dict[str, object]) -> str:
    """The code of the refusal of one row, which is in one region."""
    try:
        await table.insert([row], deadline_ms=PATIENT_MS)
    except MetaError as error:
        return error.code
    return "inserted"


async def test_given_a_table_in_memory_when_its_node_is_killed_then_lost_until_it_is_truncated(
    tmp_path: Path,
) -> None:
    """The node starts again at once, and has no row of the process before."""
    async with running(tmp_path, flags=CALM) as rig, rig.client() as db:
        profiles = [{"name": "default", "engine": "lsm"}, {"name": "memory", "engine": "memory"}]
        await db.placements.alter("default", {"storage_profiles": profiles})
        await db.tables.create({**table_spec("t", regions=2), "storage_profile": "memory"})
        table = db.table("t")
        await table.insert(BEFORE, deadline_ms=PATIENT_MS)
        assert len(await rows_of(db, "t")) == len(BEFORE)
        await rig.kill("dn-1")
        await rig.restart("dn-1")

        assert await rig.until(lambda: lost_regions(rig)) == ["dn-1"]
        answers = {await answer(table, {"id": id, "word": "more"}) for id in range(1_000, 1_008)}
        found = await rig.check()
        await db.tables.truncate("t", wait_s=120)
        await table.insert(AFTER, deadline_ms=PATIENT_MS)
        rows = sorted(await rows_of(db, "t"), key=lambda row: int(row["id"]))
        agreement = await rig.agreement()

    assert answers == {"inserted", "region-lost"}
    assert any("region-lost" in line for line in found), found
    assert rows == AFTER
    assert agreement.wrong == []
