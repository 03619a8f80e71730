"""The log of a region whose rows end with its process: it says that there were writes, not which.

The first write leaves a segment that holds its header alone, durably. So whoever finds the root
later knows that rows were acknowledged here, and never takes the region for an empty one.
"""

from collections.abc import Sequence

from dataplane.region.log.log_writer import EncodableSchema, LogWriter


class VolatileLog(LogWriter):
    """A LogWriter with one segment that never grows."""

    @property
    def next_segment(self) -> int:
        """The only segment: no manifest lets it go."""
        return 1

    def append(self, group: bytes, schemas: Sequence[EncodableSchema], sequence: int) -> None:
        if self._number == 0 or self._begun is not None:
            self._new_segment().close()

    def rotate(self) -> None:
        """There is nothing to close."""
