"""Names in order, as an immutable value: the next one shares all but what holds the name.

A page of a list begins anywhere and costs what it shows; a name that comes or goes costs one chunk,
one group of chunks and the list of groups, not a sort of all names: some 400 places of a million.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from immutables import Map

from keys.catalog.maps import kept
from keys.model.tables import TableInfo
from metasrv_base.errors import Corrupt
from metasrv_base.values.frozen import frozen

CHUNK_MAX = 128  # names of a chunk, and chunks of a group: a million names are some 60 groups

T = TypeVar("T")
SchemaName = tuple[str, str]
Chunk = tuple[str, ...]
Group = tuple[Chunk, ...]


@frozen
class Names:
    """No name twice, no chunk or group empty, and each below the next."""

    groups: tuple[Group, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> "Names":
        """Builds the sequence from *names*, each once, in rising order."""
        left = iter(names)
        chunks = iter(lambda: tuple(islice(left, CHUNK_MAX)), ())
        return cls(tuple(iter(lambda: tuple(islice(chunks, CHUNK_MAX)), ())))

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def __iter__(self) -> Iterator[str]:
        return self.starting("")

    @property
    def chunks(self) -> Iterator[Chunk]:
        return (chunk for group in self.groups for chunk in group)

    def starting(self, low: str) -> Iterator[str]:
        """Yields from *low* on, itself included."""
        group_index = self._group_of(low)
        for group in islice(self.groups, group_index, None):
            for chunk in islice(group, _chunk_of(group, low), None):
                yield from islice(chunk, bisect_left(chunk, low), None)

    def added(self, name: str) -> "Names":
        if not self.groups:
            return Names((((name,),),))
        group_index = self._group_of(name)
        group = self.groups[group_index]
        within = _chunk_of(group, name)
        chunk = group[within]
        position = bisect_left(chunk, name)
        assert chunk[position : position + 1] != (name,), name
        is_last = group_index == len(self.groups) - 1 and within == len(group) - 1
        grown = _split(_with(chunk, position, position, (name,)), is_last=is_last)
        groups = _split(_with(group, within, within + 1, grown), is_last=is_last)
        return Names(_with(self.groups, group_index, group_index + 1, groups))

    def without(self, name: str) -> "Names":
        group_index = self._group_of(name)
        group = self.groups[group_index]
        within = _chunk_of(group, name)
        chunk = group[within]
        position = bisect_left(chunk, name)
        assert chunk[position] == name, name
        left = _with(chunk, position, position + 1, ())
        rest = _with(group, within, within + 1, (left,) if left else ())
        return Names(_with(self.groups, group_index, group_index + 1, (rest,) if rest else ()))

    def _group_of(self, name: str) -> int:
        """Returns the index of the only group that may hold *name*."""
        return max(0, bisect_right(self.groups, name, key=lambda group: group[0][0]) - 1)


def _chunk_of(group: Group, name: str) -> int:
    return max(0, bisect_right(group, name, key=lambda chunk: chunk[0]) - 1)


def _with(items: tuple[T, ...], first: int, behind: int, instead: tuple[T, ...]) -> tuple[T, ...]:
    """*items* with others in the place of those from *first* on and before *behind*."""
    return items[:first] + instead + items[behind:]


def _split(names: tuple[T, ...], *, is_last: bool) -> tuple[tuple[T, ...], ...]:
    """Names that come in rising order fill their chunks; others leave halves to grow in."""
    if len(names) <= CHUNK_MAX:
        return (names,)
    cut = CHUNK_MAX if is_last else CHUNK_MAX // 2
    return names[:cut], names[cut:]


def with_name(
    names: Map[SchemaName, Map[str, int]], ordered: Map[SchemaName, Names], info: TableInfo
) -> dict[str, Any]:
    """`names` and `ordered` of a catalog in which the table bears its name. Raises Corrupt where
    another one does."""
    schema = (info.catalog, info.schema_name)
    held = names.get(schema, Map[str, int]())
    if held.get(info.name, info.table_id) != info.table_id:
        raise Corrupt(name=info.full_name, holder=held[info.name], other=info.table_id)
    return {
        "names": names.set(schema, held.set(info.name, info.table_id)),
        "ordered": ordered.set(schema, ordered.get(schema, Names()).added(info.name)),
    }


def without_name(
    names: Map[SchemaName, Map[str, int]], ordered: Map[SchemaName, Names], info: TableInfo
) -> dict[str, Any]:
    """`names` and `ordered` of a catalog in which the table bears its name no more."""
    schema = (info.catalog, info.schema_name)
    return {
        "names": kept(names, schema, names[schema].delete(info.name)),
        "ordered": kept(ordered, schema, ordered[schema].without(info.name)),
    }
