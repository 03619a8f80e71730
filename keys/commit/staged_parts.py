"""The one way to read parts: all that a value refers to, in order, a part in a turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import TypeAdapter, ValidationError

from keys.commit.staging import ENTRIES, PartsReference
from keys.model.log import DROPPED_ROUTE_FORMAT, STAGED_FORMAT, CatalogUpdate, Entry, StagedRef
from keys.model.staging.parts import BatchPart, BatchPartKey, items_json
from keys.store.kv import Get, KeyValue, ReadableStore
from keys.store.scan import pages
from keys.value import decode
from metasrv_base.concurrency.turns import Turns, by_turns
from metasrv_base.errors import Corrupt

PARTS_AT_ONCE = Get(b"", limit=16)  # of one read
_ENTRIES: TypeAdapter[list[Entry]] = TypeAdapter(list[Entry])
_MAY_BE_STAGED = tuple(b'{"format":%d,' % n for n in range(STAGED_FORMAT, DROPPED_ROUTE_FORMAT + 1))
_NO_ENTRIES = b',"entries":[]}'


class MissingParts(Corrupt):
    """Not all parts that a value refers to are there. They go together with the update that names
    them: the caller looks whether it is still there."""


@dataclass(frozen=True, slots=True)
class StagedParts:
    """All parts of one reference, as they are stored."""

    items: tuple[KeyValue, ...]

    @classmethod
    def of(cls, ref: StagedRef, items: Sequence[KeyValue]) -> Turns[Self]:
        """Checks *items*, all that is stored under the name of the batch, in order. Raises
        MissingParts, and Corrupt for parts of another content."""
        keys = [bytes(BatchPartKey(ref.batch, number)) for number in range(ref.parts)]
        if [item.key for item in items] != keys:
            raise MissingParts(batch=ref.batch, expected=ref.parts, found=len(items))
        again = PartsReference(ref.batch)
        for item in items:
            again.add(item.value)
            yield
        if again.made() != ref:
            raise Corrupt(batch=ref.batch, expected=ref.digest, found=again.made().digest)
        return cls(tuple(items))

    def decoded(self) -> Turns[tuple[BatchPart, ...]]:
        """A part in a turn: it may be as large as a transaction. Raises as `decode`."""
        parts = []
        for item in self.items:
            parts.append(decode(BatchPart, item.value, key=item.key.decode()))
            yield
        return tuple(parts)

    def entries(self) -> Turns[tuple[Entry, ...]]:
        """The entries of a version. Raises as `decode`."""
        parts = yield from self.decoded()
        return tuple(entry for part in parts for entry in part.entries)

    def entry_lists(self) -> Turns[tuple[bytes, ...]]:
        """The same in JSON, which is not decoded: a list for each part. Raises Corrupt, and
        NewerFormat."""
        lists = []
        for item in self.items:
            lists.append(b"[%b]" % items_json(item.value, BatchPartKey.parse(item.key), ENTRIES))
            yield
        return tuple(lists)


async def read_parts(
    kv: ReadableStore, ref: StagedRef, *, deadline_ms: int, revision: int = 0
) -> StagedParts:
    """The parts that *ref* names. Raises as `StagedParts.of`."""
    keys = BatchPartKey.under(ref.batch)
    items: list[KeyValue] = []
    reader = pages(kv, keys, deadline_ms=deadline_ms, revision=revision, like=PARTS_AT_ONCE)
    async for page in reader:
        items += page.items
    return await by_turns(StagedParts.of(ref, items))


async def whole_update(
    kv: ReadableStore, update: CatalogUpdate, *, deadline_ms: int, revision: int = 0
) -> CatalogUpdate:
    """*update* with its entries, wherever they are. Raises as `read_parts`."""
    if update.staged is None:
        return update
    parts = await read_parts(kv, update.staged, deadline_ms=deadline_ms, revision=revision)
    return update.model_copy(update={"entries": await by_turns(parts.entries())})


def is_staged(raw: bytes) -> bool:
    """Whether the stored form of an update refers to parts, told without decoding it. No other
    update of those formats is without entries."""
    return raw.startswith(_MAY_BE_STAGED) and raw.endswith(_NO_ENTRIES)


@dataclass(frozen=True, slots=True)
class WholeItem:
    """A stored update with all its entries, few of which are decoded at once: a version of 10,000
    tables is 25 MB of JSON, and the interpreter stands still while one text is parsed."""

    item: KeyValue
    lists: tuple[bytes, ...] = ()
    """Lists of entries in JSON, one for each part; empty where the value itself has the entries."""

    @property
    def json_bytes(self) -> int:
        """Its size in memory: of the value as it is stored, and of the lists."""
        return len(self.item.value) + sum(map(len, self.lists))

    def decoded(self) -> CatalogUpdate:
        """Raises Corrupt, and NewerFormat."""
        key = self.item.key.decode()
        update = decode(CatalogUpdate, self.item.value, key=key)
        if not self.lists:
            return update
        entries = list[Entry]()
        for text in self.lists:
            try:
                entries += _ENTRIES.validate_json(text, strict=True)
            except ValidationError as error:
                raise Corrupt(key=key, errors=error.error_count(), value=text[:200]) from error
        return update.model_copy(update={"entries": tuple(entries)})


async def whole_item(kv: ReadableStore, item: KeyValue, *, deadline_ms: int) -> WholeItem:
    """A stored update with its entries, wherever they are. Raises as `read_parts`."""
    if not is_staged(item.value):
        return WholeItem(item)
    update = decode(CatalogUpdate, item.value, key=item.key.decode())
    assert update.staged is not None, "an update of its format refers to parts"
    parts = await read_parts(kv, update.staged, deadline_ms=deadline_ms)
    return WholeItem(item, await by_turns(parts.entry_lists()))
