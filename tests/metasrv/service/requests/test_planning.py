"""`?dry_run=true`: the plan over HTTP, and what stands in the way; nothing is stored."""

from keys.model.tables import TableInfoKey, TableRouteKey
from tests.metasrv.api.rig import TABLES, leader, spec

DRY = "?dry_run=true"


async def test_given_a_dry_run_then_it_is_judged_and_nothing_is_stored() -> None:
    async with leader() as one:
        await one.make()
        revision = one.kv.revision

        fine = await one.client.post(TABLES + DRY, json=spec("u"))
        bad = await one.client.post(TABLES + DRY, json=spec("t"))

        assert (fine.status_code, fine.json()["kind"]) == (200, "create_table")
        assert (bad.status_code, bad.json()["code"]) == (409, "already-exists")
        assert one.kv.revision == revision


async def test_given_the_plan_of_a_create_when_made_next_then_ids_and_keys_are_those() -> None:
    async with leader() as one:
        plan = (await one.client.post(TABLES + DRY, json=spec("u"))).json()
        made = await one.make("u")

        table = made["id"]
        assert plan["resource"] == {"type": "table", "id": str(table), "name": "main.public.u"}
        assert {str(TableInfoKey(table)), str(TableRouteKey(table))} < set(plan["keys"])
        assert plan["complete"]
        assert plan["blockers"] == []
        assert plan["last_cancellable_step"] == "create"
        assert plan["nodes"] == sorted({region["leader"] for region in made["regions"]})


async def test_given_a_change_under_way_when_planned_then_its_locks_are_in_the_way() -> None:
    async with leader() as one:
        await one.make()
        one.nodes.gate.clear()
        one.nodes.reached.clear()
        slow = (await one.client.delete(f"{TABLES}/t")).json()
        await one.nodes.reached.wait()

        plan = (await one.client.post(TABLES + DRY, json=spec("t"))).json()
        one.nodes.gate.set()

        assert plan["waits_for"] == [slow["id"]]
        held = {blocker["key"] for blocker in plan["blockers"] if blocker["kind"] == "lock"}
        assert held == {"name:main.public.t"}


async def test_given_what_stands_when_planned_then_there_is_nothing_to_do() -> None:
    async with leader() as one:
        await one.make()

        plan = await one.client.post(TABLES + DRY, json=spec("t", if_not_exists=True))

        assert (plan.json()["kind"], plan.json()["steps"]) == (None, [])
