"""How many procedures run at once: a pure choice among those that hold all their locks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from procedures.machine import Lane


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one leader. Repair has places of its own and no queue that could be full (P2)."""

    running_max: Mapping[Lane, int]
    queue_max: int
    """DDL procedures that are not over; one more is answered 429."""


@dataclass(frozen=True, slots=True)
class Candidate:
    procedure: str
    submission: int
    lane: Lane
    running: bool
    only_waits: bool
    """It waits, perhaps for children or for long: it takes no place, and keeps nobody from one."""


def admit(candidates: Iterable[Candidate], limits: Limits) -> tuple[str, ...]:
    """Which of *candidates*, all of them holding their locks, start now: oldest first."""
    free = dict(limits.running_max)
    waiting: list[Candidate] = []
    for one in candidates:
        if one.running and not one.only_waits:
            free[one.lane] -= 1
        elif not one.running:
            waiting.append(one)
    started: list[str] = []
    for one in sorted(waiting, key=lambda one: one.submission):
        if one.only_waits or free[one.lane] > 0:
            free[one.lane] -= 0 if one.only_waits else 1
            started.append(one.procedure)
    return tuple(started)
