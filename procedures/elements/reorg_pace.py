"""The rate in rows/s at which a reorg may read: lowered when statements become slower. Pure.

An operator's rate is that rate. Else it is halved when the statements' p99 is above what it was
before the reorg by more than is noise, and raised by a quarter while it is not: as congestion is
met elsewhere (RFC 5681, section 3.1). Frontends report a few times in a lease, so a rate stands for
a while before its effect is judged.
"""

from dataclasses import dataclass

HOLD_MS = 6_000  # two reports of every frontend at the shortest usual lease
FACTOR, NOISE_MS = 1.5, 5.0  # p99 of a few statements on a busy machine moves by as much anyway
ROWS_PER_S_MIN = 1_000  # a reorg that stands still keeps its marks for ever


@dataclass(frozen=True, slots=True)
class PaceInput:
    """The measurements from which a rate is computed, at one moment."""

    now_ms: int
    """Monotonic."""
    p99_ms: float | None
    """The p99 of statements now, in ms, at the slowest frontend; None: there were none."""
    p99_before_ms: float | None
    """The same when the reorg began."""
    rows_per_s: float
    """Recently measured read rate."""
    operator_rows_per_s: int | None = None
    """The operator's rate."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A rate, and since when."""

    rows_per_s: int | None = None
    """None: as fast as it goes."""
    since_ms: int = 0
    is_wanted: bool = False
    """Whether an operator set it."""


def paced(pace: Pace, facts: PaceInput) -> Pace:
    """The rate from now on; the same value if it stays."""
    if facts.operator_rows_per_s is not None:
        is_set = pace.is_wanted and pace.rows_per_s == facts.operator_rows_per_s
        return pace if is_set else Pace(facts.operator_rows_per_s, facts.now_ms, is_wanted=True)
    if pace.is_wanted:
        return Pace(None, facts.now_ms)
    if facts.now_ms - pace.since_ms < HOLD_MS:
        return pace
    rate = _next_rate(pace.rows_per_s, facts)
    return pace if rate == pace.rows_per_s else Pace(rate, facts.now_ms)


def is_slow(p99_ms: float | None, before_ms: float | None) -> bool:
    """Whether the p99 has risen by more than noise. False without statements before (no
    comparison) or now (none to protect)."""
    if p99_ms is None or before_ms is None:
        return False
    return p99_ms > before_ms * FACTOR + NOISE_MS


def _next_rate(rate: int | None, facts: PaceInput) -> int | None:
    if is_slow(facts.p99_ms, facts.p99_before_ms) and facts.rows_per_s:
        return max(ROWS_PER_S_MIN, round((rate or facts.rows_per_s) / 2))
    if rate is None or rate > 2 * facts.rows_per_s > 0:
        return None  # it is not the rate that holds it back
    return rate + max(1, rate // 4)
