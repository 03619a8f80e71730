"""Many lives at once, in as many processes as there are cores; each is as it would be alone."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 8  # lives that a process is handed at once: a quarter of a second


def side_by_side(work: Callable[[T], R], given: Sequence[T]) -> list[R]:
    """Maps *work* over *given*, in order; raises what it raises. Arguments and results are pickled.

    The processes are forked, so that they share our hash seed: one seed, one history.
    """
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as processes:
        return list(processes.map(work, given, chunksize=CHUNK))
