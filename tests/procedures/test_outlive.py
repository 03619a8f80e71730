"""Who asks may hang up; the work goes on, and whoever stays is told what became of it."""

import asyncio

import pytest

from base.errors import Conflict, Unknown
from procedures.outlive import outlive

LOST = Unknown(term=7)


async def test_given_work_when_it_ends_then_its_answer_or_its_error_is_ours() -> None:
    async def told() -> str:
        return "done"

    async def refused() -> None:
        raise Conflict("stale-epoch")

    async with asyncio.TaskGroup() as tasks:
        assert await outlive(tasks, told, LOST) == "done"
        with pytest.raises(Conflict, match="stale-epoch"):
            await outlive(tasks, refused, LOST)


async def test_given_a_caller_that_hangs_up_then_the_work_is_done_all_the_same() -> None:
    goes_on, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await goes_on.wait()
        done.set()

    async with asyncio.TaskGroup() as tasks:
        caller = asyncio.create_task(outlive(tasks, work, LOST))
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        goes_on.set()

    assert done.is_set()


async def test_given_tasks_that_end_first_then_it_is_not_known_what_became_of_it() -> None:
    async def term() -> None:
        async with asyncio.TaskGroup() as tasks:
            callers.append(asyncio.create_task(outlive(tasks, asyncio.Event().wait, LOST)))
            await asyncio.sleep(0)  # it has asked; the work has not begun
            raise RuntimeError("it is over")

    callers: list[asyncio.Task[bool]] = []
    with pytest.raises(ExceptionGroup):
        await term()

    with pytest.raises(Unknown):
        await callers[0]
