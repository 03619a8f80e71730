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


def is_short(rows: int, size_bytes: int) -> bool:
    return rows <= SHORT_ROWS and size_bytes <= SHORT_BYTES


async def offload(short: bool, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What *work* returns or raises; done at once if it is *short*, else in a thread."""
    if short:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
