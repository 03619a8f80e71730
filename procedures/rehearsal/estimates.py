"""What a dry run may guess by: how large regions are, and how fast their rows are read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

ROWS_PER_S = 100_000  # of a job on two cores; docs/benchmarks.md has the figures


@dataclass(frozen=True, slots=True)
class RegionSize:
    """As its node last reported it."""

    rows: int
    bytes: int


SizeOf: TypeAlias = Callable[[str, str], RegionSize | None]
"""Node and region id -> its size; None: nobody has said."""


@dataclass(frozen=True, slots=True)
class Estimates:
    size_of: SizeOf = lambda node, region_id: None
    rows_per_s: int = ROWS_PER_S


UNKNOWN = Estimates()
