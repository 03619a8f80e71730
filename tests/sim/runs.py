"""Many seeds, some at a time, in processes of their own, where a seed is always the same history.

A process fixes how texts are hashed when it starts, and sets of texts are in that order.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

from tests.sim.cluster.world import World
from tests.sim.length import FIRST_SHORT, SHORT, Length, Life
from tests.sim.planted.mistakes import BUGS
from tests.sim.profiles import lived
from tests.sim.scenario import Outcome, Plot, live

HASHES = "0"
AT_ONCE = 2


class Hunt(NamedTuple):
    """The hunt for a planted mistake, and words of the violation that must be found."""

    bug: str
    check: str
    length: Length = SHORT
    first: int = FIRST_SHORT


@dataclass(frozen=True)
class Processes:
    """They live over many seeds: to start one costs as much as a seed."""

    pool: ProcessPoolExecutor

    def lives(
        self, lives: Sequence[Life], plot: Callable[[World, Life], Plot] | None = None
    ) -> list[Outcome]:
        """In order of *lives*. *plot*: instead of that of their lengths."""
        living = lived if plot is None else partial(live, plot=plot)
        return list(self.pool.map(living, lives))

    def hunts(self, wanted: Sequence[Hunt], lives_max: int) -> list[int | None]:
        """For each, after how many lives it was found."""
        tasks = [self.pool.submit(_hunted, hunt, lives_max) for hunt in wanted]
        return [task.result() for task in tasks]


def _hunted(hunt: Hunt, lives_max: int) -> int | None:
    for number in range(lives_max):
        life = Life(hunt.first + number, hunt.length)
        found = lived(life, BUGS[hunt.bug], until=hunt.check).violations
        if any(hunt.check in text for text in found):
            return number + 1
    return None


@contextmanager
def processes() -> Iterator[Processes]:
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = HASHES  # read by a process at its start
    try:
        with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
            yield Processes(pool)
    finally:
        if before is None:
            del os.environ["PYTHONHASHSEED"]
        else:
            os.environ["PYTHONHASHSEED"] = before
