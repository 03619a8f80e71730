"""A catalog as the parts of a snapshot, and back: pure functions.

Living tables come in the order of their names, so that nothing is sorted when they are read: a
catalog of a million tables is taken apart and put together in small pieces, between which other
tasks run.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from immutables import Map

from keys.catalog.catalog import Catalog, CatalogTable, SchemaName
from keys.catalog.ordered import CHUNK_MAX, Names
from keys.catalog.schema_versions import SchemaVersion, followed
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.snapshot.snapshots import (
    CatalogItem,
    EarlierColumnsItem,
    SchemaItem,
    SnapshotItem,
    SnapshotPart,
    SnapshotRef,
    TableItem,
    sealed,
)
from keys.model.tables import Column, RegionState
from metasrv_base.errors import Corrupt
from metasrv_base.intern_fields import Shapes, intern_fields

K = TypeVar("K")
L = TypeVar("L")
V = TypeVar("V")

PART_JSON_BYTES = 128 << 10
"""JSON from which a part is full. The item that fills it may be as large as a change of metadata,
which holds each table twice; so no part is larger than a transaction."""


def items_of(catalog: Catalog) -> Iterator[SnapshotItem]:
    """Yields all that *catalog* holds, in the order of a snapshot."""
    for info in _by_name(catalog.catalogs):
        yield CatalogItem(info=info)
    for info in _by_name(catalog.leaving_catalogs):
        yield CatalogItem(info=info, leaving=True)
    for name, schema in sorted(catalog.schemas.items(), key=lambda pair: pair[0]):
        yield SchemaItem(info=schema, revision=catalog.schema_revisions[name])
    for _, schema in sorted(catalog.leaving.items(), key=lambda pair: pair[0]):
        yield SchemaItem(info=schema, revision=None)
    for schema_name in sorted(catalog.names):
        names = catalog.names[schema_name]
        for name_of_table in catalog.ordered[schema_name]:
            yield from _items(catalog.tables[names[name_of_table]])
    for table_id in sorted(catalog.freed):
        yield from _items(catalog.tables[table_id])
    for schema_name in sorted(catalog.gone):
        for table_id in sorted(catalog.gone[schema_name]):
            yield from _items(catalog.tables[table_id])


def _by_name(catalogs: Map[str, CatalogInfo]) -> Iterator[CatalogInfo]:
    return (catalogs[name] for name in sorted(catalogs))


def _items(table: CatalogTable) -> Iterator[SnapshotItem]:
    for earlier in table.earlier:
        yield EarlierColumnsItem(
            table_id=table.info.table_id,
            schema_version=earlier.schema_version,
            catalog_version=earlier.catalog_version,
            at_ms=earlier.at_ms,
            columns=earlier.columns,
        )
    yield TableItem.model_construct(
        what="table",
        info=table.info,
        route=table.route,
        catalog_version=table.catalog_version,
        dropped_at_ms=table.dropped_at_ms,
        dropped_by=table.dropped_by,
        columns_schema_version=table.columns_schema_version,
        columns_catalog_version=table.columns_catalog_version,
        columns_at_ms=table.columns_at_ms,
    )


def parts_of(catalog: Catalog) -> Iterator[bytes]:
    """Yields the stored parts of a snapshot of *catalog*, each made when it is asked for."""
    texts, size, number = list[bytes](), 0, 0
    for item in items_of(catalog):
        text = item.model_dump_json().encode()
        texts.append(text)
        size += len(text)
        if size >= PART_JSON_BYTES:
            yield sealed(catalog.version, number, texts)
            texts, size, number = [], 0, number + 1
    if texts or not number:
        yield sealed(catalog.version, number, texts)


@dataclass(slots=True)
class _OrderedNames:
    """The names of one schema, given in rising order."""

    groups: list[tuple[tuple[str, ...], ...]] = field(default_factory=list)
    chunks: list[tuple[str, ...]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        if self.names and name <= self.names[-1]:
            raise Corrupt(snapshot="names are not in order", name=name)
        if len(self.names) == CHUNK_MAX:
            self._close_chunk()
        self.names.append(name)

    def _close_chunk(self) -> None:
        if len(self.chunks) == CHUNK_MAX:
            self.groups.append(tuple(self.chunks))
            self.chunks = []
        self.chunks.append(tuple(self.names))
        self.names = []

    def finished(self) -> Names:
        self._close_chunk()
        return Names((*self.groups, tuple(self.chunks)))


class _Filling(Generic[K, V]):
    """A map that is filled one by one; it is one piece of work at no time."""

    def __init__(self) -> None:
        self._mutation = Map[K, V]().mutate()

    def __setitem__(self, key: K, value: V) -> None:
        self._mutation[key] = value

    def __contains__(self, key: K) -> bool:
        return key in self._mutation

    def count(self, key: K, by: int) -> None:
        """Adds *by* to the number of *key*; for maps of numbers."""
        self._mutation[key] = cast("V", cast("int", self._mutation.get(key, 0)) + by)

    def finished(self) -> Map[K, V]:
        return self._mutation.finish()


class CatalogBuilder:
    """Puts a catalog together from the parts of one snapshot, in their order. Used once."""

    def __init__(self, ref: SnapshotRef) -> None:
        self._ref = ref
        self._next_part = 0
        self._catalogs = _Filling[str, CatalogInfo]()
        self._leaving_catalogs = _Filling[str, CatalogInfo]()
        self._schemas = _Filling[SchemaName, SchemaInfo]()
        self._revisions = _Filling[SchemaName, int]()
        self._leaving = _Filling[SchemaName, SchemaInfo]()
        self._tables = _Filling[int, CatalogTable]()
        self._names: dict[SchemaName, _Filling[str, int]] = defaultdict(_Filling)
        self._ordered: dict[SchemaName, _OrderedNames] = defaultdict(_OrderedNames)
        self._freed = _Filling[int, None]()
        self._gone: dict[SchemaName, _Filling[int, str]] = defaultdict(_Filling)
        self._nodes: dict[str, _Filling[int, int]] = defaultdict(_Filling)
        self._led = _Filling[str, int]()
        self._states = _Filling[RegionState, int]()
        self._shapes: Shapes[Column] = Shapes()
        self._earlier: tuple[int, tuple[SchemaVersion, ...]] = (0, ())
        """Sets of columns of the table that comes next, with its id."""

    def add(self, part: SnapshotPart) -> None:
        """Raises Corrupt for a part of another snapshot, or one that is not the next."""
        if (part.version, part.part) != (self._ref.version, self._next_part):
            raise Corrupt(snapshot=self._ref.version, expected=self._next_part, found=part.part)
        self._next_part += 1
        for item in part.items:
            self._add_item(item)

    def finished(self) -> Catalog:
        """Raises Corrupt if parts are missing."""
        if self._next_part != self._ref.parts or self._earlier[1]:
            raise Corrupt(
                snapshot=self._ref.version, expected=self._ref.parts, found=self._next_part
            )
        return Catalog(
            version=self._ref.version,
            revision=self._ref.revision,
            at_ms=self._ref.at_ms,
            catalogs=self._catalogs.finished(),
            schemas=self._schemas.finished(),
            schema_revisions=self._revisions.finished(),
            leaving_catalogs=self._leaving_catalogs.finished(),
            leaving=self._leaving.finished(),
            tables=self._tables.finished(),
            names=_each(self._names),
            freed=self._freed.finished(),
            ordered=Map({name: names.finished() for name, names in self._ordered.items()}),
            gone=_each(self._gone),
            nodes=_each(self._nodes),
            led=self._led.finished(),
            states=self._states.finished(),
            shapes=self._shapes,
        )

    def _add_item(self, item: SnapshotItem) -> None:
        match item:
            case CatalogItem():
                catalogs = self._leaving_catalogs if item.leaving else self._catalogs
                catalogs[item.info.name] = item.info
            case SchemaItem():
                self._add_schema(item)
            case EarlierColumnsItem():
                self._add_earlier(item)
            case TableItem():
                self._add_table(item)

    def _add_schema(self, item: SchemaItem) -> None:
        name = (item.info.catalog, item.info.name)
        if item.revision is None:
            self._leaving[name] = item.info
        else:
            self._schemas[name] = item.info
            self._revisions[name] = item.revision

    def _add_earlier(self, item: EarlierColumnsItem) -> None:
        table_id, sets = self._earlier
        if sets and table_id != item.table_id:
            raise Corrupt(snapshot=self._ref.version, table_id=table_id, found="no table")
        last = SchemaVersion(item.schema_version, item.catalog_version, item.at_ms, item.columns)
        self._earlier = item.table_id, followed(sets, last)

    def _add_table(self, item: TableItem) -> None:
        info, route = item.info, item.route
        (table_id, earlier), self._earlier = self._earlier, (0, ())
        if info.table_id in self._tables or (earlier and table_id != info.table_id):
            raise Corrupt(snapshot=self._ref.version, table_id=info.table_id, found="twice")
        intern_fields(
            info, info.partition, *info.indexes, *info.constraints, route, *route.region_routes
        )
        self._shapes, columns = self._shapes.met(info.columns)
        vars(info)["columns"] = columns
        self._tables[info.table_id] = CatalogTable(
            info,
            route,
            item.catalog_version,
            item.dropped_at_ms,
            item.dropped_by,
            item.columns_schema_version,
            item.columns_catalog_version,
            item.columns_at_ms,
            earlier,
        )
        schema = (info.catalog, info.schema_name)
        if item.dropped_at_ms is not None:
            self._gone[schema][info.table_id] = info.name
            return
        if info.dropping is None:
            self._names[schema][info.name] = info.table_id
            self._ordered[schema].add(info.name)
        else:
            self._freed[info.table_id] = None
        for node, numbers in route.numbers_by_node().items():
            self._nodes[node][info.table_id] = len(numbers)
            self._led.count(node, len(numbers))
        for region in route.region_routes:
            self._states.count(region.state, 1)


def _each(fillings: Mapping[K, _Filling[L, V]]) -> Map[K, Map[L, V]]:
    return Map({key: filling.finished() for key, filling in fillings.items()})


def catalog_of(ref: SnapshotRef, parts: Iterable[SnapshotPart]) -> Catalog:
    """The inverse of `parts_of`, at once. Raises Corrupt for parts that are not those of *ref*."""
    builder = CatalogBuilder(ref)
    for part in parts:
        builder.add(part)
    return builder.finished()
