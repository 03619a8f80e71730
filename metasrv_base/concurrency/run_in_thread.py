"""Work on rows beside the event loop, unless it is short: handing it to a thread and back takes
longer than it, and the loop's own work waits for the thread's.
"""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SHORT_ROWS = 100
SHORT_BYTES = 32 << 10
"""Arrow and Python do with so much whatever they do in well under a millisecond."""
COLUMNAR_ROWS = 4_096
COLUMNAR_BYTES = 128 << 10
"""The same of work that makes no Python object for a row."""


def is_small(rows: int, size_bytes: int) -> bool:
    return rows <= SHORT_ROWS and size_bytes <= SHORT_BYTES


def is_short_columnar(rows: int, size_bytes: int) -> bool:
    """Returns whether columnar work in Arrow on that much data is short."""
    return rows <= COLUMNAR_ROWS and size_bytes <= COLUMNAR_BYTES


async def run_in_thread(
    short: bool, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Runs *work* at once if it is *short*, else in a thread. Returns or raises as it does."""
    if short:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
