"""Tables that changed, packed as those of a snapshot are: what they take in memory stays that of
their stored form, however many of them change (docs/decisions/0310). Pure.

A map of tables has a base and later packs above it. What changed becomes one more pack; of many
later ones one is made, without the tables that changed again; and where they hold many tables, a
new base is made of everything. So each table is copied a bounded number of times for each change.
"""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, cast

from immutables import Map

from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.packed_tables import PackedTables, TableCaches, location_of
from keys.catalog.tables.part_filling import PartFilling, text_of_table
from keys.catalog.tables.table_map import TableMap, TablePack
from metasrv_base.concurrency.turns import Turns, slices
from metasrv_base.pack_map import Layers, Pack

LATER_PACKS_MAX = 16
BASE_MIN = 65_536
"""Tables that later packs may hold above a small base."""
ENCODED_IN_TURN = 32  # tables: some 60 us each, of eight columns


class Depth(Enum):
    """The packs that are copied with what changed."""

    NONE = "none"
    LATER = "later"
    ALL = "all"


class Repacked(NamedTuple):
    layers: Layers[CatalogTable]
    packs: tuple[Pack[CatalogTable], ...]


def depth_of(tables: TableMap) -> Depth:
    """Returns how deep *tables* are to be packed now."""
    layers = tables.layers
    later = len(layers.later) + len(tables.changes)
    if layers.base is None or later > max(BASE_MIN, len(layers.base) // 2):
        return Depth.ALL
    return Depth.LATER if len(tables.packs) > LATER_PACKS_MAX else Depth.NONE


def repacked(tables: TableMap, version: int, depth: Depth) -> Turns[Repacked]:
    """Returns what `TableMap.rebased` takes, so that nothing of *tables* is held unpacked.

    *version*: of the catalog that has them.
    """
    base = tables.layers.base
    copied = _copied(tables, depth)
    filling, parts = PartFilling(version), list[bytes]()
    locations = Map[int, int]().mutate()
    for some in _texts(tables, copied):
        for table_id, text in some:
            changed_in = tables.version_of(table_id)
            assert changed_in is not None
            offset = filling.add(text)
            locations[table_id] = location_of(filling.number, offset, changed_in)
            if filling.is_full:
                parts.append(filling.sealed())
                yield
        yield
    if not filling.is_empty:
        parts.append(filling.sealed())
    pack = PackedTables(version, parts, locations.finish(), _caches(tables))
    if depth is Depth.ALL or base is None:
        return Repacked(Layers(pack, Map()), (pack,))
    layers = Layers(base, (yield from _later(tables, pack, base)))
    kept = (each for each in tables.packs if each not in copied and each is not base)
    return Repacked(layers, (base, *kept, pack))


def _copied(tables: TableMap, depth: Depth) -> tuple[Pack[CatalogTable], ...]:
    base = tables.layers.base
    match depth:
        case Depth.NONE:
            return ()
        case Depth.LATER:
            return tuple(pack for pack in tables.packs if pack is not base)
        case Depth.ALL:
            return tables.packs


def _texts(
    tables: TableMap, copied: tuple[Pack[CatalogTable], ...]
) -> Iterator[list[tuple[int, bytes]]]:
    """Yields the tables in the packs *copied*, and those that changed, some at a time."""
    for pack in copied:
        for part in cast("TablePack", pack).texts():
            yield [(each, text) for each, text in part if tables.lies_in(each, pack)]
    for some in slices(tables.changes.items(), ENCODED_IN_TURN):
        yield [
            (table_id, source.json_of(table_id) if isinstance(source, TablePack) else _text(source))
            for table_id, source in some
            if source is not None and source not in copied
        ]


def _text(source: CatalogTable | Pack[CatalogTable]) -> bytes:
    assert isinstance(source, CatalogTable)
    return text_of_table(source)


def _later(
    tables: TableMap, pack: PackedTables, base: Pack[CatalogTable]
) -> Turns[Map[int, Pack[CatalogTable] | None]]:
    later = tables.layers.later.mutate()
    for some in slices(pack):
        for table_id in some:
            later[table_id] = pack
        yield
    for deleted in slices(tables.changes.items()):
        for table_id, source in deleted:
            if source is None and table_id in base:
                later[table_id] = None
            elif source is None:
                later.pop(table_id, None)
        yield
    return later.finish()


def _caches(tables: TableMap) -> TableCaches | None:
    base = tables.layers.base
    return base.caches if isinstance(base, PackedTables) else None
