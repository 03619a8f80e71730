"""A part of a snapshot whose items are decoded one by one.

The parts of a snapshot are compared with its digest when they are read, so that they are what the
models wrote: what is not decoded is not validated either.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from keys.catalog.schema_versions import SchemaVersion, followed
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import RawItem, TableHead, head_in
from keys.model.snapshot.snapshots import EarlierColumnsItem, SnapshotPart, TableItem
from keys.model.tables import TableInfo, TableRoute
from keys.value import P, StoredModel, decode_json, json_of
from metasrv_base.errors import Corrupt
from metasrv_base.values.intern_fields import intern_fields

FIRST_FIELD = b'{"what":"'
"""The beginning of each item. Inside an item it stands behind no comma: texts have their quotes
escaped, and no list in an item has objects with this first field."""
BETWEEN, TABLE, END = b"," + FIRST_FIELD, FIRST_FIELD + b'table"', b"]}"
EARLIER = FIRST_FIELD + b'earlier_columns"'


@dataclass(frozen=True, slots=True)
class OpenedPart:
    key: str
    text: bytes
    """Its JSON."""

    @classmethod
    def of(cls, key: str, raw: bytes) -> "OpenedPart":
        """Unpacks the stored part *raw*. Raises NewerFormat for a newer packing, and Corrupt."""
        return cls(key, json_of(SnapshotPart, raw, key=key))

    def items(self, version: int, number: int) -> Iterator[tuple[int, RawItem]]:
        """Yields the offset of each item, and the item as parsed. Raises Corrupt unless this is
        that part of the snapshot of that version, and NewerFormat."""
        try:
            part = orjson.loads(self.text)
            self._check_format(SnapshotPart, part)
            stored = part["version"], part["part"]
            if stored != (version, number):
                raise Corrupt(key=self.key, expected=(version, number), found=stored)
            yield from zip(self._offsets(), part["items"], strict=True)
        except (ValueError, KeyError, TypeError) as error:
            raise Corrupt(key=self.key, value=self.text[:200]) from error

    def head(self, item: RawItem) -> TableHead:
        """The head of a table among `items`. Raises NewerFormat, and Corrupt."""
        try:
            self._check_format(TableInfo, item["info"])
            self._check_format(TableRoute, item["route"])
            return head_in(item)
        except (ValueError, KeyError, TypeError) as error:
            raise Corrupt(key=self.key, value=str(item)[:200]) from error

    def raw_tables(self) -> Iterator[RawItem]:
        """All its tables, as parsed."""
        return (item for item in orjson.loads(self.text)["items"] if item["what"] == "table")

    def tables(self) -> Iterator[CatalogTable]:
        """All its tables."""
        return map(self.table, self.table_offsets())

    def table_offsets(self) -> Iterator[int]:
        """Yields the offset of each table: of the first of the sets of columns that it had, if
        those are here."""
        first: int | None = None
        for offset in self._offsets():
            if self.text.startswith(TABLE, offset):
                yield offset if first is None else first
                first = None
            elif first is None and self.text.startswith(EARLIER, offset):
                first = offset

    def table(self, offset: int) -> CatalogTable:
        """The table at *offset*, with the earlier sets of columns that begin there."""
        sets: tuple[SchemaVersion, ...] = ()
        while self.text.startswith(EARLIER, offset):
            earlier = self.decoded(EarlierColumnsItem, offset)
            sets, offset = followed(sets, set_of(earlier)), self.end_of(offset) + 1
        item = self.decoded(TableItem, offset)
        info, route = item.info, item.route
        intern_fields(
            info, info.partition, *info.indexes, *info.constraints, route, *route.region_routes
        )
        return CatalogTable(
            info,
            route,
            item.catalog_version,
            item.dropped_at_ms,
            item.dropped_by,
            item.columns_schema_version,
            item.columns_catalog_version,
            item.columns_at_ms,
            sets,
        )

    def decoded(self, kind: type[P], offset: int) -> P:
        """The item at *offset*. Raises NewerFormat, and Corrupt."""
        return decode_json(kind, self.json(offset), key=self.key)

    def json(self, offset: int) -> bytes:
        """The JSON of the item at *offset*."""
        return self.text[offset : self.end_of(offset)]

    def table_json(self, offset: int) -> bytes:
        """The JSON of the table at *offset*, behind that of the earlier sets of columns that begin
        there."""
        last = offset
        while self.text.startswith(EARLIER, last):
            last = self.end_of(last) + 1
        return self.text[offset : self.end_of(last)]

    def end_of(self, offset: int) -> int:
        """The offset of the first byte behind the item at *offset*."""
        end = self.text.find(BETWEEN, offset + 1)
        return end if end >= 0 else len(self.text) - len(END)

    def _offsets(self) -> Iterator[int]:
        offset = self.text.find(FIRST_FIELD)
        while offset > 0:
            yield offset
            offset = self.text.find(BETWEEN, offset + 1) + 1

    def _check_format(self, kind: type[StoredModel], value: RawItem) -> None:
        if value["format"] > kind.newest_format:
            decode_json(kind, orjson.dumps(value), key=self.key)
            raise Corrupt(key=self.key, format=value["format"])


def set_of(item: EarlierColumnsItem) -> SchemaVersion:
    return SchemaVersion(item.schema_version, item.catalog_version, item.at_ms, item.columns)
