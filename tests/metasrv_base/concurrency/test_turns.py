"""Long pure work that takes turns."""

import asyncio
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from metasrv_base.concurrency.turns import TURN, Turns, at_once, by_turns, slices, sorting


def total(numbers: list[int], size: int) -> Turns[int]:
    found = 0
    for some in slices(numbers, size):
        found += sum(some)
        yield
    return found


@given(numbers=st.lists(st.integers()), size=st.integers(1, 7))
def test_given_items_then_slices_are_all_of_them_in_order_and_short(
    numbers: list[int], size: int
) -> None:
    found = list(slices(numbers, size))

    assert [one for some in found for one in some] == numbers
    assert all(len(some) == size for some in found[:-1])
    assert all(0 < len(some) <= size for some in found)


@given(numbers=st.lists(st.integers()), size=st.integers(1, 7))
def test_given_work_then_both_ways_come_to_the_same(numbers: list[int], size: int) -> None:
    assert at_once(total(numbers, size)) == sum(numbers)
    assert asyncio.run(by_turns(total(numbers, size))) == sum(numbers)


@given(sizes=st.lists(st.integers(0, 3 * TURN), min_size=1, max_size=3), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_given_items_when_sorted_in_turns_then_as_at_once_and_a_turn_has_few_of_them(
    sizes: list[int], seed: int
) -> None:
    rng = Random(seed)
    numbers = [(rng.randrange(500), place) for size in sizes for place in range(size)]
    work, looked_at, result = [0], list[int](), None

    def key(item: tuple[int, int]) -> bytes:
        work[0] += 1
        return b"%03d" % item[0]

    turns = sorting(numbers, key)
    while result is None:
        work[0] = 0
        try:
            next(turns)
        except StopIteration as over:
            result = over.value
        looked_at.append(work[0])

    assert list(result) == sorted(numbers, key=key)
    assert max(looked_at) <= TURN + len(numbers) / TURN + 1, "and the first of each run"


async def test_given_work_by_turns_then_others_run_between_two_of_them() -> None:
    turns, seen = [0], list[int]()

    def counted() -> Turns[None]:
        for _ in range(5):
            turns[0] += 1
            yield

    async def other() -> None:
        for _ in range(5):
            seen.append(turns[0])
            await asyncio.sleep(0)

    await asyncio.gather(by_turns(counted()), other())

    assert seen == [1, 2, 3, 4, 5]
