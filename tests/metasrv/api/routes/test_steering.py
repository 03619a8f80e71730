"""Controls of procedures, locks and poisons, as operators ask for them."""

from typing import Any

import pytest

from procedures.engine.retry import UNDO_MS
from tests.metasrv.api.held_up import create_held_up, end_of
from tests.metasrv.api.rig import TABLES, Server, beat, leader, spec


async def post(one: Server, path: str, status: int = 202, **more: Any) -> dict[str, Any]:
    answer = await one.client.post(path, **more)
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_given_a_create_when_paused_and_resumed_then_each_is_answered_and_kept() -> None:
    async with leader() as one:
        where = await create_held_up(one)

        paused = await post(one, f"{where}/pause?by=anna&reason=lunch")
        again = await post(one, f"{where}/pause")
        one.nodes.gate.set()
        still = (await one.client.get(where)).json()
        resumed = await post(one, f"{where}/resume?by=anna")
        ended = await end_of(one, where)

        assert (paused["state"], again["state"], still["state"]) == ("paused",) * 3
        assert paused["allowed_actions"] == ["cancel", "resume"]
        assert resumed["state"] in ("running", "queued")
        assert ended["state"] == "succeeded"
        told = [(one["action"], one["by"], one["reason"]) for one in ended["controls"]]
        assert told == [("pause", "anna", "lunch"), ("resume", "anna", None)]


async def test_given_a_control_that_is_not_allowed_then_409_says_what_is() -> None:
    async with leader() as one:
        where = await create_held_up(one)

        throttled = await post(one, f"{where}/throttle", 409, json={"percent": 50})
        wrong = await post(one, f"{where}/throttle", 422, json={"percent": 96})

        assert throttled["code"] == "action-not-allowed"
        assert throttled["facts"]["allowed_actions"] == ["cancel", "pause"]
        assert wrong["code"] == "invalid-request"
        one.nodes.gate.set()


@pytest.mark.case("input 83")
async def test_given_what_runs_or_is_over_when_resumed_then_as_it_is_or_409() -> None:
    async with leader() as one:
        where = await create_held_up(one)

        running = await post(one, f"{where}/resume")
        one.nodes.gate.set()
        await end_of(one, where)
        over = await post(one, f"{where}/resume", 409)

        assert (running["state"], running["controls"]) == ("running", [])
        assert over["code"] == "action-not-allowed"


async def test_given_two_changes_of_one_name_then_the_locks_show_holder_and_queue() -> None:
    async with leader() as one:
        await one.make()
        one.nodes.reached.clear()
        one.nodes.gate.clear()
        dropping = (await one.client.delete(f"{TABLES}/t")).json()
        await one.nodes.reached.wait()
        creating = await post(one, TABLES, json=spec())

        first = (await one.client.get("/v1/locks?page_size=2")).json()
        token = first["next_page_token"]
        rest = (await one.client.get(f"/v1/locks?page_size=2&page_token={token}")).json()

        by_key = {lock["key"]: lock for lock in first["locks"] + rest["locks"]}
        name = by_key["name:main.public.t"]
        assert [p["procedure_id"] for p in name["holders"]] == [dropping["id"]]
        assert [p["procedure_id"] for p in name["queue"]] == [creating["id"]]
        assert {p["mode"] for p in name["holders"] + name["queue"]} == {"exclusive"}
        assert len(first["locks"]) == 2
        one.nodes.gate.set()


@pytest.mark.case("online 72")
async def test_given_an_undo_that_cannot_finish_then_a_poison_is_shown_and_cleared() -> None:
    async with leader() as one:
        one.nodes.failing = "disk-full"
        where = await create_held_up(one)
        await post(one, f"{where}/cancel")
        one.clock.ahead_ms += UNDO_MS + 1
        one.nodes.gate.set()
        while (body := (await one.client.get(where)).json())["state"] != "poisoned":
            await one.term.manager.changed(deadline_ms=200)

        (poison,) = (await one.client.get("/v1/poisons")).json()["poisons"]
        counted = (await one.client.get("/metrics")).text
        resource = f"table:{poison['resource']['id']}"
        refused = await post(one, TABLES, 409, json=spec())
        dumb = await one.client.delete(f"/v1/poisons/{resource}")
        cleared = await one.client.delete(f"/v1/poisons/{resource}?reason=regions+deleted&by=anna")
        gone = await one.client.get(f"/v1/poisons/{resource}")

        assert body["allowed_actions"] == ["retry"]
        assert 'metasrv_procedures_living{state="poisoned"} 1.0' in counted
        assert poison["procedure_id"] == body["id"]
        assert refused["code"] == "table-poisoned"
        assert dumb.status_code == 422
        assert (cleared.status_code, cleared.json()["state"]) == (200, "cancelled")
        assert cleared.json()["controls"][-1]["reason"] == "regions deleted"
        assert gone.status_code == 404
        one.nodes.failing = None
        one.term.nodes.heartbeat(beat("dn-1", 2))
        assert (await one.make())["name"] == "t"
