"""Full collections of garbage are bounded by what is new, not by what is alive."""

import gc
from collections.abc import Iterator

import pytest

from metasrv.server import collector

SEEN_MAX = 17_500  # objects in one pass; at 2.4 us each, as seen on a busy machine, 42 ms
UNDER_WAY = 6_000  # objects of 32 creates that wait for one commit: 190 each


@pytest.fixture
def collecting() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.callbacks.remove(collector.set_aside)
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("collecting")
def test_given_objects_that_survive_when_more_come_then_a_full_collection_sees_those_alone() -> (
    None
):
    collector.begin()
    kept = [[number] for number in range(100_000)]
    gc.collect()

    kept += [[number] for number in range(1_000)]
    seen = len(gc.get_objects())

    assert seen < 50_000, "all objects that a full collection would look through"
    assert len(kept) == 101_000


@pytest.mark.usefixtures("collecting")
def test_given_a_full_collection_then_garbage_of_before_is_freed_by_it() -> None:
    class Node:
        freed = 0

        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            Node.freed += 1

    collector.begin()
    for _ in range(100):
        Node()

    gc.collect()

    assert Node.freed == 100


@pytest.mark.slow
@pytest.mark.usefixtures("collecting")
def test_given_many_objects_that_stay_then_no_pass_looks_through_more_than_the_thresholds_say() -> (
    None
):
    sizes: list[int] = []

    def measure(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            made = range(info["generation"] + 1)
            sizes.append(sum(len(gc.get_objects(generation=which)) for which in made))

    loaded = [[number] for number in range(1_000_000)]
    gc.collect()
    collector.begin()
    gc.callbacks.append(measure)
    try:
        kept = [[number] for number in range(2_000_000)]
    finally:
        gc.callbacks.remove(measure)

    assert (len(loaded), len(kept)) == (1_000_000, 2_000_000)
    assert max(sizes) <= SEEN_MAX


@pytest.mark.usefixtures("collecting")
def test_given_requests_that_come_and_wait_then_no_pass_looks_through_more_than_the_bound() -> None:
    """Nine of ten objects end soon, so survivors come to SURVIVORS_MAX slowly."""
    sizes: list[int] = []

    def measure(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] > 0:
            made = range(info["generation"] + 1)
            sizes.append(sum(len(gc.get_objects(generation=which)) for which in made))

    collector.begin()
    gc.callbacks.append(measure)
    try:
        waiting = [[[number] for number in range(10)][:1] for _ in range(50_000)]
    finally:
        gc.callbacks.remove(measure)

    assert len(waiting) == 50_000
    assert len(sizes) > 2
    assert max(sizes) <= SEEN_MAX


@pytest.mark.usefixtures("collecting")
@pytest.mark.slow
def test_given_waves_of_requests_that_leave_nothing_then_nothing_is_looked_through() -> None:
    passes: list[int] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            passes.append(info["generation"])

    gc.collect()
    collector.begin()
    gc.callbacks.append(count)
    try:
        for _ in range(100):
            under_way = [[number] for number in range(UNDER_WAY)]
            del under_way
    finally:
        gc.callbacks.remove(count)

    assert passes == []


@pytest.mark.usefixtures("collecting")
def test_given_cycles_that_are_alive_at_a_full_collection_when_they_end_then_they_are_freed() -> (
    None
):
    class Attempt:
        freed = 0

        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            Attempt.freed += 1

    collector.begin()
    under_way = [Attempt() for _ in range(100)]
    gc.collect()

    del under_way
    gc.collect()

    assert Attempt.freed == 100
