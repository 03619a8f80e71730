"""Room for rows that are looked up: it ends a lookup before it has more of them than were asked."""

from collections.abc import Sequence
from math import inf

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class NoRoomError(Exception):
    """The rows have more bytes than there is room for: fewer keys must be looked up together."""


class LookupRoom:
    """The memory that one lookup may take. Not safe for threads."""

    def __init__(self, bytes_max: float = inf) -> None:
        self._left = bytes_max

    def take(self, size: int) -> None:
        """Raises NoRoomError."""
        self._left -= size
        if self._left < 0:
            raise NoRoomError

    def take_rows(self, rows: pa.RecordBatch, places: Sequence[int]) -> None:
        """Room for a copy of the rows at those places. Raises NoRoomError."""
        size = rows.nbytes
        if size > self._left:
            size = bytes_at(rows, places)
        self.take(size)


def bytes_at(rows: pa.RecordBatch, places: Sequence[int]) -> int:
    """The bytes of a copy of some rows, without making it."""
    total = 0
    for column in rows.columns:
        if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
            lengths = np.asarray(pc.fill_null(pc.binary_length(column), 0))
            total += int(lengths[np.asarray(places)].sum()) + 4 * len(places)
        else:
            total += -(-column.type.bit_width * len(places) // 8)
    return total
