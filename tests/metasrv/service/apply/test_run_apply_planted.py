"""Planted bugs of apply: each makes a plan that was looked at mean something else."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from metasrv.service.apply import apply_plan, run_apply
from metasrv.service.declared import matching, steps
from tests.metasrv.api.rig import TABLES, Server, leader
from tests.metasrv.service.apply.requests import applied, desired, plan, post

TABLE: dict[str, Any] = {
    "name": "orders",
    "columns": [
        {"name": "id", "type": "int64", "nullable": False},
        {"name": "price", "type": "int64"},
    ],
    "primary_key": ["id"],
    "partition": {"by": "hash", "columns": ["id"], "count": 1},
}
WIDER = {**TABLE, "columns": [*TABLE["columns"], {"name": "note", "type": "string"}]}
NARROWER = {**TABLE, "columns": TABLE["columns"][:1]}


async def other_operations(one: Server) -> None:
    """The column that the plan adds was dropped from a wider table, which others have made."""
    await applied(one, desired(TABLE))
    seen = await plan(one, desired(NARROWER))
    await applied(one, desired(WIDER))
    answer = await post(one, desired(NARROWER), plan_hash=seen["plan_hash"], allow_destructive=True)
    assert answer.status_code == 409, "another plan than the one that was looked at was carried out"


async def another_table(one: Server) -> None:
    """The same operation, at a table of that name that others have made meanwhile."""
    await applied(one, desired(TABLE))
    seen = await plan(one, desired(WIDER))
    gone = await one.client.delete(f"{TABLES}/orders", headers={"prefer": "wait=60"})
    assert gone.status_code in (200, 204), gone.text
    await applied(one, desired(TABLE))
    answer = await post(one, desired(WIDER), plan_hash=seen["plan_hash"])
    assert answer.status_code == 409, "a plan was carried out at a table it was not made for"


async def lost_values(one: Server) -> None:
    await applied(one, desired(TABLE))
    answer = await post(one, desired(NARROWER))
    assert answer.status_code == 422, "values were deleted though nobody allowed it"


async def renamed(one: Server) -> None:
    await applied(one, desired(TABLE))
    before = (await one.client.get(f"{TABLES}/orders")).json()["id"]
    await post(one, desired({**TABLE, "name": "sales", "renamed_from": "orders"}))
    after = (await one.client.get(f"{TABLES}/sales")).json().get("id")
    assert after == before, "a table that was renamed is another one, without its rows"


def of_operations_alone(shown: Any, *_: Any) -> str:
    return steps.digest_of(shown)


@dataclass(frozen=True)
class Planted:
    target: object
    name: str
    faulty: Any
    check: Callable[[Server], Awaitable[None]]
    words: str
    """Words of the check that is to find it."""


PLANTED: Mapping[str, Planted] = {
    "apply without comparing the plan hash": Planted(
        run_apply._Apply, "_must_be_it", lambda *_: None, other_operations, "another plan"
    ),
    "a plan hash without the objects": Planted(
        apply_plan, "digest_of", of_operations_alone, another_table, "not made for"
    ),
    "a destructive plan that nobody allowed": Planted(
        run_apply, "must_be_allowed", lambda _: None, lost_values, "nobody allowed"
    ),
    "a declared rename taken for a new table": Planted(
        matching, "_claims", lambda *_: {}, renamed, "another one"
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
async def test_given_a_planted_bug_of_apply_when_its_check_runs_then_it_is_found(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = PLANTED[bug]
    async with leader() as sound:
        await planted.check(sound)

    monkeypatch.setattr(planted.target, planted.name, planted.faulty)
    async with leader() as faulty:
        with pytest.raises(AssertionError, match=planted.words):
            await planted.check(faulty)
