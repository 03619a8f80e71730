"""Parts: what one value cannot hold, in values of bounded size.

Whoever writes parts names them by an id that nobody used before, each in a fenced transaction, and
only then the one value that refers to them. So a reader that finds the value finds every part, and
parts that nothing refers to are garbage (metasrv/leadership/log/unnamed_parts.py).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from keys.model.log import STAGED_FORMAT, CatalogUpdate, Entry, StagedRef
from keys.model.snapshot.snapshots import PartsDigest
from keys.model.staging.parts import BatchPart, BatchPartKey, sealed_part
from keys.store.kv import TXN_OPS_MAX, Get, KeyValue, ReadableStore
from keys.store.scan import pages
from keys.value import StoredPart, decode
from metasrv_base.concurrency.turns import Turns, at_once, by_turns
from metasrv_base.errors import Corrupt

PART_JSON_BYTES = 128 << 10
"""JSON from which a part is full. What fills it may be as large as a table, which one value
holds."""
PARTS_AT_ONCE = Get(b"", limit=16)  # of one read
ENTRIES, MEMBERS = "entries", "members"
_STAGED = b'{"format":%d,' % STAGED_FORMAT


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


class MissingParts(Corrupt):
    """Not all parts that a value refers to are there. They go together with the update that names
    them: the caller looks whether it is still there."""


async def read_parts(
    kv: ReadableStore, ref: StagedRef, *, deadline_ms: int, revision: int = 0
) -> tuple[BatchPart, ...]:
    """The parts that *ref* names, in order. Raises MissingParts, and Corrupt for other ones."""
    keys = BatchPartKey.under(ref.batch)
    items: list[KeyValue] = []
    reader = pages(kv, keys, deadline_ms=deadline_ms, revision=revision, like=PARTS_AT_ONCE)
    async for page in reader:
        items += page.items
    _must_be_whole(ref, items)
    return await by_turns(_decoded(items))


def whole_parts(ref: StagedRef, items: Sequence[KeyValue]) -> tuple[BatchPart, ...]:
    """*items*: all that is stored under the name of the batch, in order. Raises as `read_parts`."""
    _must_be_whole(ref, items)
    return at_once(_decoded(items))


def _decoded(items: Sequence[KeyValue]) -> Turns[tuple[BatchPart, ...]]:
    """A part in a turn: it may be as large as a transaction."""
    parts = []
    for item in items:
        parts.append(decode(BatchPart, item.value, key=item.key.decode()))
        yield
    return tuple(parts)


def _must_be_whole(ref: StagedRef, items: Sequence[KeyValue]) -> None:
    """Raises as `read_parts`."""
    if [item.key for item in items] != [
        bytes(BatchPartKey(ref.batch, number)) for number in range(ref.parts)
    ]:
        raise MissingParts(batch=ref.batch, expected=ref.parts, found=len(items))
    again = PartsReference(ref.batch)
    for item in items:
        again.add(item.value)
    if again.made() != ref:
        raise Corrupt(batch=ref.batch, expected=ref.digest, found=again.made().digest)


def entries_in(parts: Iterable[BatchPart]) -> tuple[Entry, ...]:
    return tuple(entry for part in parts for entry in part.entries)


async def whole_update(
    kv: ReadableStore, update: CatalogUpdate, *, deadline_ms: int, revision: int = 0
) -> CatalogUpdate:
    """*update* with its entries, wherever they are. Raises as `read_parts`."""
    if update.staged is None:
        return update
    parts = await read_parts(kv, update.staged, deadline_ms=deadline_ms, revision=revision)
    return update.model_copy(update={"entries": entries_in(parts)})


def is_staged(raw: bytes) -> bool:
    """Whether the stored form of an update refers to parts, told without decoding it."""
    return raw.startswith(_STAGED)


async def whole_item(kv: ReadableStore, item: KeyValue, *, deadline_ms: int) -> KeyValue:
    """A stored update as it would be if one value could hold it. Raises as `read_parts`."""
    if not is_staged(item.value):
        return item
    update = decode(CatalogUpdate, item.value, key=item.key.decode())
    assert update.staged is not None, "an update of its format refers to parts"
    parts = await read_parts(kv, update.staged, deadline_ms=deadline_ms)
    value = orjson.loads(item.value)
    value["entries"] = [entry.model_dump(mode="json", by_alias=True) for entry in entries_in(parts)]
    return item._replace(value=orjson.dumps(value))
