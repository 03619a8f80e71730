"""The memtables of all families of a region, filled and flushed together."""

from collections.abc import Collection, Sequence

from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.families import ROWS, FamilyRows, columns_in
from dataplane.region.memory.memtable import Memtable


class Memory:
    """The memtables of a region by family. As a memtable: one thread adds, under the lock of the
    region's content. Sizes may be asked for without it."""

    def __init__(self, columns: Sequence[ColumnDef]) -> None:
        self._columns = columns
        self._memtables: dict[int, Memtable] = {}
        self.first_ms = 0
        """Wall time of the oldest batch; meaningful while there are rows."""

    @property
    def bytes(self) -> int:
        return sum(memtable.bytes for memtable in tuple(self._memtables.values()))

    @property
    def rows(self) -> int:
        """Entries too."""
        return sum(memtable.rows for memtable in tuple(self._memtables.values()))

    def unsorted_bytes(self, families: Collection[int]) -> int:
        """The bytes of rows that a scan of those families has to sort."""
        memtables = tuple(self._memtables.values())
        return sum(memtable.unsorted_bytes for memtable in memtables if memtable.family in families)

    def add(self, parts: Sequence[FamilyRows], wall_ms: int) -> None:
        """One group. Raises Corrupt if the version does not rise."""
        if not self._memtables:
            self.first_ms = wall_ms
        for part in parts:
            memtable = self._memtables.get(part.family)
            if memtable is None:
                memtable = Memtable(columns_in(part.family, self._columns), part.family)
                self._memtables[part.family] = memtable
            memtable.add(part.rows, part.keys, wall_ms)

    @property
    def families(self) -> frozenset[int]:
        """The families with rows in memory."""
        return frozenset(self._memtables)

    def of(self, family: int) -> Memtable | None:
        """Returns the memtable of a family; None if it has nothing in memory."""
        return self._memtables.get(family)

    def memtables(self) -> Sequence[Memtable]:
        """The memtables that have rows, as of now, in order of family."""
        return [memtable for _, memtable in sorted(self._memtables.items())]

    def reshape(self, columns: Sequence[ColumnDef]) -> None:
        """Gives the table's rows other columns, as `Memtable.reshape`."""
        self._columns = columns
        if rows := self._memtables.get(ROWS):
            rows.reshape(columns)

    def drop(self, families: frozenset[int]) -> None:
        for family in families & self._memtables.keys():
            del self._memtables[family]
