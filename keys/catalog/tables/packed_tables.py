"""Tables of a snapshot that stay as they are stored: some 60 bytes for one that is like others.

Each is decoded when it is asked for. Those that were decoded lately, and the parts that were
inflated for them, are kept as far as two bounds allow.
"""

from collections.abc import Iterator, Sequence
from itertools import count

from immutables import Map

from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import RawItem, TableHead, head_in
from keys.catalog.tables.opened_part import OpenedPart
from keys.catalog.tables.table_map import TablePack
from keys.model.snapshot.snapshots import SnapshotPartKey
from keys.model.tables import Column
from metasrv_base.byte_cache import ByteCache
from metasrv_base.values.intern_fields import Shapes

DECODED_BYTES_MAX = 16 << 20
"""JSON of the tables that are kept decoded: some 8,000 of eight columns, of 2 KB each where they
share those, and 11 KB where not."""
INFLATED_BYTES_MAX = 16 << 20
"""JSON of the parts that are kept inflated."""
OFFSET_BITS, PART_BITS = 24, 32  # of a location; a part's JSON is 4 MiB at most


def location_of(part: int, offset: int, catalog_version: int) -> int:
    """The location of a table in a snapshot and its version, in one number: there are millions."""
    return (catalog_version << PART_BITS | part) << OFFSET_BITS | offset


class TableCaches:
    """Caches that the packs of one catalog share. Any thread may use it."""

    def __init__(self) -> None:
        self.shapes: Shapes[Column] = Shapes()
        self.decoded: ByteCache[tuple[int, int], CatalogTable] = ByteCache(DECODED_BYTES_MAX)
        """Decoded tables by pack and table."""
        self.inflated: ByteCache[tuple[int, int], OpenedPart] = ByteCache(INFLATED_BYTES_MAX)
        """Inflated parts by pack and part."""
        self.packs = count()
        """Numbers of packs: a key holds none that is gone."""


class PackedTables(TablePack):
    """Changes in nothing but what it keeps decoded. Any thread may use it."""

    def __init__(
        self,
        version: int,
        parts: Sequence[bytes],
        locations: Map[int, int],
        caches: TableCaches | None = None,
    ) -> None:
        """Packs the tables of one snapshot. *parts* are all its parts, as stored; *locations* has
        that of each table; *caches* are shared with other packs, None: its own."""
        self._version = version
        self._parts = parts
        self._locations = locations
        self.caches = caches or TableCaches()
        self._number = next(self.caches.packs)

    def __contains__(self, table_id: object) -> bool:
        return table_id in self._locations

    def __len__(self) -> int:
        return len(self._locations)

    def __iter__(self) -> Iterator[int]:
        return iter(self._locations)

    def version_of(self, table_id: int) -> int:
        return self._locations[table_id] >> (OFFSET_BITS + PART_BITS)

    def get(self, table_id: int) -> CatalogTable:
        key, caches = (self._number, table_id), self.caches
        table = caches.decoded.get(key)
        if table is None:
            part, offset = self._found(table_id)
            table = part.table(offset)
            caches.shapes, columns = caches.shapes.met(table.info.columns)
            vars(table.info)["columns"] = columns  # equal ones
            caches.decoded.put(key, table, len(part.table_json(offset)))
        return table

    def json_of(self, table_id: int) -> bytes:
        part, offset = self._found(table_id)
        return part.table_json(offset)

    def texts(self) -> Iterator[Sequence[tuple[int, bytes]]]:
        """Yields the tables of each part, by id: the stored form of each."""
        for number in range(len(self._parts)):
            part = self._opened(number)
            ids = (item["info"]["table_id"] for item in part.raw_tables())
            offsets = part.table_offsets()
            yield [
                (each, part.table_json(offset)) for each, offset in zip(ids, offsets, strict=True)
            ]

    def items(self) -> Iterator[tuple[int, CatalogTable]]:
        for number in range(len(self._parts)):
            for table in self._opened(number).tables():
                yield table.info.table_id, table

    def raw_items(self) -> Iterator[tuple[int, RawItem]]:
        for number in range(len(self._parts)):
            for item in self._opened(number).raw_tables():
                yield item["info"]["table_id"], item

    def heads(self) -> Iterator[TableHead]:
        return (head_in(item) for _, item in self.raw_items())

    def _found(self, table_id: int) -> tuple[OpenedPart, int]:
        """The part that holds the table, and its offset there."""
        location = self._locations[table_id]
        number = location >> OFFSET_BITS & ((1 << PART_BITS) - 1)
        inflated, key = self.caches.inflated, (self._number, number)
        part = inflated.get(key)
        if part is None:
            part = self._opened(number)
            inflated.put(key, part, len(part.text))
        return part, location & ((1 << OFFSET_BITS) - 1)

    def _opened(self, number: int) -> OpenedPart:
        key = SnapshotPartKey(self._version, number)
        return OpenedPart.of(str(key), self._parts[number])
