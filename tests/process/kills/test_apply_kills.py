"""The leader killed while two clients bring the catalog to the same desired state."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from metasrv.sdk.client import AsyncClient
from metasrv_base.errors import MetaError
from tests.process.harness.rig import running, table_spec

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
TABLES = 30
PATIENCE_MS = 500
"""Less than the time in which another server becomes leader: both clients give up."""


def desired() -> dict[str, Any]:
    indexed = {"indexes": [{"name": "by_id", "columns": ["id"]}]}
    tables = [table_spec(f"t{number}") | indexed for number in range(TABLES)]
    schema = {"name": "public", "tables": tables}
    return {"catalogs": [{"name": "main", "schemas": [schema]}]}


async def applied(db: AsyncClient) -> str:
    try:
        await db.apply(desired(), wait_s=60)
    except MetaError as error:
        return error.code
    return "done"


async def operations_left(db: AsyncClient) -> int:
    return len((await db.apply(desired(), mode="plan")).operations)


async def has_begun(db: AsyncClient) -> bool:
    """Whether tables are there, and indexes may be under way."""
    return await operations_left(db) <= TABLES


async def test_given_two_that_apply_when_the_leader_dies_then_another_apply_does_what_is_left(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, metasrvs=2) as rig, rig.client(patience_ms=60_000) as db:
        leader = await rig.leader()
        async with (
            rig.client(patience_ms=PATIENCE_MS) as one,
            rig.client(patience_ms=PATIENCE_MS) as other,
            asyncio.TaskGroup() as tasks,
        ):
            clients = [tasks.create_task(applied(client)) for client in (one, other)]
            await rig.until(partial(has_begun, db))
            await rig.kill(leader)
            tasks.create_task(rig.restart(leader))
        was_left = await operations_left(db)

        done = await db.apply(desired(), wait_s=60)

        await rig.converged()
        left = await db.apply(desired(), mode="plan", prune=True)
        violations, agreement = await rig.check(), await rig.agreement()

    print([client.result() for client in clients], was_left)
    assert was_left > 0, "the leader died too late"
    assert left.operations == ()
    # A change that was under way is the next leader's: it ends it meanwhile.
    assert 0 < sum(step.operations for step in done.steps) <= was_left
    assert violations == ()
    assert agreement.wrong == []
