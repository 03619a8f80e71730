"""Bounds the orders in the answer to a heartbeat; the other ones come with later answers.

A node that starts again with 50,000 regions lacks all of them: orders to open them are more than an
answer may hold, and take a second to make.
"""

INSTRUCTIONS_MAX = 1_024  # of one answer; a node takes longer to open them than its next heartbeat


class InstructionWindow:
    """Admits INSTRUCTIONS_MAX of a node's regions that need an order, from number *start* on.

    Each answer goes on where the one before it ended, so regions that cannot be opened do not keep
    the others waiting.
    """

    def __init__(self, start: int = 0) -> None:
        self._start = start
        self._regions = 0

    def admits(self) -> bool:
        """Counts one region; whether its order is in this answer."""
        position = self._regions
        self._regions += 1
        return self._start <= position < self._start + INSTRUCTIONS_MAX

    @property
    def following(self) -> int:
        """The start of the next answer, once all regions are counted; 0 behind the last one."""
        end = self._start + INSTRUCTIONS_MAX
        return end if end < self._regions else 0
