"""`?dry_run=true` of what operators do at once: the answer that the real request gives next."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx
import pytest

from procedures.engine.retry import UNDO_MS
from tests.metasrv.api.held_up import create_held_up, end_of
from tests.metasrv.api.rig import TABLES, Server, leader, spec

# What only time tells apart, and what runs on meanwhile.
MOVING = {
    "at",
    "changed_at",
    "expires_at",
    "finished_at",
    "heard_ms_ago",
    "lease_left_ms",
    "phi",
    "waiting_for",
}


def still(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: still(one) for name, one in value.items() if name not in MOVING}
    return [still(one) for one in value] if isinstance(value, list) else value


async def foreseen(one: Server, method: str, path: str, body: Any = None) -> httpx.Response:
    """The answer of a dry run, which stores nothing."""
    before = one.kv.revision, one.term.settings.stored
    sign = "&" if "?" in path else "?"

    answer = await one.client.request(method, f"{path}{sign}dry_run=true", json=body)

    assert (one.kv.revision, one.term.settings.stored) == before
    return answer


async def foreseen_then_done(one: Server, method: str, path: str, body: Any = None) -> Any:
    """Plans a request and then makes it; returns both answers."""
    would = await foreseen(one, method, path, body)
    done = await one.client.request(method, path, json=body)

    assert would.status_code == 200, would.text
    assert done.status_code in (200, 202), done.text
    assert still(would.json()) == still(done.json())
    return done.json()


@pytest.mark.parametrize(
    ("path", "body", "shown"),
    [
        ("/v1/settings/running_max", {"value": 7}, {"value": 7, "version": 1}),
        ("/v1/settings/running_max", {"value": 7, "expected_version": 0}, {"version": 1}),
        ("/v1/cluster/maintenance", {"enabled": True, "reason": "racks"}, {"enabled": True}),
        ("/v1/cluster/maintenance", {"enabled": True, "expires_in_s": 60}, {"version": 1}),
        ("/v1/cluster/procedures", {"paused": True, "reason": "backup"}, {"paused": True}),
    ],
)
async def test_given_a_setting_when_put_next_then_its_dry_run_has_shown_it(
    path: str, body: dict[str, Any], shown: dict[str, Any]
) -> None:
    async with leader() as one:
        done = await foreseen_then_done(one, "PUT", path, body)

        assert shown.items() <= done.items()


async def test_given_the_same_value_when_tried_out_then_its_version_stays() -> None:
    async with leader() as one:
        path, body = "/v1/settings/running_max", {"value": 7}
        await one.client.put(path, json=body)

        again = await foreseen_then_done(one, "PUT", path, body)

        assert again["version"] == 1


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/v1/settings/running_max", {"value": 0}, 422, "invalid-request"),
        ("/v1/settings/running_max", {"value": 7, "expected_version": 3}, 412, "version-mismatch"),
        ("/v1/settings/colour", {"value": "red"}, 404, "not-found"),
    ],
)
async def test_given_what_would_be_refused_when_tried_out_then_it_is(
    path: str, body: dict[str, Any], status: int, code: str
) -> None:
    async with leader() as one:
        answer = await foreseen(one, "PUT", path, body)

        assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_given_a_node_when_cordoned_next_then_its_dry_run_has_shown_it() -> None:
    async with leader() as one:
        cordoned = await foreseen_then_done(
            one, "POST", "/v1/nodes/dn-1/cordon", {"reason": "a new disk"}
        )
        lifted = await foreseen_then_done(one, "POST", "/v1/nodes/dn-1/uncordon")
        unknown = await foreseen(one, "POST", "/v1/nodes/dn-9/cordon", {"reason": "x"})

        assert cordoned["cordon"]["reason"] == "a new disk"
        assert lifted["cordon"] is None
        assert unknown.status_code == 404


Given = Callable[[Server], Awaitable[str]]


async def running(one: Server) -> str:
    return await create_held_up(one)


async def queued(one: Server) -> str:
    """There is one place, and another has it: it never began."""
    await create_held_up(one, "first")
    await one.client.put("/v1/settings/running_max", json={"value": 1})
    answer = await one.client.post(TABLES, json=spec())
    return str(answer.headers["location"])


async def waiting(one: Server) -> str:
    """For the lock of its name."""
    await create_held_up(one)
    answer = await one.client.post(TABLES, json=spec())
    return str(answer.headers["location"])


async def retrying(one: Server) -> str:
    one.nodes.failing = "disk-full"
    answer = await one.client.post(TABLES, json=spec())
    where = str(answer.headers["location"])
    return await until_it_is(one, where, "retrying")


async def poisoned(one: Server) -> str:
    one.nodes.failing = "disk-full"
    where = await create_held_up(one)
    await one.client.post(f"{where}/cancel")
    one.clock.ahead_ms += UNDO_MS + 1
    one.nodes.gate.set()
    return await until_it_is(one, where, "poisoned")


async def until_it_is(one: Server, where: str, state: str) -> str:
    while (await one.client.get(where)).json()["state"] != state:
        await one.term.manager.changed(deadline_ms=200)
    return where


def after(*controls: str, given: Given = running) -> Given:
    async def made(one: Server) -> str:
        where = await given(one)
        for control in controls:
            await one.client.post(f"{where}/{control}")
        return where

    return made


@pytest.mark.parametrize(
    ("given", "control", "state"),
    [
        (running, "pause", "paused"),
        (running, "cancel", "cancelling"),
        (running, "resume", "running"),
        (after("pause"), "resume", "running"),
        (after("pause"), "pause", "paused"),
        (after("pause"), "cancel", "cancelling"),
        (after("cancel"), "cancel", "cancelling"),
        (queued, "pause", "paused"),
        (queued, "cancel", "cancelled"),
        (after("pause", given=queued), "resume", "queued"),
        (waiting, "cancel", "cancelled"),
        (after("pause", given=waiting), "resume", "waiting"),
    ],
)
async def test_given_a_procedure_when_steered_next_then_its_dry_run_has_shown_it(
    given: Given, control: str, state: str
) -> None:
    async with leader() as one:
        where = await given(one)

        done = await foreseen_then_done(one, "POST", f"{where}/{control}?by=anna&reason=lunch")

        assert done["state"] == state
        one.nodes.gate.set()


async def test_given_a_procedure_that_retries_when_tried_out_then_it_is_not_woken() -> None:
    async with leader() as one:
        where = await retrying(one)

        would = await foreseen(one, "POST", f"{where}/retry")

        assert (would.status_code, would.json()["state"]) == (200, "retrying")
        one.nodes.failing = None
        await one.client.post(f"{where}/retry")
        assert (await end_of(one, where))["state"] == "succeeded"


@pytest.mark.parametrize("control", ["throttle", "retry"])
async def test_given_a_control_that_is_not_allowed_when_tried_out_then_409(control: str) -> None:
    async with leader() as one:
        where = await running(one)
        body = {"percent": 50} if control == "throttle" else None

        answer = await foreseen(one, "POST", f"{where}/{control}", body)

        assert (answer.status_code, answer.json()["code"]) == (409, "action-not-allowed")
        one.nodes.gate.set()


async def test_given_a_poison_when_cleared_next_then_its_dry_run_has_shown_it() -> None:
    async with leader() as one:
        where = await poisoned(one)
        (poison,) = (await one.client.get("/v1/poisons")).json()["poisons"]
        resource = f"/v1/poisons/table:{poison['resource']['id']}"

        again = await foreseen(one, "POST", f"{where}/retry")
        cleared = await foreseen_then_done(one, "DELETE", f"{resource}?reason=by+hand&by=anna")

        assert (again.status_code, again.json()["state"]) == (200, "cancelling")
        assert (cleared["state"], cleared["controls"][-1]["reason"]) == ("cancelled", "by hand")
