"""The tables of a catalog by id, as an immutable value: those of a snapshot, and what changed."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import cast

from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import RawItem, TableHead
from metasrv_base.pack_map import Pack, PackMap


class TablePack(Pack[CatalogTable]):
    """Tables by id that never change, and what can be said of them without decoding one."""

    @abstractmethod
    def version_of(self, table_id: int) -> int:
        """The version of the catalog that last changed the table. Raises KeyError."""

    @abstractmethod
    def json_of(self, table_id: int) -> bytes:
        """The stored form of a table. Raises KeyError."""

    @abstractmethod
    def texts(self) -> Iterator[Sequence[tuple[int, bytes]]]:
        """Yields all tables by id, with the stored form of each: some at a time."""

    @abstractmethod
    def raw_items(self) -> Iterator[tuple[int, RawItem]]:
        """Yields all tables as JSON that was parsed, in the order of `items`."""

    @abstractmethod
    def heads(self) -> Iterator[TableHead]:
        """Yields all heads, in the order of `items`."""


class TableMap(PackMap[CatalogTable]):
    """Nothing here decodes a table but the methods of a mapping that return one."""

    __slots__ = ()

    def version_of(self, table_id: int) -> int | None:
        """The version of the catalog that last changed the table; None: there is none."""
        source = self._source(table_id)
        if isinstance(source, TablePack):
            return source.version_of(table_id) if table_id in source else None
        return None if source is None else cast("CatalogTable", source).catalog_version

    def json_of(self, table_id: int) -> bytes | None:
        """The stored form of a table; None where no pack has it. Raises KeyError."""
        source = self._source(table_id)
        return source.json_of(table_id) if isinstance(source, TablePack) else None

    def heads(self) -> Iterator[TableHead]:
        """Yields the head of each table, in the order of `items`."""
        for pack in self._packs:
            heads = cast("TablePack", pack).heads()
            yield from (head for head in heads if self._source(head.table_id) is pack)
        yield from (table.head for table in self._own())

    def raw_items(self) -> Iterator[RawItem | CatalogTable]:
        """Yields each table in the order of `items`, as parsed JSON where a pack has it."""
        for pack in self._packs:
            items = cast("TablePack", pack).raw_items()
            yield from (item for table_id, item in items if self._source(table_id) is pack)
        yield from self._own()

    def _own(self) -> Iterator[CatalogTable]:
        """Tables that lie in no pack."""
        for source in self._changed.values():
            if source is not None and not isinstance(source, Pack):
                yield source
