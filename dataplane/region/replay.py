"""Brings sealed logs back into memory, or into own files where memory may not hold them."""

from collections.abc import Sequence

from dataplane.region.columns import ColumnDef
from dataplane.region.flush import covered, write_memtable
from dataplane.region.manifest import FileEntry, Manifest, SealedEntry
from dataplane.region.memory import Memory
from dataplane.region.names import Numbered, Opening
from dataplane.region.place import RegionPlace
from dataplane.region.sealed_log import SealedLog
from dataplane.region.statements import StatementMemory, remember
from dataplane.region.versions import wall_ms_of


class Replay:
    """What an opening has in memory when all logs are read. Logs come oldest first."""

    def __init__(
        self, place: RegionPlace, columns: Sequence[ColumnDef], mine: Opening, base: Manifest
    ) -> None:
        self._place = place
        self._columns = columns
        self._dead = base.dead_indexes
        self._mine = mine
        self._marks = base.marks
        self._sealed: list[SealedEntry] = []
        self._share = place.budget.share()
        self.memory = Memory(columns)
        self.statements = StatementMemory(base.statements)
        self.version = base.version
        self.sequence = base.sequence
        self.spilled: list[FileEntry] = []

    def add(self, log: SealedLog) -> None:
        for group in log.groups():
            living = [part for part in group.parts if part.family not in self._dead]
            self.memory.add(living, wall_ms_of(group.version))
            remember(group, self.statements)
            self.version = max(self.version, group.version)
            held, budget = self.memory.bytes, self._place.budget
            self._share.set(held)
            if held > self._place.limits.memtable_bytes or budget.must_spill(held):
                self._spill()
        self.sequence = max(self.sequence, log.sequence)
        self._sealed.append(log.entry)

    def add_covered(self, entry: SealedEntry) -> None:
        """A segment whose rows already stand in own files."""
        self._sealed.append(entry)

    def finish(self) -> tuple[SealedEntry, ...]:
        """The segments as the first manifest lists them: all covered, if any was spilled."""
        if not self.spilled:
            return tuple(self._sealed)
        if self.memory.rows:
            self._spill()
        return covered(self._sealed)

    def close(self) -> None:
        """The rows are counted by the region from now on, or given up."""
        self._share.set(0)

    def _spill(self) -> None:
        with self._place.budget.flushes:
            for memtable in self.memory.memtables():
                name = Numbered(*self._mine, len(self.spilled) + 1)
                self.spilled.append(
                    write_memtable(self._place, self._columns, memtable, name, self._marks)
                )
        self.memory = Memory(self._columns)
        self._share.set(0)
