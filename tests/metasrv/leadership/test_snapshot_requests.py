"""Requests for a snapshot wait for its maker, within bounds."""

import asyncio

import pytest

from metasrv.leadership.snapshot_requests import WAITING_MAX, Compacted, SnapshotRequests
from metasrv_base.errors import Unavailable, Unknown

COMPACTED = Compacted(version=7, made=True, floor=3, deleted=2)


async def test_given_nobody_who_makes_one_when_it_takes_too_long_then_perhaps_done() -> None:
    requests = SnapshotRequests(answer_ms_max=1)

    with pytest.raises(Unknown):
        await requests.ask(drops_history=False)

    late = await requests.next(1_000)
    assert late is not None
    late.succeed(COMPACTED)  # nobody waits any more, and nothing is raised


async def test_given_a_request_when_it_is_answered_then_it_is_told() -> None:
    requests = SnapshotRequests()

    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(requests.ask(drops_history=True))
        request = await requests.next(1_000)
        assert request is not None
        request.succeed(COMPACTED)

    assert request.drops_history
    assert asking.result() == COMPACTED


async def test_given_too_many_that_wait_when_one_more_comes_then_it_was_not_done() -> None:
    requests = SnapshotRequests(answer_ms_max=1)
    for _ in range(WAITING_MAX):
        with pytest.raises(Unknown):
            await requests.ask(drops_history=False)

    with pytest.raises(Unavailable):
        await requests.ask(drops_history=False)
