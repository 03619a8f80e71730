"""Waiting for something outside this process: looked at again and again, within a limit."""

from collections.abc import Callable
from threading import Event

from base.clock import SystemClock

LOOK_S = 0.05


def until(seen: Callable[[], bool], limit_s: float) -> None:
    clock = SystemClock()
    end = clock.mono_ms() + limit_s * 1000
    while not seen():
        assert clock.mono_ms() < end, "it did not happen in time"
        Event().wait(LOOK_S)
