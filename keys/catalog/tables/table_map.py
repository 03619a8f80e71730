"""The tables of a catalog by id, as an immutable value: those of a snapshot, and what changed."""

from abc import ABC, abstractmethod
from collections.abc import Collection, ItemsView, Iterator, Mapping, ValuesView
from typing import Generic, Protocol, TypeVar, cast

from immutables import Map

from keys.catalog.tables.heads import TableHead


class Headed(Protocol):
    """A table that knows its head."""

    @property
    def head(self) -> TableHead: ...

    @property
    def catalog_version(self) -> int: ...


V = TypeVar("V", bound=Headed)


class TablePack(ABC, Collection[int], Generic[V]):
    """Tables by id that never change, each made when it is asked for."""

    @abstractmethod
    def get(self, table_id: int) -> V:
        """Raises KeyError."""

    @abstractmethod
    def version_of(self, table_id: int) -> int:
        """The version of the catalog that last changed the table, which is not made for it. Raises
        KeyError."""

    @abstractmethod
    def json_of(self, table_id: int) -> bytes:
        """The stored form of a table, which is not made for it. Raises KeyError."""

    @abstractmethod
    def items(self) -> Iterator[tuple[int, V]]:
        """Yields all tables, in the order in which making them costs least."""

    @abstractmethod
    def heads(self) -> Iterator[TableHead]:
        """Yields all heads; no table is made for them."""


class TableMap(Mapping[int, V]):
    """As `immutables.Map`: `set` and `delete` make another map, which shares what did not change.

    `values` and `items` are in the order of the packs, with the other tables behind them. Two maps
    are equal if they hold equal tables.
    """

    __slots__ = ("_changed", "_packs", "_size")

    def __init__(self, pack: TablePack[V] | None = None) -> None:
        self._packs: tuple[TablePack[V], ...] = () if pack is None else (pack,)
        """The first has every table that did not change; others, what was taken from other maps."""
        self._changed: Map[int, V | TablePack[V] | None] = Map()
        """Tables that are not as in the first pack: the table, its pack, or None: deleted."""
        self._size = 0 if pack is None else len(pack)

    def __getitem__(self, table_id: int) -> V:
        source = self._source(table_id)
        if source is None:
            raise KeyError(table_id)
        return source.get(table_id) if isinstance(source, TablePack) else source

    def __contains__(self, table_id: object) -> bool:
        source = self._source(cast("int", table_id))
        return table_id in source if isinstance(source, TablePack) else source is not None

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        for pack in self._packs[:1]:
            yield from (table_id for table_id in pack if table_id not in self._changed)
        yield from (table_id for table_id, source in self._changed.items() if source is not None)

    __hash__ = None  # type: ignore[assignment]

    def items(self) -> ItemsView[int, V]:
        return TableItems(self)

    def values(self) -> ValuesView[V]:
        return TableValues(self)

    def pairs(self) -> Iterator[tuple[int, V]]:
        """Yields ids with tables. What is made for it is not kept."""
        for pack in self._packs:
            yield from (pair for pair in pack.items() if self._source(pair[0]) is pack)
        for table_id, source in self._changed.items():
            if source is not None and not isinstance(source, TablePack):
                yield table_id, source

    def heads(self) -> Iterator[TableHead]:
        """Yields the head of each table, in the order of `items`."""
        for pack in self._packs:
            yield from (head for head in pack.heads() if self._source(head.table_id) is pack)
        for source in self._changed.values():
            if source is not None and not isinstance(source, TablePack):
                yield source.head

    def version_of(self, table_id: int) -> int | None:
        """The version of the catalog that last changed the table; None: there is none."""
        source = self._source(table_id)
        if isinstance(source, TablePack):
            return source.version_of(table_id) if table_id in source else None
        return None if source is None else source.catalog_version

    def json_of(self, table_id: int) -> bytes | None:
        """The stored form of a table; None where no pack has it. Raises KeyError."""
        source = self._source(table_id)
        return source.json_of(table_id) if isinstance(source, TablePack) else None

    def set(self, table_id: int, table: V) -> "TableMap[V]":
        return self._with(table_id, table)

    def taken(self, other: "TableMap[V]", table_id: int) -> "TableMap[V]":
        """This map with the table that *other* has. A table of a pack is not made for it."""
        assert table_id in other
        source = other._source(table_id)
        new = self._with(table_id, source)
        if isinstance(source, TablePack) and source not in new._packs:
            new._packs = (*new._packs, source)
        return new

    def delete(self, table_id: int) -> "TableMap[V]":
        """Raises KeyError."""
        if table_id not in self:
            raise KeyError(table_id)
        return self._with(table_id, None)

    def _source(self, table_id: int) -> V | TablePack[V] | None:
        first = self._packs[0] if self._packs else None
        return self._changed.get(table_id, first)

    def _with(self, table_id: int, source: V | TablePack[V] | None) -> "TableMap[V]":
        new: TableMap[V] = TableMap()
        new._packs = self._packs
        new._size = self._size + (source is not None) - (table_id in self)
        if source is None and not (self._packs and table_id in self._packs[0]):
            new._changed = self._changed.delete(table_id)
        else:
            new._changed = self._changed.set(table_id, source)
        return new


class TableItems(ItemsView[int, V]):
    _mapping: TableMap[V]

    def __iter__(self) -> Iterator[tuple[int, V]]:
        return self._mapping.pairs()


class TableValues(ValuesView[V]):
    _mapping: TableMap[V]

    def __iter__(self) -> Iterator[V]:
        return (table for _, table in self._mapping.pairs())
