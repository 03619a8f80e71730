"""The garbage collector of a server: no pass of it looks through more than was made lately.

Python's full collection looks through every object that is alive: 100 ms for the catalog of some
thousand tables, during which no heartbeat is answered. Once many have survived one they are set
aside, so the next looks only through what came after (decisions 149 and 155).
"""

import gc
from collections.abc import Mapping

THRESHOLDS = (6_500, 0, 0)
"""New objects before the youngest are looked through (by default 700, far too often for us): more
than 32 requests have under way, which else are looked through at each wave of them. Every second
pass is of two generations, every third of all: a pass sees some 13,000 new objects at most."""
SURVIVORS_MAX = 4_000
"""Objects that stay to be looked through. So no pass sees more than some 17,000, with four
references each: 0.25 us on a quiet machine, and up to 2 us where others take its caches."""


def set_aside(phase: str, info: Mapping[str, int]) -> None:
    """A member of gc.callbacks: after a pass that leaves many survivors in the oldest generation
    none of them is looked through again.

    A reference count still frees what is set aside; only a cycle that was alive then stays. So it
    is done for data that stays, not for requests that happened to be under way.
    """
    ages = phase == "stop" and info["generation"] > 0
    if ages and len(gc.get_objects(generation=2)) > SURVIVORS_MAX:
        gc.freeze()


def begin() -> None:
    """Sets aside all that is there at the start: modules, models, tables that were loaded.

    Python puts a full collection off until a quarter as many objects are new as the last one left,
    so one of nothing is made at once.
    """
    gc.freeze()
    gc.collect()
    gc.set_threshold(*THRESHOLDS)
    if set_aside not in gc.callbacks:
        gc.callbacks.append(set_aside)
