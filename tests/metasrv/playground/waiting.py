"""Waiting for something outside this process: looked at again and again, within a limit."""

from collections.abc import Callable
from threading import Event
from typing import TypeVar

from metasrv_base.clock import SystemClock

LOOK_S = 0.05

T = TypeVar("T")


def until(seen: Callable[[], T], limit_s: float, output: Callable[[], str] = str) -> T:
    """Returns what *seen* returns once it is true. Raises AssertionError with *output*, that of the
    program that is waited for."""
    clock = SystemClock()
    end = clock.mono_ms() + limit_s * 1000
    while not (found := seen()):
        assert clock.mono_ms() < end, f"not within {limit_s} s; the output until then:\n{output()}"
        Event().wait(LOOK_S)
    return found
