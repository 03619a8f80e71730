"""The age of the rows that a copy can answer: what its leader said, and when (P4.6). Pure.

A leader tells a copy its common position in answer to a time that the copy has given it. What the
leader says was true after that time, by whichever clock: so the copy counts from its own time, and
a message that is delayed makes rows older, never newer. Times are milliseconds of CLOCK_BOOTTIME of
the copy's node.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

POSITIONS_MAX = 64
"""Positions of a copy that its rows have not reached yet. One comes with each request for promises;
a copy that lags for longer than LAG_MS_MAX leaves the set, and is told no more."""


class AppliedLog(NamedTuple):
    """The rows that a copy has in memory and files: records up to a sequence, of the log of the
    leader of an epoch."""

    epoch: int
    sequence: int


class CommonAt(NamedTuple):
    """A position of which a leader said that it was common: all rows that were acknowledged before
    `as_of_ms` are at or below it."""

    epoch: int
    sequence: int
    as_of_ms: int

    def is_in(self, applied: AppliedLog) -> bool:
        """Whether a copy has all records up to the position. A sequence says something in its own
        epoch alone: in another, the records up to it may be others."""
        return self.epoch == applied.epoch and self.sequence <= applied.sequence


@dataclass(slots=True)
class CopyStaleness:
    """Invariant: positions are of one epoch, and rise in sequence and time."""

    _positions: deque[CommonAt] = field(default_factory=deque)

    def tell(self, position: CommonAt, applied: AppliedLog | None) -> None:
        """Takes what a leader said. A message that was overtaken changes nothing. *applied*: what
        the copy has now, which makes older positions superfluous."""
        positions = self._positions
        if positions:
            last = positions[-1]
            if position.epoch < last.epoch or position.as_of_ms < last.as_of_ms:
                return
            if position.epoch > last.epoch:
                positions.clear()
            elif position.sequence < last.sequence:
                return
            elif position.sequence == last.sequence or len(positions) == POSITIONS_MAX:
                positions.pop()
        positions.append(position)
        while applied is not None and len(positions) > 1 and positions[1].is_in(applied):
            positions.popleft()

    def as_of_ms(self, applied: AppliedLog) -> int | None:
        """The time up to which a copy that has *applied* these records has every row that was
        acknowledged. None: it is not known."""
        reached = [position.as_of_ms for position in self._positions if position.is_in(applied)]
        return max(reached, default=None)
