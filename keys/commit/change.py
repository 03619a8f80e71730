"""A change of metadata as a transaction: the entries that the log gets, and the keys they write.

Nothing else writes a key of which the log tells (`Key.is_logged`).
"""

from keys.commit.entry_writes import writes_of
from keys.commit.txn import Snapshot, Txn
from keys.model.log import Entry, RouteChanged
from keys.model.tables import RegionRoute, TableRoute
from keys.store.kv import TXN_OPS_MAX
from keys.value import encode


def change(read: Snapshot, *entries: Entry) -> Txn:
    """Makes *entries* true if all of *read* is still as it was read.

    Each key that is written was read, or is derived from one that was.
    """
    writes: dict[bytes, bytes | None] = {}
    for key, value, source in writes_of(entries, read):
        assert bytes(source) in read.reads, f"{key} is written but {source} was never read"
        writes[bytes(key)] = None if value is None else encode(value)
    assert len(writes) <= TXN_OPS_MAX
    expect = {key: value_read.mod_revision for key, value_read in read.reads.items()}
    return Txn(expect, writes=writes, entries=entries)


def route_changed(route: TableRoute, changed: tuple[RegionRoute, ...]) -> RouteChanged:
    """The entry that puts *changed* in place of the regions of the same ids."""
    version = route.with_regions(changed).version
    return RouteChanged(table_id=route.table_id, version=version, regions=changed)
