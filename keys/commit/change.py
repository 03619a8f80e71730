"""A change of metadata as a transaction: the entries that the log gets, and the keys they write.

Nothing else writes a key of which the log tells (`Key.is_logged`).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from keys.commit.entry_writes import MetadataView, many_writes_of, writes_of
from keys.commit.txn import Copies, LargeChange, MakeCopies, Snapshot, Txn
from keys.key import Key
from keys.model.log import CatalogUpdate, Entry, RouteChanged
from keys.model.tables import RegionRoute, TableRoute
from keys.store.kv import TXN_OPS_MAX, Delete, Put
from keys.value import encode
from metasrv_base.concurrency.turns import Turns, slices
from metasrv_base.errors import Refused


def change(read: Snapshot, *entries: Entry) -> Txn:
    """Makes *entries* true if all of *read* is still as it was read.

    Each key that is written was read, or is derived from one that was. Raises
    Refused("ddl-too-large").
    """
    writes: dict[bytes, bytes | None] = {}
    for key, value, source in writes_of(entries, read):
        assert bytes(source) in read.reads, f"{key} is written but {source} was never read"
        if value is None and _is_absent(read, key):  # it came and went with these entries
            continue
        writes[bytes(key)] = None if value is None else encode(value)
    if len(writes) > TXN_OPS_MAX:
        raise Refused("ddl-too-large", needs=f"{len(writes)} operations", limit=TXN_OPS_MAX)
    expect = {key: value_read.mod_revision for key, value_read in read.reads.items()}
    return Txn(expect, writes=writes, entries=entries)


def large_change(entries: tuple[Entry, ...], copies: MakeCopies) -> Txn:
    """Makes *entries* true, which one transaction cannot hold: their keys are written after it.
    *copies*: as LargeChange has it."""
    return Txn(entries=entries, large=LargeChange(copies))


def copies_of(entries: Iterable[Entry], before: MetadataView) -> Turns[Copies]:
    """The writes that *entries* come to, in the order of their keys. *before*: the catalog that
    they follow."""
    copies: list[Put | Delete] = []
    writes = yield from many_writes_of(entries, before)
    for some in slices(writes):
        for write in some:
            key = bytes(write.key)
            copies.append(Delete(key) if write.value is None else Put(key, encode(write.value)))
        yield
    return tuple(sorted(copies, key=lambda write: write.key))


def route_changed(route: TableRoute, changed: tuple[RegionRoute, ...]) -> RouteChanged:
    """The entry that puts *changed* in place of the regions of the same ids."""
    version = route.with_regions(changed).version
    return RouteChanged(table_id=route.table_id, version=version, regions=changed)


def _is_absent(read: Snapshot, key: Key[Any]) -> bool:
    stored = read.reads.get(bytes(key))
    return stored is not None and stored.mod_revision == 0


class StoredSize(NamedTuple):
    """The writes that entries come to."""

    operations: int
    value_bytes: int


def size_of(entries: Iterable[Entry], before: MetadataView) -> Turns[StoredSize]:
    """The keys of *entries*, without their log."""
    writes = yield from many_writes_of(entries, before)
    value_bytes = 0
    for some in slices(writes):
        value_bytes += sum(len(encode(write.value)) for write in some if write.value is not None)
        yield
    return StoredSize(len(writes), value_bytes)


def draft_update(version: int, at_ms: int, entries: tuple[Entry, ...]) -> CatalogUpdate:
    """The update that *entries* would be, for a catalog that is moved forward in memory alone."""
    return CatalogUpdate(version=version, at_ms=at_ms, procedure=None, entries=entries)
