"""The leader killed under clients: every few seconds, and among creates that a limit bounds."""

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from metasrv.sdk.client import AsyncClient
from metasrv_base.errors import MetaError
from tests.process.harness.leader_kills import Plan, leader_kills
from tests.process.harness.rig import Rig, running, table_spec

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]
ASKED = 32


@pytest.mark.case("catalog 147")
async def test_given_six_clients_when_leaders_are_killed_then_what_was_acknowledged_holds(
    tmp_path: Path,
) -> None:
    report = await leader_kills(tmp_path, Plan(kills=2, every_s=2))

    print(report)
    assert report.wrong == [], "\n".join(report.wrong)
    assert report.terms > report.kills


async def create(db: AsyncClient, name: str) -> str:
    try:
        await db.tables.create(table_spec(name), wait_s=60)
    except MetaError as error:
        return error.code
    return "made"


async def has_asked(rig: Rig) -> bool:
    """Whether a create is in the store, over or not."""
    return len(await rig.keys("__procedure")) > 2


async def test_given_one_free_place_when_32_create_and_their_leader_dies_then_one_table_more(
    tmp_path: Path,
) -> None:
    """Half of them ask before it dies, and half of its successor."""
    async with running(tmp_path, metasrvs=2) as rig, rig.client() as db:
        await db.tables.create(table_spec("there"))
        await db.catalogs.alter("main", limits={"tables": 2, "regions": 4})
        leader = await rig.leader()
        async with asyncio.TaskGroup() as tasks:
            names = [f"t{number}" for number in range(ASKED)]
            asked = [tasks.create_task(create(db, name)) for name in names[: ASKED // 2]]
            await rig.until(partial(has_asked, rig))
            await rig.kill(leader)
            tasks.create_task(rig.restart(leader))
            asked.extend(tasks.create_task(create(db, name)) for name in names[ASKED // 2 :])
        await rig.converged()
        usage = (await db.catalogs.get("main")).usage
        violations, agreement = await rig.check(), await rig.agreement()

    assert Counter(task.result() for task in asked) == {"made": 1, "tenant-limit": ASKED - 1}
    assert (usage.tables, usage.regions) == (2, 4)
    assert violations == ()
    assert agreement.wrong == []
