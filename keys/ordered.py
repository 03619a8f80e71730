"""Names in order, as an immutable value: the next one shares all but the chunk that changed.

A page of a list begins anywhere and costs what it shows; a name that comes or goes costs one chunk
and the list of chunks, not a sort of all names.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

CHUNK_MAX = 512  # names; 100,000 names are some 300 chunks

Chunk = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """No name twice, no chunk empty, and each chunk below the next."""

    chunks: tuple[Chunk, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def __iter__(self) -> Iterator[str]:
        return self.starting("")

    def starting(self, low: str) -> Iterator[str]:
        """From *low* on, itself included."""
        at = self._chunk_of(low)
        for chunk in islice(self.chunks, at, None):
            yield from islice(chunk, bisect_left(chunk, low), None)

    def added(self, name: str) -> "Names":
        if not self.chunks:
            return Names(((name,),))
        at = self._chunk_of(name)
        chunk = self.chunks[at]
        place = bisect_left(chunk, name)
        assert chunk[place : place + 1] != (name,), name
        grown = (*chunk[:place], name, *chunk[place:])
        return self._with(at, _split(grown, is_last=at == len(self.chunks) - 1))

    def without(self, name: str) -> "Names":
        at = self._chunk_of(name)
        chunk = self.chunks[at]
        place = bisect_left(chunk, name)
        assert chunk[place] == name, name
        left = chunk[:place] + chunk[place + 1 :]
        return self._with(at, (left,) if left else ())

    def _chunk_of(self, name: str) -> int:
        """Of the only chunk that may hold it."""
        return max(0, bisect_right(self.chunks, name, key=lambda chunk: chunk[0]) - 1)

    def _with(self, at: int, instead: tuple[Chunk, ...]) -> "Names":
        return Names((*self.chunks[:at], *instead, *self.chunks[at + 1 :]))


def _split(chunk: Chunk, *, is_last: bool) -> tuple[Chunk, ...]:
    """Names that come in rising order fill their chunks; others leave halves to grow in."""
    if len(chunk) <= CHUNK_MAX:
        return (chunk,)
    cut = CHUNK_MAX if is_last else CHUNK_MAX // 2
    return chunk[:cut], chunk[cut:]
