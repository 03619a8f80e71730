"""Sets the allocator of a node's memory. Import it before Arrow, which looks only once. To be
imported before Arrow, which looks only once.

Rows are decoded by whichever thread is free, and let go by another. Arrow's own allocator keeps
such memory for the thread that had it, and glibc has arenas by thread: after scans of a large
region thirty threads kept a hundred megabytes that nobody used. Arrow's system allocator with two
arenas keeps a third of it, for a few per cent of a scan's time.
"""

import ctypes
import os

_M_ARENA_MAX = -8  # malloc.h
_ARENAS = 2

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def share_arenas() -> None:
    """Limits the arenas of the C library, before threads are started. Does nothing where it has
    none."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_ARENA_MAX, _ARENAS)
