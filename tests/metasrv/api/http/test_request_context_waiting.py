"""Waits: of a client for its procedure, of a procedure for a lock, of a judgement for both."""

import asyncio
from typing import Any

import pytest

from tests.metasrv.api.held_up import create_held_up, end_of
from tests.metasrv.api.rig import TABLES, TermLimits, leader, spec

WAIT = {"Prefer": "wait=10"}


async def test_given_a_slow_create_when_patience_ends_then_202_and_what_it_waits_for() -> None:
    async with leader() as one:
        where = await create_held_up(one)

        shown = await one.client.get(where)

        body = shown.json()
        assert (body["state"], body["done"], body["cancelable"]) == ("running", False, True)
        assert body["allowed_actions"] == ["cancel", "pause"]
        assert [(wait["kind"], wait["holder"]) for wait in body["waiting_for"]] == [
            ("node", "dn-1")
        ]
        assert shown.headers["retry-after"] == "1"
        one.nodes.gate.set()


async def test_given_a_long_poll_when_the_procedure_ends_then_it_is_answered() -> None:
    async with leader() as one:
        where = await create_held_up(one)
        tag = (await one.client.get(where)).headers["etag"]
        same = await one.client.get(where, headers={"If-None-Match": tag})
        assert same.status_code == 304

        async with asyncio.TaskGroup() as tasks:
            poll = tasks.create_task(end_of(one, where))
            one.nodes.gate.set()

        body = poll.result()
        assert (body["state"], body["catalog_version"]) == ("succeeded", one.version)
        assert [beat["step"] for beat in body["timeline"]] == ["create"]
        assert body["error"] is None


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.case("catalog 138")
async def test_given_somebody_waits_when_the_server_is_told_to_end_then_it_answers(
    method: str,
) -> None:
    """A long poll, or a control that waits for the end of what it steers."""
    async with leader() as one, asyncio.timeout(120):
        where = await create_held_up(one)
        tag = (await one.client.get(where)).headers["etag"]
        path = where if method == "GET" else f"{where}/cancel"
        headers = {"If-None-Match": tag, "Prefer": "wait=60"}

        async with asyncio.TaskGroup() as tasks:
            waits = tasks.create_task(one.client.request(method, path, headers=headers))
            await one.term.manager.changed(deadline_ms=100)
            one.state.stop()

        assert waits.result().status_code == (304 if method == "GET" else 202)
        one.nodes.gate.set()


async def test_given_a_read_that_waits_when_the_procedure_ends_then_its_end_is_told() -> None:
    async with leader() as one:
        where = await create_held_up(one)

        async with asyncio.TaskGroup() as tasks:
            waits = tasks.create_task(one.client.get(where, headers=WAIT))
            await one.client.get(where)
            one.nodes.gate.set()

        assert (waits.result().json()["state"], waits.result().status_code) == ("succeeded", 200)
        assert waits.result().headers["preference-applied"] == "wait=10"


async def test_given_a_drop_under_way_when_the_table_is_dropped_again_then_it_is_the_same() -> None:
    async with leader() as one:
        await one.make()
        one.nodes.reached.clear()
        one.nodes.gate.clear()
        first = await one.client.delete(f"{TABLES}/t")
        await one.nodes.reached.wait()

        again = await one.client.delete(f"{TABLES}/t")
        at_once = await one.client.delete(f"{TABLES}/t?on_conflict=fail")
        async with asyncio.TaskGroup() as tasks:
            waits = tasks.create_task(one.client.delete(f"{TABLES}/t", headers=WAIT))
            one.nodes.gate.set()

        assert (first.status_code, again.status_code) == (202, 202)
        assert first.headers["location"] == again.headers["location"]
        assert (at_once.status_code, at_once.json()["code"]) == (409, "object-locked")
        assert waits.result().status_code == 204


async def test_given_a_running_create_when_the_name_is_used_then_its_end_decides() -> None:
    async with leader() as one:
        await create_held_up(one)

        at_once = await one.client.delete(f"{TABLES}/t")
        assert (at_once.status_code, at_once.json()["code"]) == (409, "object-locked")
        assert at_once.json()["blocked_by"][0]["kind"] == "create_table"
        async with asyncio.TaskGroup() as tasks:
            drop = tasks.create_task(one.client.delete(f"{TABLES}/t", headers=WAIT))
            one.nodes.gate.set()

        assert drop.result().status_code == 204


@pytest.mark.case("input 58")
async def test_given_a_busy_table_when_a_second_change_comes_then_it_queues() -> None:
    async with leader() as one:
        await one.make()
        one.nodes.reached.clear()
        one.nodes.gate.clear()
        await one.client.delete(f"{TABLES}/t")
        await one.nodes.reached.wait()
        await one.client.post(TABLES, json=spec())  # the name is free: it queues for the lock

        listed = (await one.client.get("/v1/procedures?state=waiting")).json()["procedures"]
        (waiting,) = [body for body in listed if body["kind"] == "create_table"]
        assert {wait["kind"] for wait in waiting["waiting_for"]} == {"lock"}
        refused = await one.client.post(
            f"{TABLES}?on_conflict=fail", json=spec(), headers={"Idempotency-Key": "other"}
        )
        assert (refused.status_code, refused.json()["code"]) == (409, "object-locked")

        one.nodes.gate.set()
        ended = await end_of(one, f"/v1/procedures/{waiting['id']}")
        assert (ended["state"], ended["waiting_for"]) == ("succeeded", [])


@pytest.mark.case("input 51")
async def test_given_a_queued_drop_of_a_schema_when_a_table_is_created_in_it_then_409() -> None:
    async with leader() as one:
        made = await one.client.post("/v1/catalogs/main/schemas", json={"name": "s"}, headers=WAIT)
        assert made.status_code == 201, made.text
        one.nodes.gate.clear()
        tables = "/v1/catalogs/main/schemas/s/tables"
        await one.client.post(tables, json=spec("first"))
        dropping = await one.client.delete("/v1/catalogs/main/schemas/s")
        assert dropping.status_code == 202

        late = await one.client.post(tables, json=spec("second"))

        assert (late.status_code, late.json()["code"]) == (409, "being-dropped")
        assert late.json()["procedure_id"] == dropping.json()["id"]
        one.nodes.gate.set()


@pytest.mark.case("online 57")
async def test_given_two_creates_of_one_name_when_the_first_ends_then_the_second_is_refused() -> (
    None
):
    """It was right when it was judged; under its locks it is not, and its client hears why."""
    async with leader() as one:
        await create_held_up(one)

        async with asyncio.TaskGroup() as tasks:
            second = tasks.create_task(one.client.post(TABLES, json=spec(), headers=WAIT))
            queued: list[dict[str, Any]] = []
            while not queued:
                listed = await one.client.get("/v1/procedures?state=waiting")
                queued = listed.json()["procedures"]
            one.nodes.gate.set()

        answer = second.result()
        assert (answer.status_code, answer.json()["code"]) == (409, "already-exists")
        assert answer.json()["procedure_id"] == queued[0]["id"]
        ended = await end_of(one, f"/v1/procedures/{queued[0]['id']}")
        assert (ended["state"], ended["error"]["code"]) == (
            "rolled_back",
            "already-exists",
        )


@pytest.mark.case("input 82")
async def test_given_a_running_create_when_cancelled_then_it_is_undone_and_says_so() -> None:
    async with leader() as one:
        where = await create_held_up(one)

        cancelled = await one.client.post(f"{where}/cancel")
        again = await one.client.post(f"{where}/cancel")
        one.nodes.gate.set()
        ended = await end_of(one, where)
        late = await one.client.post(f"{where}/cancel")

        assert (cancelled.status_code, again.status_code) == (202, 202)
        assert cancelled.json()["state"] == "cancelling"
        assert cancelled.json()["allowed_actions"] == ["retry"]
        assert (ended["state"], ended["result"]) == ("cancelled", None)
        assert (late.status_code, late.json()["code"]) == (409, "action-not-allowed")
        assert (await one.client.get(f"{TABLES}/t")).status_code == 404


async def test_given_a_full_queue_when_another_comes_then_429() -> None:
    async with leader(of_term=TermLimits(queue_max=1)) as one:
        await create_held_up(one)

        answer = await one.client.post(TABLES, json=spec("u"))

        assert (answer.status_code, answer.json()["code"]) == (429, "too-many-procedures")
        assert int(answer.headers["retry-after"]) > 0
        one.nodes.gate.set()
