"""Desired states by the SDK, at a real server: sent again until all of the plan is done."""

from typing import Any

import pytest

from metasrv.sdk.client import AsyncClient
from metasrv_base.errors import Conflict, Refused
from metasrv_base.wire.api.procedures import ProcedureBody
from tests.metasrv.api.rig import InProcess, Server, leader

TABLE: dict[str, Any] = {
    "name": "t",
    "columns": [
        {"name": "id", "type": "int64", "nullable": False},
        {"name": "day", "type": "date"},
    ],
    "primary_key": ["id"],
    "indexes": [{"name": "by_day", "columns": ["day"]}],
    "constraints": [{"name": "positive", "check": "id > 0"}],
}


def state(*tables: dict[str, Any]) -> dict[str, Any]:
    schema = {"name": "public", "tables": list(tables)}
    return {"catalogs": [{"name": "main", "schemas": [schema]}]}


def _sdk(one: Server) -> AsyncClient:
    return AsyncClient([one.state.facts.url], transport=InProcess(one.app), patience_ms=1_000)


async def test_given_a_state_when_applied_and_exported_then_nothing_is_left() -> None:
    async with leader() as one, _sdk(one) as client:
        plan = await client.apply(state(TABLE), mode="plan")
        assert len(plan.operations) == 3

        done = await client.apply(state(TABLE), plan_hash=plan.plan_hash)

        assert [step.operations for step in done.steps] == [1, 1, 1]
        exported = await client.export()
        assert (await client.apply(exported, mode="plan", prune=True)).operations == ()
        assert (await client.apply(state(TABLE))).steps == ()


@pytest.mark.slow
async def test_given_a_server_that_does_not_wait_then_it_goes_on_after_each_change() -> None:
    async with leader() as one, _sdk(one) as client:
        kinds: list[str] = []
        one.nodes.gate.clear()

        def watched(procedure: ProcedureBody) -> None:
            kinds.append(procedure.kind)
            one.nodes.gate.set()

        done = await client.apply(state(TABLE), wait_s=60, on_progress=watched)

        assert [step.operations for step in done.steps] == [1, 1, 1]
        assert "batch" in kinds


async def test_given_another_plan_or_a_loss_then_it_is_refused() -> None:
    async with leader() as one, _sdk(one) as client:
        await client.apply(state(TABLE))
        with pytest.raises(Conflict) as changed:
            await client.apply(state(TABLE, {**TABLE, "name": "u"}), plan_hash="0" * 64)
        assert changed.value.code == "plan-changed"
        with pytest.raises(Refused) as lossy:
            await client.apply(state({**TABLE, "indexes": []}))
        assert lossy.value.code == "destructive-plan"


async def test_given_sql_then_it_declares_too() -> None:
    async with leader() as one, _sdk(one) as client:
        sql = [{"name": "a.sql", "text": "create table v (id int primary key)"}]
        done = await client.apply({}, sql=sql)
        assert [each.name for each in done.operations] == ["main.public.v"]
