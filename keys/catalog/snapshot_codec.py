"""A catalog as the parts of a snapshot, and back: pure functions.

Living tables come in the order of their names, so that nothing is sorted when they are read: a
catalog of a million tables is taken apart and put together in small pieces, between which other
tasks run.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar, cast

from immutables import Map

from keys.catalog.catalog import Catalog, SchemaName
from keys.catalog.maps import TenantSize, grown
from keys.catalog.ordered import CHUNK_MAX, Names
from keys.catalog.parts.placing import Placing
from keys.catalog.schema_versions import SchemaVersion, followed
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import HeldRegions, RawItem, TableHead, leaders_in
from keys.catalog.tables.opened_part import OpenedPart, set_of
from keys.catalog.tables.packed_tables import PackedTables, location_of
from keys.catalog.tables.part_filling import PartFilling, items_of_table, text_of_table
from keys.catalog.tables.table_map import TableMap
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.snapshot.snapshots import (
    CatalogItem,
    EarlierColumnsItem,
    PlacementItem,
    SchemaItem,
    SnapshotItem,
    SnapshotPartKey,
    SnapshotRef,
    TablespaceItem,
)
from keys.model.tables import RegionState
from metasrv_base.errors import Corrupt

K = TypeVar("K")
L = TypeVar("L")
V = TypeVar("V")


def items_of(catalog: Catalog) -> Iterator[SnapshotItem]:
    """Yields all that *catalog* holds, in the order of a snapshot."""
    yield from _namespaces(catalog)
    for table_id in _table_ids(catalog):
        yield from items_of_table(catalog.tables[table_id])


def _texts_of(catalog: Catalog) -> Iterator[bytes]:
    """Yields the JSON of `items_of`. A table that is as an earlier snapshot has it is copied."""
    for item in _namespaces(catalog):
        yield item.model_dump_json().encode()
    for table_id in _table_ids(catalog):
        text = catalog.tables.json_of(table_id)
        yield text_of_table(catalog.tables[table_id]) if text is None else text


def _namespaces(catalog: Catalog) -> Iterator[SnapshotItem]:
    for info in _by_name(catalog.catalogs):
        yield CatalogItem(info=info)
    for info in _by_name(catalog.leaving_catalogs):
        yield CatalogItem(info=info, leaving=True)
    for name, schema in sorted(catalog.schemas.items(), key=lambda pair: pair[0]):
        yield SchemaItem(info=schema, revision=catalog.schema_revisions[name])
    for _, schema in sorted(catalog.leaving.items(), key=lambda pair: pair[0]):
        yield SchemaItem(info=schema, revision=None)
    yield from _placing_items(catalog.placing)


def _placing_items(placing: Placing) -> Iterator[SnapshotItem]:
    for name_of_placement in sorted(placing.placements):
        yield PlacementItem(info=placing.placements[name_of_placement])
    for name_of_catalog in sorted(placing.tablespaces):
        spaces = placing.tablespaces[name_of_catalog]
        for name_of_space in sorted(spaces):
            yield TablespaceItem(info=spaces[name_of_space])


def _by_name(catalogs: Map[str, CatalogInfo]) -> Iterator[CatalogInfo]:
    return (catalogs[name] for name in sorted(catalogs))


def _table_ids(catalog: Catalog) -> Iterator[int]:
    """Yields living tables by name, then those without one, then dropped ones."""
    for schema_name in sorted(catalog.names):
        names = catalog.names[schema_name]
        yield from (names[name] for name in catalog.ordered[schema_name])
    yield from sorted(catalog.freed)
    for schema_name in sorted(catalog.gone):
        yield from sorted(catalog.gone[schema_name])


def parts_of(catalog: Catalog) -> Iterator[bytes]:
    """Yields the stored parts of a snapshot of *catalog*, each made when it is asked for."""
    filling = PartFilling(catalog.version)
    for text in _texts_of(catalog):
        filling.add(text)
        if filling.is_full:
            yield filling.sealed()
    if not filling.is_empty or not filling.number:
        yield filling.sealed()


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

    def get(self, key: K) -> V | None:
        return self._mutation.get(key)

    def __contains__(self, key: K) -> bool:
        return key in self._mutation

    def count(self, key: K, by: int) -> None:
        """Adds *by* to the number of *key*; for maps of numbers."""
        self._mutation[key] = cast("V", cast("int", self._mutation.get(key, 0)) + by)

    def finished(self) -> Map[K, V]:
        return self._mutation.finish()


class CatalogBuilder:
    """Puts a catalog together from the parts of one snapshot, in their order. Used once.

    Tables are not decoded: as much is read of each as the catalog's indexes hold.
    """

    def __init__(self, ref: SnapshotRef) -> None:
        self._ref = ref
        self._parts: list[bytes] = []
        self._catalogs = _Filling[str, CatalogInfo]()
        self._leaving_catalogs = _Filling[str, CatalogInfo]()
        self._schemas = _Filling[SchemaName, SchemaInfo]()
        self._revisions = _Filling[SchemaName, int]()
        self._leaving = _Filling[SchemaName, SchemaInfo]()
        self._locations = _Filling[int, int]()
        self._with_earlier: list[CatalogTable] = []
        """Tables whose earlier columns begin in the part before: one in each part at most."""
        self._names: dict[SchemaName, _Filling[str, int]] = defaultdict(_Filling)
        self._ordered: dict[SchemaName, _OrderedNames] = defaultdict(_OrderedNames)
        self._freed = _Filling[int, None]()
        self._gone: dict[SchemaName, _Filling[int, str]] = defaultdict(_Filling)
        self._nodes: dict[str, _Filling[int, HeldRegions]] = defaultdict(_Filling)
        self._led = _Filling[str, int]()
        self._led_placed: dict[int, _Filling[str, int]] = defaultdict(_Filling)
        self._held = _Filling[str, int]()
        self._states = _Filling[RegionState, int]()
        self._sizes = _Filling[str, TenantSize]()
        self._placing = Placing()
        self._earlier: tuple[int, tuple[SchemaVersion, ...]] = (0, ())
        """Sets of columns of the table that comes next, with its id."""
        self._begin = 0, 0
        """The part and the offset of the first of them."""

    def add(self, raw: bytes) -> None:
        """Takes the next part, as it is stored. Raises NewerFormat, and Corrupt for what is not
        that part."""
        version, number = self._ref.version, len(self._parts)
        part = OpenedPart.of(str(SnapshotPartKey(version, number)), raw)
        self._parts.append(raw)
        for offset, item in part.items(version, number):
            self._add_item(part, offset, item)

    def finished(self) -> Catalog:
        """Raises Corrupt if parts are missing."""
        if len(self._parts) != self._ref.parts or self._earlier[1]:
            raise Corrupt(
                snapshot=self._ref.version, expected=self._ref.parts, found=len(self._parts)
            )
        packed = PackedTables(self._ref.version, self._parts, self._locations.finished())
        tables = TableMap(packed)
        for table in self._with_earlier:
            tables = tables.set(table.info.table_id, table)
        return Catalog(
            version=self._ref.version,
            revision=self._ref.revision,
            at_ms=self._ref.at_ms,
            catalogs=self._catalogs.finished(),
            schemas=self._schemas.finished(),
            schema_revisions=self._revisions.finished(),
            leaving_catalogs=self._leaving_catalogs.finished(),
            leaving=self._leaving.finished(),
            tables=tables,
            names=_each(self._names),
            freed=self._freed.finished(),
            ordered=Map({name: names.finished() for name, names in self._ordered.items()}),
            gone=_each(self._gone),
            nodes=_each(self._nodes),
            led=self._led.finished(),
            led_placed=_each(self._led_placed),
            held=self._held.finished(),
            sizes=self._sizes.finished(),
            states=self._states.finished(),
            placing=self._placing,
        )

    def _add_item(self, part: OpenedPart, offset: int, item: RawItem) -> None:
        match item["what"]:
            case "table":
                self._add_table(part, offset, part.head(item))
            case "catalog":
                self._add_catalog(part.decoded(CatalogItem, offset))
            case "schema":
                self._add_schema(part.decoded(SchemaItem, offset))
            case "placement":
                info = part.decoded(PlacementItem, offset).info
                self._placing = self._placing.with_placement(info)
            case "tablespace":
                space = part.decoded(TablespaceItem, offset).info
                self._placing = self._placing.with_tablespace(space)
            case "earlier_columns":
                self._add_earlier(part.decoded(EarlierColumnsItem, offset), offset)
            case what:
                raise Corrupt(snapshot=self._ref.version, what=what)

    def _add_catalog(self, item: CatalogItem) -> None:
        catalogs = self._leaving_catalogs if item.leaving else self._catalogs
        catalogs[item.info.name] = item.info

    def _add_schema(self, item: SchemaItem) -> None:
        name = (item.info.catalog, item.info.name)
        if item.revision is None:
            self._leaving[name] = item.info
        else:
            self._schemas[name] = item.info
            self._revisions[name] = item.revision

    def _add_earlier(self, item: EarlierColumnsItem, offset: int) -> None:
        table_id, sets = self._earlier
        if sets and table_id != item.table_id:
            raise Corrupt(snapshot=self._ref.version, table_id=table_id, found="no table")
        if not sets:
            self._begin = len(self._parts) - 1, offset
        self._earlier = item.table_id, followed(sets, set_of(item))

    def _add_table(self, part: OpenedPart, offset: int, head: TableHead) -> None:
        (table_id, earlier), self._earlier = self._earlier, (0, ())
        if head.table_id in self._locations or (earlier and table_id != head.table_id):
            raise Corrupt(snapshot=self._ref.version, table_id=head.table_id, found="twice")
        number, (begins_in, begin) = len(self._parts) - 1, self._begin
        if earlier and begins_in == number:
            offset = begin
        elif earlier:
            self._with_earlier.append(replace(part.table(offset), earlier=earlier))
        self._locations[head.table_id] = location_of(number, offset, head.catalog_version)
        if head.is_dropped:
            self._gone[head.schema][head.table_id] = head.name
            return
        uses = head.placement, head.tablespace_id, head.copies
        self._placing = self._placing.with_use(head.table_id, *uses)
        if head.is_freed:
            self._freed[head.table_id] = None
        else:
            self._names[head.schema][head.name] = head.table_id
            self._ordered[head.schema].add(head.name)
        for node, regions in head.held.items():
            self._nodes[node][head.table_id] = regions
            if leaders := leaders_in(regions):
                self._led.count(node, leaders)
                if head.placement_id is not None:
                    self._led_placed[head.placement_id].count(node, leaders)
            self._held.count(node, len(regions))
        catalog, _ = head.schema
        self._sizes[catalog] = grown(self._sizes.get(catalog), len(head.states))
        for state in head.states:
            self._states.count(state, 1)


def _each(fillings: Mapping[K, _Filling[L, V]]) -> Map[K, Map[L, V]]:
    return Map({key: filling.finished() for key, filling in fillings.items()})


def catalog_of(ref: SnapshotRef, parts: Iterable[bytes]) -> Catalog:
    """The inverse of `parts_of`, at once. Raises Corrupt for parts that are not those of *ref*."""
    builder = CatalogBuilder(ref)
    for part in parts:
        builder.add(part)
    return builder.finished()
