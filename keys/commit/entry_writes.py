"""The keys that entries of the catalog log write: one pure function, for every transaction.

A change of metadata is a list of entries. Followers apply the entries; the store has, in the same
transaction, the keys that are derived from them here. So the keys and the log cannot disagree.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar, assert_never, cast

from keys.key import Key
from keys.model.catalogs import CatalogNameKey, SchemaNameKey
from keys.model.log import (
    CatalogAltered,
    CatalogCreated,
    CatalogDropped,
    CatalogDropping,
    DroppedRouteChanged,
    Entry,
    PlacementAltered,
    PlacementCreated,
    PlacementDropped,
    PlacementRenamed,
    PlacingEntry,
    RouteChanged,
    SchemaCreated,
    SchemaDropped,
    SchemaDropping,
    TableAltered,
    TableCreated,
    TableDropped,
    TablePurged,
    TableRenamed,
    TablesExchanged,
    TablespaceAltered,
    TablespaceCreated,
    TablespaceDropped,
    TablespaceRenamed,
    TableUndropped,
)
from keys.model.placing.placements import (
    DEFAULT_PLACEMENT_ID,
    PlacedTable,
    PlacedTableKey,
    PlacementKey,
)
from keys.model.placing.tablespaces import GroupedTable, GroupedTableKey, TablespaceKey
from keys.model.removed import (
    RemovedTableInfo,
    RemovedTableInfoKey,
    RemovedTableNameKey,
    RemovedTableRoute,
    RemovedTableRouteKey,
)
from keys.model.tables import (
    DatanodeTable,
    DatanodeTableKey,
    TableInfo,
    TableInfoKey,
    TableNameKey,
    TableNameRecord,
    TableRoute,
    TableRouteKey,
)
from keys.value import StoredModel
from metasrv_base.concurrency.turns import Turns

V = TypeVar("V", bound=StoredModel)
ENTRIES_AT_ONCE = 8
"""Entries of one turn of the event loop: each may be of a table in another part of the snapshot,
which takes 3 ms to inflate."""
TableEntry = (
    TableCreated
    | TableUndropped
    | TablePurged
    | TableDropped
    | TableAltered
    | TableRenamed
    | TablesExchanged
    | RouteChanged
    | DroppedRouteChanged
)


class MetadataView(Protocol):
    """Metadata as of one moment, by key. It raises KeyError for a key that it does not cover."""

    def get(self, key: Key[V], /) -> V | None: ...


class KeyWrite(NamedTuple):
    """One key with its new value; None: it is deleted."""

    key: Key[Any]
    value: StoredModel | None
    source: Key[Any]
    """The key that was read for it: itself, or that of the route from which it is derived."""


def writes_of(entries: Iterable[Entry], before: MetadataView) -> tuple[KeyWrite, ...]:
    """The writes of *entries*, each applied behind the others; one write a key, in order.

    *before* covers what the first of them follows.
    """
    state = ViewAfter(before)
    for entry in entries:
        state.apply(entry)
    return tuple(state.writes.values())


def many_writes_of(entries: Iterable[Entry], before: MetadataView) -> Turns[tuple[KeyWrite, ...]]:
    """Does the same as `writes_of`, some entries in each turn of the event loop."""
    state = ViewAfter(before)
    for number, entry in enumerate(entries, start=1):
        state.apply(entry)
        if number % ENTRIES_AT_ONCE == 0:
            yield
    return tuple(state.writes.values())


@dataclass(slots=True)
class ViewAfter:
    """A view with what the entries so far have written."""

    before: MetadataView
    writes: dict[Key[Any], KeyWrite] = field(default_factory=dict)

    def apply(self, entry: Entry) -> None:
        for write in tuple(_writes(entry, self)):
            self.writes[write.key] = write

    def get(self, key: Key[V], /) -> V | None:
        write = self.writes.get(key)
        return self.before.get(key) if write is None else cast("V | None", write.value)

    def must(self, key: Key[V]) -> V:
        value = self.get(key)
        assert value is not None, f"an entry changes {key}, which does not exist"
        return value


def _writes(entry: Entry, state: ViewAfter) -> Iterator[KeyWrite]:
    match entry:
        case CatalogCreated() | CatalogAltered() | CatalogDropping():
            yield _put(CatalogNameKey(entry.info.name), entry.info)
        case CatalogDropped():
            yield _gone(CatalogNameKey(entry.name))
        case SchemaCreated() | SchemaDropping():
            yield _put(SchemaNameKey(entry.info.catalog, entry.info.name), entry.info)
        case SchemaDropped():
            yield _gone(SchemaNameKey(entry.catalog, entry.name))
        case (
            PlacementCreated()
            | PlacementAltered()
            | PlacementRenamed()
            | PlacementDropped()
            | TablespaceCreated()
            | TablespaceAltered()
            | TablespaceRenamed()
            | TablespaceDropped()
        ):
            yield from _writes_of_placing(entry)
        case _:
            yield from _writes_of_table(entry, state)


def _writes_of_placing(entry: PlacingEntry) -> Iterator[KeyWrite]:
    match entry:
        case PlacementCreated(info=info) | PlacementAltered(info=info):
            yield _put(PlacementKey(info.name), info)
        case PlacementRenamed(name=name, info=info):
            yield _gone(PlacementKey(name))
            yield _put(PlacementKey(info.name), info)
        case PlacementDropped(name=name):
            yield _gone(PlacementKey(name))
        case TablespaceCreated(info=space) | TablespaceAltered(info=space):
            yield _put(TablespaceKey(space.catalog, space.name), space)
        case TablespaceRenamed(name=name, info=space):
            yield _gone(TablespaceKey(space.catalog, name))
            yield _put(TablespaceKey(space.catalog, space.name), space)
        case TablespaceDropped(catalog=catalog, name=name):
            yield _gone(TablespaceKey(catalog, name))
        case _:
            assert_never(entry)


def _writes_of_table(entry: TableEntry, state: ViewAfter) -> Iterator[KeyWrite]:
    match entry:
        case TableCreated():
            yield from _table(entry.info, entry.route)
        case TableUndropped():
            yield from _forgotten(state.must(RemovedTableInfoKey(entry.info.table_id)).info)
            yield from _table(entry.info, entry.route)
        case TablePurged():
            yield from _forgotten(state.must(RemovedTableInfoKey(entry.table_id)).info)
        case TableDropped():
            yield from _dropped(entry, state)
        case TableAltered() | TableRenamed():
            yield from _changed((entry.info,), state)
        case TablesExchanged():
            yield from _changed((entry.first, entry.second), state)
        case RouteChanged():
            before = state.must(TableRouteKey(entry.table_id))
            after = before.with_regions(entry.regions)
            assert after.version == entry.version, "an entry of another route"
            yield from _route(before, after)
        case DroppedRouteChanged():
            key = RemovedTableRouteKey(entry.table_id)
            removed = state.must(key)
            moved = removed.route.with_regions(entry.regions)
            assert moved.version == entry.version, "an entry of another route"
            yield _put(key, removed.model_copy(update={"route": moved}))
        case _:
            assert_never(entry)


def _put(key: Key[V], value: V) -> KeyWrite:
    return KeyWrite(key, value, key)


def _gone(key: Key[Any]) -> KeyWrite:
    return KeyWrite(key, None, key)


def name_key(info: TableInfo) -> TableNameKey:
    return TableNameKey(info.catalog, info.schema_name, info.name)


def _borne(info: TableInfo) -> TableNameKey | None:
    """The name that a living table bears; None: a batch has dropped it."""
    return name_key(info) if info.dropping is None else None


def _table(info: TableInfo, route: TableRoute) -> Iterator[KeyWrite]:
    yield _put(TableInfoKey(info.table_id), info)
    yield _put(name_key(info), TableNameRecord(table_id=info.table_id))
    yield from _uses(None, info)
    yield from _route(None, route)


def _uses(before: TableInfo | None, after: TableInfo | None) -> Iterator[KeyWrite]:
    """The keys that tell of what a table uses, derived from it. *before* None: it is new; *after*
    None: it goes away."""
    old, new = _uses_of(before), _uses_of(after)
    either = before or after
    assert either is not None
    source = TableInfoKey(either.table_id)
    for key in old.keys() - new.keys():
        yield KeyWrite(key, None, source)
    for key, value in new.items():
        if old.get(key) != value:
            yield KeyWrite(key, value, source)


def _uses_of(info: TableInfo | None) -> dict[Key[Any], StoredModel]:
    """Nothing of a table that a batch has dropped: it only ends its statements."""
    uses = dict[Key[Any], StoredModel]()
    if info is None or info.dropping is not None:
        return uses
    profile, table_id = info.storage_profile, info.table_id
    if info.placement_id is not None or profile is not None:
        key = PlacedTableKey(info.placement_id or DEFAULT_PLACEMENT_ID, table_id)
        uses[key] = PlacedTable(table_id=table_id, storage_profile=profile)
    if info.tablespace_id is not None:
        uses[GroupedTableKey(info.tablespace_id, table_id)] = GroupedTable(table_id=table_id)
    return uses


def _changed(infos: tuple[TableInfo, ...], state: ViewAfter) -> Iterator[KeyWrite]:
    """Other definitions of living tables, and the names of those that bear others."""
    names_given, names_taken = list[TableNameKey](), dict[TableNameKey, int]()
    for info in infos:
        key, name = TableInfoKey(info.table_id), _borne(info)
        before = state.must(key)
        old = _borne(before)
        yield _put(key, info)
        yield from _uses(before, info)
        if name != old and old is not None:
            names_given.append(old)
        if name != old and name is not None:
            names_taken[name] = info.table_id
    for name, table_id in names_taken.items():
        yield _put(name, TableNameRecord(table_id=table_id))
    for name in names_given:
        if name not in names_taken:
            yield _gone(name)


def _dropped(entry: TableDropped, state: ViewAfter) -> Iterator[KeyWrite]:
    """The keys of a living table, moved below `__removed-`."""
    table_id, at_ms, by = entry.table_id, entry.dropped_at_ms, entry.dropped_by
    info, route = state.must(TableInfoKey(table_id)), state.must(TableRouteKey(table_id))
    yield _gone(TableInfoKey(table_id))
    if (name := _borne(info)) is not None:
        yield _gone(name)
    yield from _uses(info, None)
    yield from _route(route, None)
    removed = RemovedTableInfo(info=info, dropped_at_ms=at_ms, dropped_by=by)
    yield _put(RemovedTableInfoKey(table_id), removed)
    left = RemovedTableRoute(route=route, dropped_at_ms=at_ms, dropped_by=by)
    yield _put(RemovedTableRouteKey(table_id), left)
    yield _put(removed_name_key(info), TableNameRecord(table_id=table_id))


def removed_name_key(info: TableInfo) -> RemovedTableNameKey:
    return RemovedTableNameKey(info.catalog, info.schema_name, info.name, info.table_id)


def _forgotten(info: TableInfo) -> Iterator[KeyWrite]:
    """The keys of a dropped table, none of which stays."""
    yield _gone(RemovedTableInfoKey(info.table_id))
    yield _gone(RemovedTableRouteKey(info.table_id))
    yield _gone(removed_name_key(info))


def _route(before: TableRoute | None, after: TableRoute | None) -> Iterator[KeyWrite]:
    """A route and its reverse: TableRoute, and the DatanodeTable of every node that it names or
    named. *before* None: it is new; *after* None: it goes away."""
    either = before or after
    assert either is not None
    table_id = either.table_id
    key = TableRouteKey(table_id)
    yield KeyWrite(key, after, key)
    old = before.numbers_by_node() if before else {}
    new = after.numbers_by_node() if after else {}
    for node in old.keys() - new.keys():
        yield KeyWrite(DatanodeTableKey(node, table_id), None, key)
    for node, numbers in new.items():
        assert after is not None
        value = DatanodeTable(table_id=table_id, version=after.version, regions=numbers)
        yield KeyWrite(DatanodeTableKey(node, table_id), value, key)
