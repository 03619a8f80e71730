"""Estimates of a dry run: the sizes of regions and the rate at which rows are read. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from keys.model.records import ProcedureHistory, ProcedureOutcome, Resource

ROWS_PER_S = 100_000  # of a job on two cores; docs/benchmarks.md has the figures
REORGS_MAX = 5
"""Number of latest reorgs over which a rate is measured; older ones are no longer
representative."""
ROWS_MIN, MS_MIN = 10_000, 1_000
"""A reorg of fewer rows, or a shorter one, measures what it takes to begin."""


@dataclass(frozen=True, slots=True)
class RegionSize:
    """The size of a region, as its node last reported it."""

    rows: int
    bytes: int


SizeOf: TypeAlias = Callable[[str, str], RegionSize | None]
"""Node and region id -> its size; None: nobody has said."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Read rate of all jobs of a reorg together."""

    rows_per_s: int = ROWS_PER_S
    reorgs: int = 0
    """Number of reorgs over which it was measured; 0: it is assumed."""


ASSUMED = Rate()


@dataclass(frozen=True, slots=True)
class Estimates:
    size_of: SizeOf = lambda node, region_id: None
    rate: Rate = ASSUMED


UNKNOWN = Estimates()


def measured(ended: Iterable[ProcedureHistory], resource: Resource) -> Rate:
    """Returns the read rate of the last reorgs of *resource*, or of any. *ended*: newest first.

    One that an operator had slowed says nothing of the next.
    """
    readings = [(history.last.resource, _reading(history)) for history in ended]
    every = [pace for _, pace in readings if pace is not None]
    own = [pace for of, pace in readings if pace is not None and of.id == resource.id]
    paces = (own or every)[:REORGS_MAX]
    if not paces:
        return ASSUMED
    rows, ms = sum(rows for rows, _ in paces), sum(ms for _, ms in paces)
    return Rate(max(1, rows * 1000 // ms), len(paces))


def _reading(ended: ProcedureHistory) -> tuple[int, int] | None:
    """Returns the rows that a reorg has read, and its time in ms; None if they say nothing of the
    next reorg."""
    last, result = ended.last, ended.result or {}
    rows, ms = result.get("rows"), result.get("read_ms")
    if (
        ended.outcome is not ProcedureOutcome.SUCCEEDED
        or last.throttle_percent
        or last.throttle_rows_per_s
    ):
        return None
    if not isinstance(rows, int) or not isinstance(ms, int):
        return None
    return (rows, ms) if rows >= ROWS_MIN and ms >= MS_MIN else None
