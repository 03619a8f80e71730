"""The catalog of an old version, folded from the log without the versions in between. Pure.

A later catalog is at hand: a table that it has as of a version up to the wanted one was the same
then. Its entries are not decoded, and it is shared. What is left costs a look at each update.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import orjson
from pydantic import TypeAdapter, ValidationError

from keys.catalog.assembled import assembled
from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.table_map import TableMap
from keys.commit.staged_parts import WholeItem
from keys.model import log
from keys.model.log import CatalogUpdate, Entry
from keys.model.tables import TableInfo
from keys.value import decode
from metasrv_base.concurrency.turns import Turns
from metasrv_base.errors import Corrupt
from metasrv_base.values.intern_fields import intern_fields

_ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)
_OF_TABLES = ("table.", "tables.", "route.")
"""Beginnings of the names of entries that change tables alone."""
TABLE_BYTES = 400  # of memory for a table of a catalog, were all that it says shared: measured


@dataclass(slots=True)
class Rebuild:
    """Takes the updates above *base* in order, up to version *to*; `finished` is the catalog then.

    *later*: a catalog of version *to* or above.
    """

    base: Catalog
    later: Catalog
    to: int
    version: int = field(init=False)
    """Version of the last update taken."""
    held_bytes: int = 0
    """JSON of the tables that are not shared with *later*."""
    _revision: int = field(init=False)
    _at_ms: int = field(init=False)
    _namespaces: Catalog = field(init=False)
    _tables: TableMap = field(init=False)
    _sizes: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        base, empty = self.base, Catalog()
        self.version, self._revision, self._at_ms = base.version, base.revision, base.at_ms
        self._tables = base.tables
        self._namespaces = replace(
            base,
            tables=empty.tables,
            names=empty.names,
            ordered=empty.ordered,
            freed=empty.freed,
            gone=empty.gone,
            nodes=empty.nodes,
            led=empty.led,
            led_placed=empty.led_placed,
            held=empty.held,
            sizes=empty.sizes,
            states=empty.states,
            placing=base.placing.unused(),
            shapes=self.later.shapes,
        )

    def take(self, updates: Iterable[WholeItem]) -> None:
        """Raises Corrupt for a gap, or an entry that cannot follow."""
        for item in updates:
            self._take(item)

    def finished(self) -> Turns[Catalog]:
        assert self.version == self.to, "every update was taken"
        namespaces = replace(
            self._namespaces, version=self.version, revision=self._revision, at_ms=self._at_ms
        )
        return assembled(namespaces, self._tables)

    def _take(self, item: WholeItem) -> None:
        key, value = item.item.key.decode(), item.item.value
        update, others = _parsed(value, key), list[Entry]()
        if update.version != self.version + 1:
            raise Corrupt(log="gap", expected=self.version + 1, found=update.version)
        self.version, self._at_ms = update.version, update.at_ms
        self._revision = item.item.mod_revision
        for entries in (update.entries, *(_entries_in(text, key) for text in item.lists)):
            for entry in entries:
                if entry.table_ids is None:
                    others.append(_decoded(orjson.dumps(entry.raw), key))
                else:
                    self._table_entry(entry.table_ids, entry.raw, key)
        if others:
            self._apply_others(decode(CatalogUpdate, value, key=key), others)

    def _apply_others(self, update: CatalogUpdate, others: Iterable[Entry]) -> None:
        """Applies what is not of tables, as any version does. *update*: of which they are."""
        before = replace(self._namespaces, version=update.version - 1)
        only = update.model_copy(update={"entries": tuple(others)})
        self._namespaces = before.apply(only, self._revision)

    def _table_entry(self, table_ids: tuple[int, ...], raw: object, key: str) -> None:
        settled = [self._is_settled(table_id) for table_id in table_ids]
        if all(settled):
            return
        text = orjson.dumps(raw)
        self._apply(_decoded(text, key), len(text))

    def _is_settled(self, table_id: int) -> bool:
        """Whether the later catalog has the table as it is at the end. It is taken over with its
        last change: until then another table may bear its name."""
        version = self.later.tables.version_of(table_id)
        if version is None or version > self.to:
            return False
        if version == self.version:
            self._tables = self._tables.taken(self.later.tables, table_id)
            self.held_bytes -= self._sizes.pop(table_id, 0)
        return True

    def _apply(self, entry: Entry, size: int) -> None:
        match entry:
            case log.TableCreated(info=info):
                if info.table_id in self._tables:
                    raise Corrupt(entry=entry.op, table_id=info.table_id)
                self._keep(CatalogTable.created(info, entry.route, self.version, self._at_ms), size)
            case log.TableUndropped(info=info):
                gone = self._standing(entry, info.table_id, dropped=True)
                table = replace(gone, route=entry.route, dropped_at_ms=None, dropped_by=None)
                self._keep(table.changed(info, self.version, self._at_ms), size)
            case log.TableRenamed(info=info) | log.TableAltered(info=info):
                self._redefine(entry, info, size)
            case log.TablesExchanged():
                for info in (entry.first, entry.second):
                    if not self._is_settled(info.table_id):
                        self._redefine(entry, info, size)
            case _:
                self._apply_to_whole(entry)

    def _apply_to_whole(self, entry: Entry) -> None:
        """Applies what leaves the definition as it is."""
        match entry:
            case log.TableDropped():
                table = self._standing(entry, entry.table_id)
                by, at_ms = entry.dropped_by, entry.dropped_at_ms
                dropped = replace(table, dropped_at_ms=at_ms, dropped_by=by)
                self._keep(replace(dropped, catalog_version=self.version))
            case log.TablePurged():
                self._standing(entry, entry.table_id, dropped=True)
                self._tables = self._tables.delete(entry.table_id)
                self.held_bytes -= self._sizes.pop(entry.table_id, 0)
            case log.RouteChanged() | log.DroppedRouteChanged():
                is_dropped = isinstance(entry, log.DroppedRouteChanged)
                table = self._standing(entry, entry.table_id, dropped=is_dropped)
                route = table.route.with_regions(entry.regions)
                if route.version != entry.version:
                    raise Corrupt(entry=entry.op, expected=route.version, found=entry.version)
                self._keep(replace(table, route=route, catalog_version=self.version))
            case _:
                raise AssertionError(entry.op)

    def _redefine(self, entry: Entry, info: TableInfo, size: int) -> None:
        table = self._standing(entry, info.table_id)
        self._keep(table.changed(info, self.version, self._at_ms), size)

    def _standing(self, entry: Entry, table_id: int, *, dropped: bool = False) -> CatalogTable:
        table = self._tables.get(table_id)
        if table is None or (table.dropped_at_ms is not None) != dropped:
            raise Corrupt(entry=entry.op, table_id=table_id)
        return table

    def _keep(self, table: CatalogTable, size: int | None = None) -> None:
        """Keeps *table*. *size* is the length of its JSON that it does not share; None if that is
        as before."""
        table_id = table.info.table_id
        self._tables = self._tables.set(table_id, table)
        if size is None:
            return
        self.held_bytes += size - self._sizes.get(table_id, 0)
        self._sizes[table_id] = size
        self._slim(table)

    def _slim(self, table: CatalogTable) -> None:
        info, route = table.info, table.route
        intern_fields(
            info, info.partition, *info.indexes, *info.constraints, route, *route.region_routes
        )
        shapes, columns = self._namespaces.shapes.met(info.columns)
        vars(info)["columns"] = columns  # equal ones
        if shapes is not self._namespaces.shapes:
            self._namespaces = replace(self._namespaces, shapes=shapes)


class _ParsedEntry(NamedTuple):
    table_ids: tuple[int, ...] | None
    """The tables that it changes; None: it is not of tables."""
    raw: Mapping[str, Any]


class _ParsedUpdate(NamedTuple):
    """The fields of an update that the fold reads."""

    version: int
    at_ms: int
    entries: list[_ParsedEntry]
    """The entries that its value has."""


def _parsed(value: bytes, key: str) -> _ParsedUpdate:
    """Raises Corrupt for what is no update, and NewerFormat."""
    try:
        raw = orjson.loads(CatalogUpdate.unpack(value))
        if raw["format"] <= CatalogUpdate.newest_format:
            entries = _parsed_entries(raw["entries"])
            return _ParsedUpdate(raw["version"], raw["at_ms"], entries)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(key=key, value=value[:200]) from error
    decode(CatalogUpdate, value, key=key)
    raise Corrupt(key=key, value=value[:200])


def _entries_in(text: bytes, key: str) -> list[_ParsedEntry]:
    """The entries of a part. Raises Corrupt."""
    try:
        return _parsed_entries(orjson.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(key=key, value=text[:200]) from error


def _parsed_entries(raw: Iterable[Mapping[str, Any]]) -> list[_ParsedEntry]:
    return [
        _ParsedEntry(_ids_of(entry) if entry["op"].startswith(_OF_TABLES) else None, entry)
        for entry in raw
    ]


def _decoded(text: bytes, key: str) -> Entry:
    try:
        return _ENTRY.validate_json(text, strict=True)
    except ValidationError as error:
        raise Corrupt(key=key, errors=error.error_count(), value=text[:200]) from error


def _ids_of(entry: Mapping[str, Any]) -> tuple[int, ...]:
    """The tables that an entry changes."""
    if "first" in entry:
        return entry["first"]["table_id"], entry["second"]["table_id"]
    return (entry.get("info", entry)["table_id"],)
