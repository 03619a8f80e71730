"""Waiting for something outside this process: looked at again and again, within a limit."""

from collections.abc import Callable
from threading import Event
from typing import TypeVar

from metasrv_base.clock import SystemClock

LOOK_S = 0.05

T = TypeVar("T")


def until(seen: Callable[[], T], limit_s: float) -> T:
    """What was seen, once it is anything."""
    clock = SystemClock()
    end = clock.mono_ms() + limit_s * 1000
    while not (found := seen()):
        assert clock.mono_ms() < end, "it did not happen in time"
        Event().wait(LOOK_S)
    return found
