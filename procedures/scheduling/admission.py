"""Admission of procedures: a pure choice among those that hold all their locks."""

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from metasrv_base.values.frozen import frozen
from procedures.machine import AdmissionLane


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one leader. Repair has places of its own and no queue that could be full (P2)."""

    running_max: Mapping[AdmissionLane, int]
    queue_max: int
    """DDL procedures that are not over; one more is answered 429."""
    stalled_ms: int = 60_000
    """Time without a finished step or progress after which a running procedure counts as
    stalled."""


@frozen
class WaitingProcedure:
    procedure: str
    submission: int
    lane: AdmissionLane
    only_waits: bool
    """Whether it only waits, for children or for long: it takes no place and is always admitted."""


@dataclass(slots=True)
class WaitingRoom:
    """Procedures that hold all their locks and wait for a place. A start costs time in the number
    that start and not in the length of the queue."""

    _takers: dict[AdmissionLane, list[tuple[int, str]]] = field(
        default_factory=lambda: {lane: [] for lane in AdmissionLane}
    )
    """Heaps: the oldest is first."""
    _waiters: list[str] = field(default_factory=list)

    def enter(self, procedure: WaitingProcedure) -> None:
        """Entering twice does no harm: see `admit`."""
        if procedure.only_waits:
            self._waiters.append(procedure.procedure)
        else:
            heapq.heappush(
                self._takers[procedure.lane], (procedure.submission, procedure.procedure)
            )

    @property
    def is_empty(self) -> bool:
        return not self._waiters and not any(self._takers.values())

    def admit(
        self,
        running: Iterable[WaitingProcedure],
        limits: Limits,
        may_start: Callable[[str], bool],
    ) -> tuple[str, ...]:
        """Returns the procedures that start now, the oldest of each lane first, and removes
        them. Procedures that may no longer start (started, waiting again, or over) are removed
        too."""
        free = dict(limits.running_max)
        for other in running:
            free[other.lane] -= 0 if other.only_waits else 1
        waiters = dict.fromkeys(self._waiters)
        self._waiters.clear()
        started = {waiter: None for waiter in waiters if may_start(waiter)}
        for lane, heap in self._takers.items():
            while heap and free[lane] > 0:
                _, procedure = heapq.heappop(heap)
                if procedure not in started and may_start(procedure):
                    started[procedure] = None
                    free[lane] -= 1
        return tuple(started)
