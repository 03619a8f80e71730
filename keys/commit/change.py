"""A change of metadata as a transaction: the entries that the log gets, and the keys they write.

Nothing else writes a key of which the log tells (`Key.is_logged`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from keys.commit.entry_writes import MetadataView, many_writes_of, writes_of
from keys.commit.txn import Copies, LargeChange, MakeCopies, Snapshot, Txn
from keys.key import Key
from keys.model.log import CatalogUpdate, DroppedRouteChanged, Entry, RouteChanged
from keys.model.tables import RegionRoute, TableRoute
from keys.store.kv import TXN_OPS_MAX, Delete, Put
from keys.value import encode
from metasrv_base.concurrency.turns import TURN, Turns, sorting
from metasrv_base.errors import Refused

BYTES_AT_ONCE = 1 << 18
"""Bytes of the values that are encoded in one turn of the event loop: some ms."""


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
    turn = EncodedTurn()
    for write in writes:
        key, value = bytes(write.key), None if write.value is None else encode(write.value)
        copies.append(Delete(key) if value is None else Put(key, value))
        if turn.is_full_with(value):
            yield
    return (yield from sorting(copies, lambda write: write.key))


def route_changed(route: TableRoute, changed: tuple[RegionRoute, ...]) -> RouteChanged:
    """The entry that puts *changed* in place of the regions of the same ids."""
    version = route.with_regions(changed).version
    return RouteChanged(table_id=route.table_id, version=version, regions=changed)


def dropped_route_changed(
    route: TableRoute, changed: tuple[RegionRoute, ...]
) -> DroppedRouteChanged:
    """The same of a dropped table."""
    version = route.with_regions(changed).version
    return DroppedRouteChanged(table_id=route.table_id, version=version, regions=changed)


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
    turn, value_bytes = EncodedTurn(), 0
    for write in writes:
        value = None if write.value is None else encode(write.value)
        value_bytes += len(value or b"")
        if turn.is_full_with(value):
            yield
    return StoredSize(len(writes), value_bytes)


@dataclass(slots=True)
class EncodedTurn:
    """The values that are encoded in one turn of the event loop: TURN of them, and fewer where they
    have BYTES_AT_ONCE; the last may pass that."""

    values: int = 0
    size_bytes: int = 0

    def is_full_with(self, value: bytes | None) -> bool:
        """Counts a value, None for a key that is deleted. Returns whether the turn is over, and
        then begins the next."""
        self.values += 1
        self.size_bytes += len(value or b"")
        is_full = self.values >= TURN or self.size_bytes >= BYTES_AT_ONCE
        if is_full:
            self.values = self.size_bytes = 0
        return is_full


def draft_update(version: int, at_ms: int, entries: tuple[Entry, ...]) -> CatalogUpdate:
    """The update that *entries* would be, for a catalog that is moved forward in memory alone."""
    return CatalogUpdate(version=version, at_ms=at_ms, procedure=None, entries=entries)
