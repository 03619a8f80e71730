"""Maps whose values may lie packed: each is made when somebody asks for it."""

from abc import ABC, abstractmethod
from collections.abc import Collection, ItemsView, Iterator, Mapping, ValuesView
from typing import Generic, Self, TypeVar, cast

from immutables import Map

V = TypeVar("V")


class Pack(ABC, Collection[int], Generic[V]):
    """Values by number that never change, each made when it is asked for."""

    @abstractmethod
    def get(self, number: int) -> V:
        """Raises KeyError."""

    @abstractmethod
    def items(self) -> Iterator[tuple[int, V]]:
        """Yields all values, in the order in which making them costs least."""


class PackMap(Mapping[int, V]):
    """As `immutables.Map`: `set` and `delete` make another map, which shares what did not change.

    `values` and `items` are in the order of the packs, with the other values behind them. Two maps
    are equal if they hold equal values.
    """

    __slots__ = ("_changed", "_packs", "_size")

    def __init__(self, pack: Pack[V] | None = None) -> None:
        self._packs: tuple[Pack[V], ...] = () if pack is None else (pack,)
        """The first has every value that did not change; others, what was taken from other maps."""
        self._changed: Map[int, V | Pack[V] | None] = Map()
        """Values that are not as in the first pack: the value, its pack, or None: deleted."""
        self._size = 0 if pack is None else len(pack)

    def __getitem__(self, number: int) -> V:
        source = self._source(number)
        if source is None:
            raise KeyError(number)
        return source.get(number) if isinstance(source, Pack) else source

    def __contains__(self, number: object) -> bool:
        source = self._source(cast("int", number))
        return number in source if isinstance(source, Pack) else source is not None

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        for pack in self._packs[:1]:
            yield from (number for number in pack if number not in self._changed)
        yield from (number for number, source in self._changed.items() if source is not None)

    __hash__ = None  # type: ignore[assignment]

    def items(self) -> ItemsView[int, V]:
        return PackedItems(self)

    def values(self) -> ValuesView[V]:
        return PackedValues(self)

    def pairs(self) -> Iterator[tuple[int, V]]:
        """Yields numbers with values. What is made for it is not kept."""
        for pack in self._packs:
            yield from (pair for pair in pack.items() if self._source(pair[0]) is pack)
        for number, source in self._changed.items():
            if source is not None and not isinstance(source, Pack):
                yield number, source

    def set(self, number: int, value: V) -> Self:
        return self._with(number, value)

    def taken(self, other: Self, number: int) -> Self:
        """This map with the value that *other* has. It is not made for it."""
        assert number in other
        source = other._source(number)
        new = self._with(number, source)
        if isinstance(source, Pack) and source not in new._packs:
            new._packs = (*new._packs, source)
        return new

    def delete(self, number: int) -> Self:
        """Raises KeyError."""
        if number not in self:
            raise KeyError(number)
        return self._with(number, None)

    def _source(self, number: int) -> V | Pack[V] | None:
        first = self._packs[0] if self._packs else None
        return self._changed.get(number, first)

    def _with(self, number: int, source: V | Pack[V] | None) -> Self:
        new = type(self)()
        new._packs = self._packs
        new._size = self._size + (source is not None) - (number in self)
        if source is None and not (self._packs and number in self._packs[0]):
            new._changed = self._changed.delete(number)
        else:
            new._changed = self._changed.set(number, source)
        return new


class PackedItems(ItemsView[int, V]):
    _mapping: PackMap[V]

    def __iter__(self) -> Iterator[tuple[int, V]]:
        return self._mapping.pairs()


class PackedValues(ValuesView[V]):
    _mapping: PackMap[V]

    def __iter__(self) -> Iterator[V]:
        return (value for _, value in self._mapping.pairs())
