"""Memory that is asked for before it is taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasrv_base.concurrency.reservations import HeldBytes, Reservations
from metasrv_base.errors import Unavailable

PART = 100


def test_given_a_full_part_when_more_is_asked_then_it_is_refused_and_nothing_changed() -> None:
    part = Reservations("reads", PART)
    first, second = part.hold(60), part.hold(30)

    with pytest.raises(Unavailable, match="memory for reads is full") as refusal:
        second.grow(20)

    assert refusal.value.facts["limit_bytes"] == PART
    assert (second.bytes, part.bytes) == (30, 90)
    first.release()
    second.grow(20)
    assert part.bytes == 50


def test_given_an_empty_part_when_more_than_all_is_asked_then_it_is_taken_by_that_one_alone() -> (
    None
):
    part = Reservations("reads", PART)

    with part.hold(5 * PART), pytest.raises(Unavailable):
        part.hold(1)

    part.hold(1)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 150)), max_size=40))
def test_given_any_holders_when_they_grow_and_end_then_the_bound_holds_and_all_comes_back(
    calls: list[tuple[int, int]],
) -> None:
    """A size of 0 releases."""
    part = Reservations("reads", PART)
    held = [HeldBytes(part) for _ in range(5)]

    for number, size in calls:
        try:
            held[number].grow(size) if size else held[number].release()
        except Unavailable:
            assert part.bytes + size > PART
        holding = [one for one in held if one.bytes]
        assert part.bytes == sum(one.bytes for one in held)
        assert part.bytes <= PART or len(holding) == 1

    for one in held:
        one.release()
    assert part.bytes == 0
