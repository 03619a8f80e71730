"""The leader killed while two clients bring the catalog to the same desired state."""

import asyncio
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from metasrv.sdk.client import AsyncClient
from metasrv_base.errors import MetaError
from tests.process.harness.rig import QUICK, Rig, running, table_spec

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]
TABLES = 30
WAIT_S = 5
"""For what a client has begun: it gives up on a change that waits for a node."""
FLAGS = {**QUICK, "phi-pause-ms": "60000"}  # the node that stands still is not given up
PATIENCE_MS = 500
"""Less than the time in which another server becomes leader: both clients give up."""


def desired() -> dict[str, Any]:
    indexed = {"indexes": [{"name": "by_id", "columns": ["id"]}]}
    tables = [table_spec(f"t{number}") | indexed for number in range(TABLES)]
    schema = {"name": "public", "tables": tables}
    return {"catalogs": [{"name": "main", "schemas": [schema]}]}


async def applied(db: AsyncClient, is_killed: asyncio.Event) -> str:
    """A client that gives up earlier, on a server that is slow, begins again."""
    while True:
        try:
            await db.apply(desired(), wait_s=WAIT_S)
        except MetaError as error:
            if is_killed.is_set():
                return error.code
        else:
            return "done"


async def operations_left(db: AsyncClient) -> int:
    return len((await db.apply(desired(), mode="plan")).operations)


async def tables_are_there(rig: Rig) -> bool:
    """Whether all tables are, so that indexes are made, or soon will be."""
    return len(await rig.keys("__table_name/")) == TABLES


async def waits(rig: Rig) -> bool:
    """Whether a change has begun. A node stands still: it does not end."""
    return bool(await rig.records())


async def test_given_two_that_apply_when_the_leader_dies_then_another_apply_does_what_is_left(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, metasrvs=2, flags=FLAGS) as rig, rig.client() as db:
        leader, is_killed = await rig.leader(), asyncio.Event()
        async with (
            rig.client(patience_ms=PATIENCE_MS) as one,
            rig.client(patience_ms=PATIENCE_MS) as other,
            asyncio.TaskGroup() as tasks,
        ):
            clients = [tasks.create_task(applied(client, is_killed)) for client in (one, other)]
            await rig.until(partial(tables_are_there, rig))
            await rig.kill("dn-1", signal.SIGSTOP)
            await rig.until(partial(waits, rig))
            is_killed.set()
            await rig.kill(leader)
            tasks.create_task(rig.restart(leader))
        await rig.kill("dn-1", signal.SIGCONT)
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
