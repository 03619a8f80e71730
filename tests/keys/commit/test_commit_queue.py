"""The queue of a committer: when a batch waits for more members, and for how long."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from keys.commit.commit_queue import EMPTY_TURNS_MAX, TURNS_MAX, CommitQueue


@dataclass(eq=False)
class Member:
    number: int
    answer: "asyncio.Future[None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


Queue = CommitQueue[Member]


async def turns_of(work: Coroutine[Any, Any, None]) -> int:
    """Turns of the event loop that *work* takes."""
    ended = asyncio.Task(work)
    turns = 0
    while not ended.done():
        await asyncio.sleep(0)
        turns += 1
    return turns


async def put(queue: Queue, *numbers: int) -> None:
    for number in numbers:
        await queue.put(Member(number))


def waiting(queue: Queue) -> list[int]:
    return [member.number for member in queue.waiting]


async def test_given_one_alone_when_filled_then_it_waits_for_nobody() -> None:
    queue = Queue()

    for number in (1, 2):
        await put(queue, number)
        assert await turns_of(queue.fill()) == 1
        assert [member.number for member in queue.take([0])] == [number]


async def test_given_several_when_more_arrive_in_each_turn_then_they_share_a_batch() -> None:
    queue = Queue()

    async def arrive() -> None:
        for number in range(3, 8):
            await put(queue, number)
            await asyncio.sleep(0)

    await put(queue, 1, 2)
    arriving = asyncio.Task(arrive())
    assert await turns_of(queue.fill()) <= 5 + EMPTY_TURNS_MAX + 1
    await arriving
    assert waiting(queue) == [1, 2, 3, 4, 5, 6, 7]


async def test_given_a_batch_of_several_when_the_first_of_the_next_comes_then_others_join_it() -> (
    None
):
    queue = Queue()

    async def late() -> None:
        await asyncio.sleep(0)
        await put(queue, 4)

    await put(queue, 1, 2)
    await queue.fill()
    queue.take([0, 1])
    await put(queue, 3)
    arriving = asyncio.Task(late())
    await queue.fill()
    await arriving
    assert waiting(queue) == [3, 4]


async def test_given_arrivals_without_end_when_filled_then_for_so_many_turns_only() -> None:
    queue = Queue()

    async def arrive() -> None:
        for number in range(1_000):
            await put(queue, number)
            await asyncio.sleep(0)

    arriving = asyncio.Task(arrive())
    await put(queue, 1_001, 1_002)
    assert TURNS_MAX <= await turns_of(queue.fill()) <= TURNS_MAX + 2
    arriving.cancel()


async def test_given_members_whose_callers_have_gone_when_filled_then_they_are_forgotten() -> None:
    queue = Queue()

    await put(queue, 1, 2, 3)
    filled = asyncio.Task(queue.fill())
    await asyncio.sleep(0)
    queue.waiting[1].answer.cancel()
    await filled
    assert waiting(queue) == [1, 3]
    await put(queue, 4)
    assert [member.number for member in queue.leave()] == [1, 3, 4]
    assert not queue.waiting
