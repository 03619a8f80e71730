"""A batch equals the same commands one by one, in effect."""

from random import Random
from typing import Any

import httpx
import pytest

from procedures.ports import TransactionLimits
from tests.metasrv.api.rig import Server, TermLimits, leader
from tests.metasrv.service.ddl.batch_commands import Command, drawn

WAIT = {"prefer": "wait=10"}
COMMANDS = 20
"""Commands of a batch; most are about a name that another has made, taken or freed."""

SMALL = TransactionLimits(operations=3)
"""Almost every batch happens in parts."""
TINY = TransactionLimits(operations=3, record_bytes=1)
"""And its commands are in parts."""


async def placing_alone(one: Server, op: str, said: dict[str, Any]) -> httpx.Response:
    verb, what = op.split("_")
    path = "/v1/placements" if what == "placement" else "/v1/catalogs/main/tablespaces"
    if verb == "create":
        body = said if what == "placement" else said["tablespace"]
        return await one.client.post(path, json=body, headers=WAIT)
    path = f"{path}/{said[what]}"
    rest = {k: v for k, v in said.items() if k not in ("catalog", what)}
    if verb == "alter":
        return await one.client.patch(path, json=rest, headers=WAIT)
    if verb == "rename":
        return await one.client.post(f"{path}/rename", json=rest, headers=WAIT)
    query = f"?if_exists={str(said['if_exists']).lower()}"
    return await one.client.delete(f"{path}{query}", headers=WAIT)


async def alone(one: Server, command: Command) -> tuple[bool, bool]:
    """The request that does it alone: whether it succeeded, and whether it changed anything."""
    ((op, said),) = command.items()
    if op.endswith(("_placement", "_tablespace")):
        before = one.version
        done = await placing_alone(one, op, said)
        return done.is_success, one.version > before
    path = f"/v1/catalogs/main/schemas/{said['schema']}"
    rest = {k: v for k, v in said.items() if k not in ("catalog", "schema", "table")}
    before, send = one.version, one.client.post
    match op:
        case "create_schema":
            path = "/v1/catalogs/main/schemas"
            answer = await send(path, json=said["schema"], headers=WAIT)
        case "create_table":
            answer = await send(f"{path}/tables", json=said["table"], headers=WAIT)
        case "drop_table":
            query = f"?if_exists={str(said['if_exists']).lower()}"
            path = f"{path}/tables/{said['table']}{query}"
            answer = await one.client.delete(path, headers=WAIT)
        case "drop_schema":
            query = "&".join(f"{k}={str(said[k]).lower()}" for k in ("cascade", "if_exists"))
            answer = await one.client.delete(f"{path}?{query}", headers=WAIT)
        case _:
            verb = op.partition("_")[0]
            path = f"{path}/tables/{said['table']}/{verb}"
            answer = await send(path, json=rest, headers=WAIT)
    return answer.is_success, one.version > before


async def state(one: Server) -> dict[str, dict[str, Any]]:
    """Every schema with its tables, without ids, versions and times."""
    found: dict[str, dict[str, Any]] = {}
    catalog = one.state.follower.catalog
    for _, schema in catalog.schemas:
        tables = catalog.in_schema("main", schema)
        found[schema] = {table.info.name: table.info.options for table in tables}
    placing = catalog.placing
    found["placements"] = {each.name: each.comment for each in placing.placements.values()}
    spaces = placing.tablespaces_of("main")
    found["tablespaces"] = {each.name: each.comment for each in spaces.values()}
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "one_transaction", [TransactionLimits(), SMALL, TINY], ids=["whole", "parts", "all-in-parts"]
)
@pytest.mark.parametrize("seed", range(3))
async def test_given_any_commands_then_a_batch_is_what_they_are_one_by_one(
    seed: int, one_transaction: TransactionLimits
) -> None:
    rng = Random(seed)
    commands = [drawn(rng) for _ in range(COMMANDS)]
    applied: list[bool] = []
    kept: list[Command] = []
    async with leader() as single:
        for command in commands:
            succeeded, changed = await alone(single, command)
            if succeeded:
                kept.append(command)
                applied.append(changed)
            else:
                await refused(kept, command)
        wanted = await state(single)
    async with leader(of_term=TermLimits(one_transaction=one_transaction)) as one:
        before = one.version

        done = await one.client.post("/v1/batch", json={"commands": kept}, headers=WAIT)

        assert (done.status_code, done.json()["applied"]) == (200, applied), done.text
        assert await state(one) == wanted
        assert done.json()["catalog_version"] == (before + 1 if any(applied) else None)
        left = one.state.follower.catalog.tables.values()
        assert [table for table in left if table.info.is_hidden and not table.dropped_at_ms] == []


async def refused(kept: list[Command], command: Command) -> None:
    """A command that is refused alone refuses the batch that ends with it, whole."""
    async with leader() as one:
        before = await state(one)
        body = {"commands": [*kept, command]}

        done = await one.client.post("/v1/batch", json=body, headers=WAIT)

        assert not done.is_success
        assert done.json()["facts"]["command"] == len(kept), done.text
        assert await state(one) == before
