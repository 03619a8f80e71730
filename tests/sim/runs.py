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
from tests.sim.planted.mistakes import BUGS, spies
from tests.sim.profiles import lived
from tests.sim.scenario import Outcome, Plot, live

HASHES = "0"
AT_ONCE = max(2, os.cpu_count() or 2)


class Hunt(NamedTuple):
    """The hunt for a planted mistake, and words of the violation that must be found."""

    bug: str
    check: str
    length: Length = SHORT
    first: int = FIRST_SHORT


@dataclass(frozen=True)
class Hunted:
    """The result of a hunt."""

    lives: int
    """The number that was lived."""
    is_found: bool
    cpu_s: float
    missed: frozenset[str]
    """Seams of the mistake that the code never came to."""


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

    def hunts(self, wanted: Sequence[Hunt], lives_max: int) -> list[Hunted]:
        """In order of *wanted*; each ends as soon as its check finds the mistake."""
        tasks = [self.pool.submit(_hunted, hunt, lives_max) for hunt in wanted]
        return [task.result() for task in tasks]

    def never_reached(self, lives: Sequence[Life]) -> frozenset[str]:
        """The seams of planted mistakes that the code comes to in none of the *lives*, which are
        lived without any mistake, until none is left."""
        left = spies().seams
        for life in lives:
            left &= self.pool.submit(_spied, life).result()
        return left


def _hunted(hunt: Hunt, lives_max: int) -> Hunted:
    began_s, bugs = _worked_s(), BUGS[hunt.bug]
    is_found, number, missed = False, 0, bugs.seams
    while not is_found and number < lives_max:
        life = Life(hunt.first + number, hunt.length)
        outcome = lived(life, bugs, until=hunt.check)
        is_found = any(hunt.check in text for text in outcome.violations)
        missed &= outcome.missed
        number += 1
    return Hunted(number, is_found, _worked_s() - began_s, missed)


def _worked_s() -> float:
    """Processor time of this process."""
    worked = os.times()
    return worked.user + worked.system


def _spied(life: Life) -> frozenset[str]:
    return lived(life, spies()).missed


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
