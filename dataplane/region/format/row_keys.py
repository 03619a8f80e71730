"""The encoded keys of some rows, in their order; Python objects of them are made when needed."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

FEW = 64
"""Keys that are compared as Python objects, which they become in any case."""
_ONE = ((0, 1),)
"""The stretches of one key."""


class RowKeys:
    """Keys of rows of one family. None of them is null. Not safe for two threads."""

    def __init__(self, column: pa.BinaryArray) -> None:
        self.column = column
        self._values: Sequence[bytes] | None = None
        self._runs: Sequence[tuple[int, int]] | None = None
        self._bounds: tuple[bytes, bytes] | None = None

    @classmethod
    def of(cls, values: Sequence[bytes]) -> "RowKeys":
        made = cls(pa.array(values, pa.binary()))
        made._values = values
        return made

    @classmethod
    def copied(cls, column: pa.BinaryArray, parts: Sequence["RowKeys"]) -> "RowKeys":
        """Keys in another memory: *column* has those of *parts*, in order."""
        made = cls(column)
        if len(parts) == 1:
            first = parts[0]
            made._values, made._runs, made._bounds = first._values, first._runs, first._bounds
        return made

    def __len__(self) -> int:
        return len(self.column)

    @property
    def values(self) -> Sequence[bytes]:
        if self._values is None:
            self._values = key_objects(self.column)
        return self._values

    @property
    def runs(self) -> Sequence[tuple[int, int]]:
        """Start and end of each stretch in which every key is above the one before it, in order."""
        if self._runs is None:
            count = len(self.column)
            if count == 1:
                self._runs = _ONE
            else:
                self._runs = _rising(self.values) if count <= FEW else _rising_column(self.column)
        return self._runs

    @property
    def is_rising(self) -> bool:
        """Whether each key is above the one before it, so that none stands twice."""
        return len(self.runs) == 1

    @property
    def bounds(self) -> tuple[bytes, bytes]:
        """The lowest key and the highest."""
        if self._bounds is None:
            self._bounds = self._lowest_and_highest()
        return self._bounds

    def _lowest_and_highest(self) -> tuple[bytes, bytes]:
        if not self.is_rising:
            return min(self.values), max(self.values)
        if self._values is None:
            return self.column[0].as_py(), self.column[-1].as_py()
        return self._values[0], self._values[-1]

    def are_distinct(self) -> bool:
        count = len(self.column)
        return count == 1 or self.is_rising or len(set(self.values)) == count

    def between(self, start: int, end: int) -> "RowKeys":
        """The keys of the rows from *start* to *end*, exclusive."""
        if start == 0 and end == len(self.column):
            return self
        part = RowKeys(self.column.slice(start, end - start))
        if self._values is not None:
            part._values = self._values[start:end]
        return part


def key_objects(column: pa.BinaryArray) -> list[bytes]:
    """A Python object of each key."""
    objects: list[bytes] = column.to_pylist()
    return objects


def _rising(keys: Sequence[bytes]) -> Sequence[tuple[int, int]]:
    falls = [position for position in range(1, len(keys)) if keys[position - 1] >= keys[position]]
    return _between(falls, len(keys))


def _rising_column(column: pa.BinaryArray) -> Sequence[tuple[int, int]]:
    falls = pc.greater_equal(column[:-1], column[1:])
    if not falls.true_count:
        return _between([], len(column))
    places = np.flatnonzero(falls.to_numpy(zero_copy_only=False)) + 1
    return _between(places.tolist(), len(column))


def _between(cuts: Sequence[int], count: int) -> Sequence[tuple[int, int]]:
    return tuple(pairwise((0, *cuts, count))) if count else ()
