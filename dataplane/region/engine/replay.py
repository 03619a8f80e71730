"""Brings sealed logs back into memory, or into own files where memory may not hold them."""

from collections.abc import Sequence

from dataplane.region.compaction.flush import covered, flush_bytes, write_memtable
from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.names import Numbered, Opening
from dataplane.region.format.versions import wall_ms_of
from dataplane.region.log.sealed_log import SealedLog
from dataplane.region.manifests.manifest import FileEntry, ListedStatement, Manifest, SealedEntry
from dataplane.region.memory.memory import Memory
from dataplane.region.memory.statement_table import Remembered
from dataplane.region.memory.statements import StatementMemory, recall
from dataplane.region.place import RegionPlace


class Replay:
    """The rows and statements in memory after an opening has read all logs. Logs come oldest
    first."""

    def __init__(
        self, region_place: RegionPlace, columns: Sequence[ColumnDef], mine: Opening, base: Manifest
    ) -> None:
        self._place = region_place
        self._columns = columns
        self._dead = base.dead_indexes
        self._mine = mine
        self._marks = base.marks
        self._sealed: list[SealedEntry] = []
        self.share = region_place.budget.share()
        self.statement_share = region_place.budget.statement_share()
        self.memory = Memory(columns)
        self.statements = StatementMemory(region_place.limits.statements, base.forgotten_ms)
        self.version = base.version
        self.sequence = base.sequence
        self.spilled: list[FileEntry] = []

    def add(self, log: SealedLog) -> None:
        now_ms = self._place.clock.wall_ms()
        for group in log.groups():
            living = [part for part in group.parts if part.family not in self._dead]
            self.memory.add(living, wall_ms_of(group.version))
            recall(group, self.statements, now_ms)
            self.version = max(self.version, group.version)
            held = self.memory.bytes
            if held > self._place.limits.memtable_bytes or not self.share.claim(held):
                self._spill()
        self.sequence = max(self.sequence, log.sequence)
        self._sealed.append(log.entry)
        self._forget(now_ms)

    def add_statements(self, records: bytes) -> None:
        """Takes the statements of a file of them."""
        self.statements.load(records)
        self._forget(self._place.clock.wall_ms())

    def add_listed(self, listed: Sequence[ListedStatement]) -> None:
        """Takes those of an older manifest: nobody knows how old they are."""
        now_ms = self._place.clock.wall_ms()
        for statement in listed:
            remembered = Remembered(
                statement.version, self.statements.time_of(None, now_ms), statement.rows
            )
            self.statements.add_again(statement.statement_id, remembered)

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

    def give_up(self) -> None:
        """The region is not opened. Otherwise it counts its memory with these shares."""
        self.share.set(0)
        self.statement_share.set(0)

    def _forget(self, now_ms: int) -> None:
        self.statements.forget(now_ms)
        self.statement_share.set(self.statements.size_bytes)

    def _spill(self) -> None:
        with self._place.budget.flushing(flush_bytes(self.memory)):
            for memtable in self.memory.memtables():
                name = Numbered(*self._mine, len(self.spilled) + 1)
                self.spilled.append(
                    write_memtable(self._place, self._columns, memtable, name, self._marks)
                )
        self.memory = Memory(self._columns)
        self.share.set(0)
