"""The next item is made while the last one is handled: one at most, and nobody is left at work."""

import asyncio
from collections.abc import Generator
from threading import Event

import pytest

from metasrv_base.concurrency.look_ahead import LookAhead
from metasrv_base.errors import Unavailable

PATIENCE_S = 120


class Work:
    """Makes numbers, each of them when `may_make` says so."""

    def __init__(self, count: int = 3, fault_at: int | None = None) -> None:
        self.made: list[int] = []
        self.is_closed = False
        self.began = [Event() for _ in range(count)]
        self.may_make = Event()
        self._fault_at = fault_at

    def items(self) -> Generator[int]:
        try:
            for number, began in enumerate(self.began):
                began.set()
                assert self.may_make.wait(PATIENCE_S)
                if number == self._fault_at:
                    raise Unavailable(what="the disk")
                self.made.append(number)
                yield number
        finally:
            self.is_closed = True


async def reached(event: Event) -> bool:
    return await asyncio.to_thread(event.wait, PATIENCE_S)


async def test_given_an_item_in_hand_when_one_more_is_wanted_then_it_is_made_meanwhile() -> None:
    work = Work()
    work.may_make.set()
    ahead = LookAhead(work.items(), lambda: None)

    first = await ahead.take()
    ahead.begin()

    assert await reached(work.began[1])  # nobody takes it yet
    assert [first, await ahead.take(), await ahead.take(), await ahead.take()] == [0, 1, 2, None]
    ahead.close()


async def test_given_an_item_that_nobody_takes_when_time_passes_then_no_other_is_made() -> None:
    work = Work()
    work.may_make.set()
    ended: list[bool] = []
    ahead = LookAhead(work.items(), lambda: ended.append(work.is_closed))

    assert await ahead.take() == 0
    assert work.made == [0]
    ahead.begin()
    with pytest.raises(AssertionError):
        ahead.begin()
    assert await ahead.take() == 1

    assert work.made == [0, 1]
    ahead.close()
    assert ended == [True]


async def test_given_a_thread_at_work_when_closed_then_memory_is_held_until_it_ends() -> None:
    work = Work()
    ended = asyncio.Event()
    ahead = LookAhead(work.items(), ended.set)
    async with asyncio.TaskGroup() as group:
        taking = group.create_task(ahead.take())
        assert await reached(work.began[0])

        taking.cancel()
    ahead.close()

    assert not ended.is_set()
    assert not work.is_closed
    work.may_make.set()
    async with asyncio.timeout(PATIENCE_S):
        await ended.wait()
    assert work.is_closed
    assert work.made == [0]


async def test_given_an_item_that_fails_when_taken_then_it_raises_else_it_is_dropped() -> None:
    for is_taken in (True, False):
        work, ended = Work(fault_at=0), asyncio.Event()
        work.may_make.set()
        ahead = LookAhead(work.items(), ended.set)
        ahead.begin()
        if is_taken:
            with pytest.raises(Unavailable):
                await ahead.take()
        ahead.close()
        async with asyncio.timeout(PATIENCE_S):
            await ended.wait()
        assert work.is_closed
