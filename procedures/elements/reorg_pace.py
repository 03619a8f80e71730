"""The rate in rows/s at which a reorg may read: raised until statements become slower. Pure.

An operator's rate is that rate. Else a table without statements is read as fast as it goes, and one
with statements begins at START_ROWS_PER_S. The rate is doubled until their p99 is above what it was
before the reorg by more than is noise; then it is halved, and raised by a quarter while the p99 is
not above: as congestion is met elsewhere (RFC 5681, section 3.1). Frontends report a few times in a
lease, so a rate stands for a while before its effect is judged.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

from metasrv_base.values.frozen import frozen

HOLD_MS = 6_000  # two reports of every frontend at the shortest usual lease
FACTOR, NOISE_MS = 1.5, 5.0  # p99 of a few statements on a busy machine moves by as much anyway
START_ROWS_PER_S = 20_000
ROWS_PER_S_MIN = 5_000
"""At this rate statements take what the upkeep of the index costs them anyway, which no rate lowers
(docs/benchmarks.md); a reorg that stands still keeps its marks for ever."""


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
    """Read rate measured since the rate was set; 0: nothing has been read yet."""
    operator_rows_per_s: int | None = None
    """The operator's rate."""


class PaceStage(Enum):
    """The reason for a rate, and so its next change."""

    NEW = auto()
    OPERATOR = auto()
    RISING = auto()
    """Doubled: statements have not been slow yet."""
    SETTLED = auto()
    """Raised by a quarter or halved, unless it is "as fast as it goes"."""


@frozen
class Pace:
    """A rate, and since when."""

    rows_per_s: int | None = None
    """The bound of rows a second; None for as fast as it goes."""
    since_ms: int = 0
    stage: PaceStage = PaceStage.NEW


def paced(pace: Pace, facts: PaceInput) -> Pace:
    """The rate from now on; the same value if it stays."""
    if facts.operator_rows_per_s is not None:
        is_set = pace.stage is PaceStage.OPERATOR and pace.rows_per_s == facts.operator_rows_per_s
        return pace if is_set else of_operator(facts.operator_rows_per_s, facts.now_ms)
    if pace.stage in (PaceStage.NEW, PaceStage.OPERATOR):
        return _first(facts)
    if not facts.rows_per_s:  # it has had no effect yet
        return replace(pace, since_ms=facts.now_ms)
    if facts.now_ms - pace.since_ms < HOLD_MS:
        return pace
    return _next(pace, facts)


def of_operator(rows_per_s: int | None, now_ms: int) -> Pace:
    """Returns the pace that an operator set; *rows_per_s* None: the operator removed the rate, or
    set none."""
    stage = PaceStage.NEW if rows_per_s is None else PaceStage.OPERATOR
    return Pace(rows_per_s, now_ms, stage)


def _first(facts: PaceInput) -> Pace:
    if facts.p99_before_ms is None:
        return Pace(None, facts.now_ms, PaceStage.SETTLED)
    return Pace(START_ROWS_PER_S, facts.now_ms, PaceStage.RISING)


def _next(pace: Pace, facts: PaceInput) -> Pace:
    rate = pace.rows_per_s
    if is_slow(facts.p99_ms, facts.p99_before_ms):
        lower = max(ROWS_PER_S_MIN, round((rate or facts.rows_per_s) / 2))
        return Pace(lower, facts.now_ms, PaceStage.SETTLED)
    if rate is None:
        return pace
    if rate > 2 * facts.rows_per_s:  # it is not the rate that holds it back
        return Pace(None, facts.now_ms, PaceStage.SETTLED)
    higher = rate * 2 if pace.stage is PaceStage.RISING else rate + max(1, rate // 4)
    return replace(pace, rows_per_s=higher, since_ms=facts.now_ms)


def is_slow(p99_ms: float | None, before_ms: float | None) -> bool:
    """Whether the p99 has risen by more than noise. False without statements before (no
    comparison) or now (none to protect)."""
    if p99_ms is None or before_ms is None:
        return False
    return p99_ms > before_ms * FACTOR + NOISE_MS
