"""Bloom filters of the keys of a file, so that a key that is not in it costs no look at its rows.

A filter covers about `FILTER_KEYS` keys: one file has few. Each key sets `PROBES` of 16 bits a key,
chosen by the two halves of its hash (Kirsch and Mitzenmacher, 2006): about one in two thousand keys
that are absent is taken for present. Stored in a file's body behind its row groups: a format.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dataplane.region.format.row_hash import FEW, Hashes

FILTER_KEYS = 1 << 18
"""Building a filter takes 32 bytes a key."""
BITS_OF_A_KEY = 16
PROBES = 8
_AT_A_TIME = 8192
"""Keys whose places are worked out together: they stay in the processor's cache."""
_HALF = np.uint64(0xFFFFFFFF)
_PROBES = np.arange(PROBES, dtype=np.uint64)[:, None]


@dataclass(frozen=True, slots=True)
class KeyFilter:
    bits: npt.NDArray[np.uint8]
    """Eight to a byte, the lowest first."""

    @classmethod
    def of(cls, hashes: Hashes) -> "KeyFilter":
        count = -(-max(len(hashes), 1) * BITS_OF_A_KEY // 8) * 8
        bits = np.zeros(count, bool)
        for start in range(0, len(hashes), _AT_A_TIME):
            bits[_places(hashes[start : start + _AT_A_TIME], count)] = True
        return cls(np.packbits(bits, bitorder="little"))

    @property
    def nbytes(self) -> int:
        return int(self.bits.nbytes)

    def may_hold(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Returns, for each hash, whether the file may have a key with it; False is certain."""
        if len(hashes) <= FEW:
            return np.array([self._may_hold_one(key_hash) for key_hash in hashes.tolist()], bool)
        places = _places(hashes, 8 * len(self.bits))
        byte, bit = self.bits[places >> np.uint64(3)], (places & np.uint64(7)).astype(np.uint8)
        all_set: npt.NDArray[np.bool_] = ((byte >> bit) & np.uint8(1)).all(axis=0)
        return all_set

    def _may_hold_one(self, hash: int) -> bool:
        bits, count = self.bits.data, 8 * len(self.bits)
        half, probe = hash >> 32, hash
        for _ in range(PROBES):
            bit = (probe & 0xFFFFFFFF) * count >> 32
            if not bits[bit >> 3] >> (bit & 7) & 1:
                return False
            probe += half
        return True


def _places(hashes: Hashes, count: int) -> Hashes:
    """A row for each probe."""
    low, high = hashes & _HALF, hashes >> np.uint64(32)
    halves = (low + _PROBES * high) & _HALF
    return halves * np.uint64(count) >> np.uint64(32)


@dataclass(frozen=True, slots=True)
class Span:
    """Neighbouring row groups with one filter."""

    groups: int
    bytes: int


@dataclass
class FilterBuilder:
    """Builds filters from the hashes of the keys of row groups, in order."""

    filters: list[KeyFilter] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    _waiting: list[Hashes] = field(default_factory=list)
    _groups: int = 0
    _keys: int = 0

    def add(self, hashes: Hashes, groups: int) -> None:
        self._waiting.append(hashes)
        self._groups += groups
        self._keys += len(hashes)
        if self._keys >= FILTER_KEYS:
            self.end()

    def end(self) -> None:
        if self._waiting:
            made = KeyFilter.of(np.concatenate(self._waiting))
            self.filters.append(made)
            self.spans.append(Span(self._groups, made.nbytes))
            self._waiting, self._groups, self._keys = [], 0, 0


def span_numbers(spans: Iterable[Span]) -> list[int]:
    return [number for span in spans for number in (span.groups, span.bytes)]


def spans_of(numbers: Sequence[int]) -> tuple[Span, ...]:
    """The inverse."""
    return tuple(map(Span, numbers[0::2], numbers[1::2]))
