"""Parts: what one value cannot hold, in values of bounded size, as they are written.

Whoever writes parts names them by an id that nobody used before, each in a fenced transaction, and
only then the one value that refers to them. So a reader that finds the value finds every part, and
parts that nothing refers to are garbage (metasrv/leadership/log/unnamed_parts.py).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from keys.model.log import StagedRef
from keys.model.snapshot.snapshots import PartsDigest
from keys.model.staging.parts import BatchPartKey, sealed_part
from keys.store.kv import TXN_OPS_MAX
from keys.value import StoredPart

PART_JSON_BYTES = 128 << 10
"""JSON from which a part is full. What fills it may be as large as a table, which one value
holds."""
ENTRIES, MEMBERS = "entries", "members"


@dataclass(frozen=True, slots=True)
class StagingSizes:
    """Sizes of what large changes are cut into; tests cut small ones."""

    part_bytes: int = PART_JSON_BYTES
    """JSON from which a part is full."""
    chunk_ops: int = TXN_OPS_MAX - 2
    """Keys that one transaction writes of a version; one more says how many are written."""


class StagedPart(NamedTuple):
    key: BatchPartKey
    raw: bytes


def parts_of(
    batch: str, what: str, items: Iterable[StoredPart], *, part_bytes: int
) -> Iterator[StagedPart]:
    """Yields the parts of *items*, each made when it is asked for. *what*: ENTRIES or MEMBERS."""
    texts, size, number = list[bytes](), 0, 0
    for item in items:
        text = item.model_dump_json().encode()
        texts.append(text)
        size += len(text)
        if size >= part_bytes:
            yield StagedPart(BatchPartKey(batch, number), sealed_part(batch, number, what, texts))
            texts, size, number = [], 0, number + 1
    if texts or not number:
        yield StagedPart(BatchPartKey(batch, number), sealed_part(batch, number, what, texts))


class PartsReference:
    """The value that refers to parts, which are given in order."""

    def __init__(self, batch: str) -> None:
        self._batch = batch
        self._digest = PartsDigest()
        self._parts = self._size_bytes = 0

    def add(self, raw: bytes) -> None:
        self._digest.add(raw)
        self._parts, self._size_bytes = self._parts + 1, self._size_bytes + len(raw)

    def made(self) -> StagedRef:
        return StagedRef(
            batch=self._batch,
            parts=self._parts,
            size_bytes=self._size_bytes,
            digest=str(self._digest),
        )
