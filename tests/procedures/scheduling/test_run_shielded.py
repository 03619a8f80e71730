"""A caller may hang up; the work goes on, and callers that stay are told the result."""

import asyncio

import pytest

from metasrv_base.errors import Conflict, Unknown
from procedures.scheduling.run_shielded import Begin, run_shielded

LOST = Unknown(term=7)


async def test_given_work_when_it_ends_then_its_answer_or_its_error_is_ours() -> None:
    async def told() -> str:
        return "done"

    async def refused() -> None:
        raise Conflict("stale-epoch")

    async with asyncio.TaskGroup() as tasks:
        assert await run_shielded(tasks.create_task, told, LOST) == "done"
        with pytest.raises(Conflict, match="stale-epoch"):
            await run_shielded(tasks.create_task, refused, LOST)


async def test_given_a_caller_that_hangs_up_then_the_work_is_done_all_the_same() -> None:
    goes_on, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await goes_on.wait()
        done.set()

    async with asyncio.TaskGroup() as tasks:
        caller = tasks.create_task(run_shielded(tasks.create_task, work, LOST))
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.wait([caller])
        goes_on.set()

    assert caller.cancelled()
    assert done.is_set()


async def test_given_an_owner_that_ends_first_then_it_is_not_known_what_became_of_it() -> None:
    async def ask(begin: Begin) -> None:
        with pytest.raises(Unknown):
            await run_shielded(begin, asyncio.Event().wait, LOST)

    async def term(callers: asyncio.TaskGroup) -> None:
        async with asyncio.TaskGroup() as owner:
            callers.create_task(ask(owner.create_task))
            await asyncio.sleep(0)  # it has asked; the work has not begun
            raise RuntimeError("it is over")

    async with asyncio.TaskGroup() as callers:
        with pytest.raises(ExceptionGroup):
            await term(callers)
