"""Many seeds, some at a time, in processes of their own, where a seed is always the same history.

A process fixes how texts are hashed when it starts, and sets of texts are in that order.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from tests.sim.planted import BUGS
from tests.sim.plot import Outcome, live

HASHES = "0"
AT_ONCE = 2


def lives(seeds: Sequence[int]) -> list[Outcome]:
    """In order of *seeds*."""
    with _processes() as pool:
        return list(pool.map(live, seeds))


def hunts(wanted: Sequence[tuple[str, str]], seeds_max: int) -> list[int | None]:
    """Of each planted mistake and the check that is to find it: after how many seeds it did."""
    with _processes() as pool:
        tasks = [pool.submit(_hunted, name, check, seeds_max) for name, check in wanted]
        return [task.result() for task in tasks]


def _hunted(name: str, check: str, seeds_max: int) -> int | None:
    for seed in range(1, seeds_max + 1):
        found = live(seed, BUGS[name], until=check).violations
        if any(check in text for text in found):
            return seed
    return None


@contextmanager
def _processes() -> Iterator[ProcessPoolExecutor]:
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = HASHES  # read by a process at its start
    try:
        with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
            yield pool
    finally:
        if before is None:
            del os.environ["PYTHONHASHSEED"]
        else:
            os.environ["PYTHONHASHSEED"] = before
