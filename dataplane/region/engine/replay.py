"""Brings sealed logs back into memory, or into own files where memory may not hold them; of roots
that an empty region replaces, the applied statements alone."""

import posixpath
from collections.abc import Iterator, Sequence

from dataplane.log.records import LogPosition
from dataplane.region.compaction.flush import covered, flush_bytes, write_memtable
from dataplane.region.copies.history import LogHistory
from dataplane.region.disk.lost import CODE as LOST
from dataplane.region.disk.lost import lost_if_missing
from dataplane.region.engine.takeover import ManifestSource, RegionClaim, find_source
from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.names import Numbered, Opening, segment_name
from dataplane.region.format.versions import wall_ms_of
from dataplane.region.log.logged_change import PositionedChange, with_change
from dataplane.region.log.sealed_log import (
    SealedLog,
    read_sealed,
    seal_segment,
    unsealed_segments,
)
from dataplane.region.manifests.manifest import FileEntry, ListedStatement, Manifest, SealedEntry
from dataplane.region.memory.memory import Memory
from dataplane.region.memory.statement_files import read_statements
from dataplane.region.memory.statement_table import Remembered
from dataplane.region.memory.statements import StatementMemory, recall
from dataplane.region.place import OpenOrder, RegionPlace
from metasrv_base.engines import is_volatile
from metasrv_base.errors import Corrupt, Unavailable


class Replay:
    """The rows and statements in memory after an opening has read all logs. Logs come oldest
    first."""

    def __init__(
        self, region_place: RegionPlace, columns: Sequence[ColumnDef], mine: Opening, base: Manifest
    ) -> None:
        self._place = region_place
        self._columns = columns
        self._base = base
        self._dead = frozenset(base.dead_indexes)
        self._mine = mine
        self._marks = base.marks
        self._sealed: list[SealedEntry] = []
        self.share = region_place.budget.share()
        self.statement_share = region_place.budget.statement_share()
        self.memory = Memory(columns)
        self.statements = StatementMemory(region_place.limits.statements, base.forgotten_ms)
        self.version = base.version
        self.sequence = base.sequence
        self.borrowed_sequence = 0
        """The last record of the logs of other roots."""
        self._history = LogHistory()
        if base.in_files is not None:
            reached = LogPosition(base.in_files.epoch, base.in_files.sequence)
            self._history = LogHistory(reached, (), reached.sequence)
        self.spilled: list[FileEntry] = []
        self.changes: list[PositionedChange] = []
        """The changes of the logs that have not taken effect in the base, in order."""

    def add(self, log: SealedLog) -> None:
        now_ms = self._place.clock.wall_ms()
        for group in log.records():
            if isinstance(group, PositionedChange):
                self._take_change(group)
                continue
            living = [part for part in group.parts if part.family not in self._dead]
            self.memory.add(living, wall_ms_of(group.version))
            recall(group, self.statements, now_ms)
            self.version = max(self.version, group.version)
            held = self.memory.bytes
            if held > self._place.limits.memtable_bytes or not self.share.claim(held):
                self._spill()
        self.sequence = max(self.sequence, log.sequence)
        if log.entry.root is not None:
            self.borrowed_sequence = self.sequence
        for run in log.runs():
            self._history = self._history.with_run(*run)
        self._sealed.append(log.entry)
        self._forget(now_ms)

    def _take_change(self, record: PositionedChange) -> None:
        if record.sequence <= self._base.change_sequence:
            return
        self.changes.append(record)
        after = with_change(self._base, record, self._place.root)
        self._columns, self._dead = after.spec.columns, frozenset(after.dead_indexes)
        self._marks = after.marks
        self.memory.reshape(self._columns)
        self.memory.drop(self._dead)
        self.version = max(self.version, after.version)

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

    @property
    def history(self) -> LogHistory:
        """The positions of all logs. Where they are not known they are taken for flushed."""
        if self._history.end == self.sequence:
            return self._history
        return LogHistory(LogPosition(0, self.sequence), (), self.sequence)

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


def statements_left(
    region_place: RegionPlace, claim: RegionClaim, order: OpenOrder
) -> StatementMemory:
    """The statements that were applied in the roots which an empty region replaces, so that a late
    copy of one is not applied to it (docs/decisions/0333).

    Of roots that are gone, damaged or were in memory nobody knows them: all statements that were
    made until now are forgotten. Raises Unavailable if a root cannot be read now.
    """
    statements = StatementMemory(region_place.limits.statements)
    try:
        source = find_source(region_place.disk, claim, order)
        if not is_volatile(source.manifest.spec.engine):
            return _read_statements(region_place, source)
    except Corrupt:
        pass
    except Unavailable as error:
        if error.code != LOST:
            raise
    statements.forgotten_ms = region_place.clock.wall_ms()
    return statements


def _read_statements(region_place: RegionPlace, source: ManifestSource) -> StatementMemory:
    manifest, now_ms = source.manifest, region_place.clock.wall_ms()
    statements = StatementMemory(region_place.limits.statements, manifest.forgotten_ms)
    for listed in manifest.statement_files:
        statements.load(read_statements(region_place.disk, source.root, listed))
    for log in _logs(region_place, source):
        for group in log.groups():
            recall(group, statements, now_ms)
    statements.forget(now_ms)
    return statements


def _logs(region_place: RegionPlace, source: ManifestSource) -> Iterator[SealedLog]:
    """Yields the logs of a root that its files do not cover, oldest first, one in memory at a
    time."""
    disk, reading, manifest = region_place.disk, region_place.budget.reading, source.manifest
    for sealed in manifest.sealed:
        if not sealed.covered:
            with reading(sealed.bytes):
                yield read_sealed(disk, sealed.root or source.root, sealed)
    with lost_if_missing(source.root):
        rest = unsealed_segments(disk.list(source.root), manifest)
    for segment in rest:
        with lost_if_missing(source.root):
            size = disk.size(posixpath.join(source.root, segment_name(segment)))
        with reading(size):
            is_last = segment == rest[-1]
            yield seal_segment(disk, source.root, manifest.spec.region_id, segment, is_last)
