"""Tables as JSON, and the parts of a snapshot that are filled with such texts. Pure."""

from collections.abc import Iterator

from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.snapshot.snapshots import (
    EarlierColumnsItem,
    SnapshotItem,
    TableItem,
    first_offset,
    sealed,
)

PART_JSON_BYTES = 128 << 10
"""JSON from which a part is full. The item that fills it may be as large as a change of metadata,
which holds each table twice; so no part is larger than a transaction."""


def items_of_table(table: CatalogTable) -> Iterator[SnapshotItem]:
    """Yields the sets of columns that the table had, the oldest first, then the table."""
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


def text_of_table(table: CatalogTable) -> bytes:
    """Returns the JSON of `items_of_table`, which lies in one part then."""
    return b",".join(item.model_dump_json().encode() for item in items_of_table(table))


class PartFilling:
    """Fills the parts of one snapshot, one after the other."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._texts: list[bytes] = []
        self._end = first_offset(version, 0)
        self.number = 0
        """The number of the part that is filled now."""

    def add(self, text: bytes) -> int:
        """Adds one item or more; returns the offset of the first in the JSON of its part."""
        offset = self._end
        self._texts.append(text)
        self._end += len(text) + 1
        return offset

    @property
    def is_empty(self) -> bool:
        return not self._texts

    @property
    def is_full(self) -> bool:
        return self._end - first_offset(self._version, self.number) >= PART_JSON_BYTES

    def sealed(self) -> bytes:
        """Returns the part in its stored form, and begins the next."""
        raw = sealed(self._version, self.number, self._texts)
        self.number += 1
        self._texts, self._end = [], first_offset(self._version, self.number)
        return raw
