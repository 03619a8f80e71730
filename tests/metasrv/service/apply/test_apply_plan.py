"""Drawn pairs of desired states, applied one after the other by a real server: the second then
stands, whatever the first was."""

import asyncio
from typing import Any

import pytest
from hypothesis import assume, given

from metasrv.service.declared.declared_errors import declared_errors
from metasrv_base.wire.language.declared import DesiredState
from tests.metasrv.api.rig import LONG_LEASE_MS, Server, TermLimits, leader
from tests.metasrv.service.apply.requests import exported, plan, post
from tests.metasrv.service.declared.drawn_states import pairs


async def brought(one: Server, declared: DesiredState) -> bool:
    """Whether the state stands; False: it differs in what stays as it is, and nothing was done."""
    state: Any = declared.model_dump(mode="json", by_alias=True, exclude_unset=True)
    before = one.version
    answer = await post(one, state, prune=True, allow_destructive=True)
    if answer.status_code == 422 and answer.json()["code"] == "not-in-place":
        assert one.version == before
        return False
    assert answer.status_code == 200, (answer.text, state)
    assert (await plan(one, state, prune=True))["operations"] == []
    for catalog in declared.catalogs:
        back = await exported(one, catalog=catalog.name)
        assert (await plan(one, back, prune=True))["operations"] == []
        assert await exported(one, catalog=catalog.name) == back
    return True


async def both(first: DesiredState, second: DesiredState) -> None:
    async with leader(of_term=TermLimits(lease_ms=LONG_LEASE_MS)) as one:
        if await brought(one, first):
            await brought(one, second)


@given(pairs())
@pytest.mark.slow
def test_given_two_states_when_applied_then_each_stands_and_is_exported_as_it_is(
    drawn: tuple[DesiredState, DesiredState],
) -> None:
    first, second = drawn
    assume(not [*declared_errors(first), *declared_errors(second)])
    asyncio.run(both(first, second))
