"""The order of binary keys, by numpy: words of eight bytes are compared, and few keys twice."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Places = npt.NDArray[np.int64]
_WORD = 8


def order_of(keys: pa.BinaryArray) -> Places:
    """Places of the keys in ascending order; equal ones in any order. No key is null."""
    words = _Words(keys)
    offset = words.common_prefix()
    first = words.of(slice(None), offset)
    order = np.argsort(first)
    tied, groups = _ties(first[order], None)
    while len(tied):
        offset += _WORD
        some = order[tied]
        if offset >= words.longest:  # equal but for their length: a prefix comes first
            order[tied] = some[np.lexsort((words.lengths[some], groups))]
            break
        tied_words = words.of(some, offset)
        sub = np.lexsort((tied_words, groups))
        order[tied] = some[sub]
        still, groups = _ties(tied_words[sub], groups[sub])
        tied = tied[still]
    return order


def in_key_order(table: pa.Table, column: str) -> pa.Table:
    """The rows by a column of keys; those with one key in any order."""
    keys = table.column(column).combine_chunks()
    order = order_of(keys)
    if np.array_equal(order, np.arange(len(order))):
        return table
    return table.combine_chunks().take(pa.array(order))


class _Words:
    """Keys as big-endian words, filled with zeros behind their end."""

    def __init__(self, keys: pa.BinaryArray) -> None:
        _, offsets, data = keys.buffers()
        bounds = np.zeros(1, np.int64)
        if len(keys):
            stored = np.frombuffer(offsets, "<i4")[keys.offset : keys.offset + len(keys) + 1]
            bounds = stored.astype(np.int64)
        start, end = int(bounds[0]), int(bounds[-1])
        self._bytes = np.zeros(end - start + _WORD, np.uint8)
        if end > start:
            self._bytes[: end - start] = np.frombuffer(data, np.uint8, end - start, start)
        self._starts = bounds[:-1] - start
        self.lengths = np.diff(bounds)
        self.longest = int(self.lengths.max(initial=0))
        self.shortest = int(self.lengths.min(initial=self.longest))
        # One word at each byte, aligned or not.
        self._all: npt.NDArray[np.uint64] = np.ndarray(
            (len(self._bytes) - _WORD + 1,), ">u8", self._bytes, strides=(1,)
        )

    def of(self, places: Places | slice, offset: int) -> npt.NDArray[np.uint64]:
        """The word that begins *offset* bytes into each of those keys."""
        if offset + _WORD <= self.shortest:
            whole: npt.NDArray[np.uint64] = self._all[self._starts[places] + offset].astype(
                np.uint64
            )
            return whole
        left = np.clip(self.lengths[places] - offset, 0, _WORD)
        starts = np.where(left > 0, self._starts[places] + offset, 0)
        raw_words = self._all[starts].astype(np.uint64)
        unused = (np.uint64(_WORD) - left.astype(np.uint64)) << np.uint64(3)
        kept = np.where(left > 0, raw_words >> (unused & np.uint64(63)), np.uint64(0))
        filled: npt.NDArray[np.uint64] = kept << (unused & np.uint64(63))
        return filled

    def common_prefix(self) -> int:
        """Bytes that all keys begin with."""
        length = 0
        while length + _WORD <= self.shortest:
            words = self.of(slice(None), length)
            differing = int(words.min() ^ words.max())
            length += _WORD - -(-differing.bit_length() // 8)
            if differing:
                break
        return length


def _ties(
    words: npt.NDArray[np.uint64], groups: npt.NDArray[np.int64] | None
) -> tuple[Places, npt.NDArray[np.int64]]:
    """The places of sorted words that equal a neighbour in their group, and a number for each run
    of equal ones."""
    same = words[1:] == words[:-1]
    if groups is not None:
        same &= groups[1:] == groups[:-1]
    before, behind = np.concatenate(([False], same)), np.concatenate((same, [False]))
    tied = np.flatnonzero(before | behind)
    return tied, np.cumsum(~before[tied])
