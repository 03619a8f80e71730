"""Phi-accrual failure detection (Hayashibara et al., SRDS 2004): suspicion as a number.

phi(t) = -log10 P(a heartbeat comes later than t after the last one), from the history of intervals,
taken as normally distributed. Pure: `now_ms` is an argument.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from functools import cache
from statistics import NormalDist

HISTORY_MAX = 100  # intervals remembered per node
PHI_MAX = 300.0  # beyond it the probability is below what a double can hold
PHI_IN_TIME_MAX = 0.302  # log10(2), rounded up: phi at the mean, and before it less


@dataclass(frozen=True, slots=True)
class PhiConfig:
    threshold: float = 8.0
    """The phi above which a node counts as dead: one false alarm in 10^8 intervals, if they are
    normal."""
    first_interval_ms: int = 2_000
    """Taken for the mean before there is a history: the heartbeat interval."""
    deviation_ms_min: int = 200
    """Perfectly regular heartbeats would otherwise make any delay an alarm."""
    pause_ms: int = 3_000
    """A pause that is always forgiven: garbage collection, a slow disk, a short partition."""


@dataclass(slots=True)
class PhiDetector:
    """The history of one node."""

    config: PhiConfig
    last_ms: int
    """The time at which it was last heard, or first known: a node that dies before its first
    heartbeat is found too."""
    _intervals: deque[int] = field(default_factory=deque)
    _sum: int = 0
    _squares: int = 0
    """Sums over the intervals, and over their squares; whole numbers, so they never drift."""

    def heard(self, now_ms: int) -> None:
        """Records an interval, but of an outage only as much as it took to call the node dead: else
        the next outage would look normal."""
        interval = max(0, now_ms - self.last_ms)
        self._remember(min(interval, self._dead_after_ms()))
        self.last_ms = now_ms

    def forgive(self, stalled_ms: int, now_ms: int) -> None:
        """Excuses a time in which this server did not run: nobody could be heard (G35). A heartbeat
        may have come since it goes on."""
        self.last_ms = min(self.last_ms + stalled_ms, now_ms)

    def phi(self, now_ms: int) -> float:
        elapsed = now_ms - self.last_ms
        mean = self._mean() + self.config.pause_ms
        late = 0.5 * math.erfc((elapsed - mean) / (self._spread() * math.sqrt(2)))
        return PHI_MAX if late < 10**-PHI_MAX else abs(math.log10(late))

    def is_in_time(self, now_ms: int) -> bool:
        """Whether the next heartbeat is not later than the mean, so that phi is at most
        PHI_IN_TIME_MAX: told without computing it, for each change asks it of each node."""
        return now_ms - self.last_ms <= self._mean() + self.config.pause_ms

    def is_dead(self, now_ms: int) -> bool:
        return self.phi(now_ms) >= self.config.threshold

    def _dead_after_ms(self) -> int:
        """The silence at which phi reaches the threshold."""
        mean = self._mean() + self.config.pause_ms
        return math.ceil(mean + _deviations(self.config.threshold) * self._spread())

    def _remember(self, interval: int) -> None:
        self._intervals.append(interval)
        gone = self._intervals.popleft() if len(self._intervals) > HISTORY_MAX else 0
        self._sum += interval - gone
        self._squares += interval**2 - gone**2

    def _spread(self) -> float:
        return max(self._deviation(), float(self.config.deviation_ms_min))

    def _mean(self) -> float:
        count = len(self._intervals)
        return self._sum / count if count else self.config.first_interval_ms

    def _deviation(self) -> float:
        count = len(self._intervals)
        if not count:
            return self.config.first_interval_ms / 4
        return math.sqrt(count * self._squares - self._sum**2) / count


@cache
def _deviations(threshold: float) -> float:
    """The number of deviations above the mean at which phi reaches *threshold*."""
    return -NormalDist().inv_cdf(10**-threshold)
