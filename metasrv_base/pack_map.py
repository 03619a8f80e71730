"""Maps whose values may lie packed: each is made when somebody asks for it."""

from abc import ABC, abstractmethod
from collections.abc import Collection, ItemsView, Iterator, Mapping, ValuesView
from typing import Generic, Self, TypeVar, cast

from immutables import Map

from metasrv_base.values.frozen import frozen

V = TypeVar("V")


class Pack(ABC, Collection[int], Generic[V]):
    """Values by number that never change, each made when it is asked for."""

    @abstractmethod
    def get(self, number: int) -> V:
        """Raises KeyError."""

    @abstractmethod
    def items(self) -> Iterator[tuple[int, V]]:
        """Yields all values, in the order in which making them costs least."""


@frozen
class Layers(Generic[V]):
    """Values that all lie in packs."""

    base: Pack[V] | None
    """Has every value that did not change since it was made."""
    later: Map[int, Pack[V] | None]
    """Values that are not as in the base: their packs, or None: deleted."""

    def source(self, number: int) -> Pack[V] | None:
        """Returns the pack that has the value, if there is such a value; None if it was deleted, or
        there is no pack."""
        return self.later.get(number, self.base)

    def has(self, number: int) -> bool:
        source = self.source(number)
        return source is not None and number in source


class PackMap(Mapping[int, V]):
    """A persistent map like `immutables.Map`: `set` and `delete` make another map, which shares
    what did not change.

    `values` and `items` are in the order of the packs, with the other values behind them. Two maps
    are equal if they hold equal values. A value that is set is held as it is, until the map is put
    above packs that have it (`rebased`).
    """

    __slots__ = ("_changed", "_layers", "_packs", "_size")

    def __init__(self, pack: Pack[V] | None = None) -> None:
        self._layers: Layers[V] = Layers(pack, Map())
        self._packs: tuple[Pack[V], ...] = () if pack is None else (pack,)
        """Every pack that has a value: the base first."""
        self._changed: Map[int, V | Pack[V] | None] = Map()
        """Values that are not as in the layers: the value, its pack, or None: deleted."""
        self._size = 0 if pack is None else len(pack)

    def __getitem__(self, number: int) -> V:
        source = self._source(number)
        if source is None:
            raise KeyError(number)
        return source.get(number) if isinstance(source, Pack) else source

    def __contains__(self, number: object) -> bool:
        source = self._source(cast("int", number))
        if source is None:
            return False
        return number in source if isinstance(source, Pack) else True

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        base, later = self._layers.base, self._layers.later
        for number in base or ():
            if number not in self._changed and number not in later:
                yield number
        for number, pack in later.items():
            if pack is not None and number not in self._changed:
                yield number
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

    # Packing what changed ------------------------------------------------------------------------

    @property
    def layers(self) -> Layers[V]:
        """The layers below the changes."""
        return self._layers

    @property
    def packs(self) -> tuple[Pack[V], ...]:
        """All packs that values lie in, the base first."""
        return self._packs

    @property
    def changes(self) -> Map[int, V | Pack[V] | None]:
        """Values that changed since the last `rebased`; one may lie in a pack of another map.
        None: deleted."""
        return self._changed

    def lies_in(self, number: int, pack: Pack[V]) -> bool:
        return self._source(number) is pack

    def is_above(self, before: Self) -> bool:
        """Whether this map has come of *before* by changes alone."""
        return self._layers is before._layers

    def rebased(self, before: Self, layers: Layers[V], packs: tuple[Pack[V], ...]) -> Self:
        """This map above *layers*, which hold what *before* holds, and lie in *packs*, the base
        first. The work is that of what changed in both."""
        assert self.is_above(before)
        new = type(self)()
        new._layers, new._size = layers, self._size
        changed: dict[int, V | Pack[V] | None] = {
            number: None
            for number in before._changed
            if number not in self._changed and layers.has(number)
        }
        changed |= {
            number: source
            for number, source in self._changed.items()
            if before._changed.get(number, _ABSENT) is not source
        }
        new._changed = Map(changed)
        more = (each for each in changed.values() if isinstance(each, Pack))
        new._packs = tuple(dict.fromkeys((*packs, *more)))
        return new

    def _source(self, number: int) -> V | Pack[V] | None:
        source = self._changed.get(number, _ABSENT)
        return self._layers.source(number) if source is _ABSENT else cast("V | None", source)

    def _with(self, number: int, source: V | Pack[V] | None) -> Self:
        new = type(self)()
        new._layers, new._packs = self._layers, self._packs
        new._size = self._size + (source is not None) - (number in self)
        if source is None and not self._layers.has(number):
            new._changed = self._changed.delete(number)
        else:
            new._changed = self._changed.set(number, source)
        return new


_ABSENT = object()


class PackedItems(ItemsView[int, V]):
    _mapping: PackMap[V]

    def __iter__(self) -> Iterator[tuple[int, V]]:
        return self._mapping.pairs()


class PackedValues(ValuesView[V]):
    _mapping: PackMap[V]

    def __iter__(self) -> Iterator[V]:
        return (value for _, value in self._mapping.pairs())
