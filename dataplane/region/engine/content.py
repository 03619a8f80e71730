"""What a region holds in memory and in files at this moment, and what of it a reader is given."""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from dataplane.region.compaction.flush import Frozen
from dataplane.region.engine.opening import OpenedRegion
from dataplane.region.files.file_reader import FileReader
from dataplane.region.files.open_files import OpenFiles
from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.schema import RegionSchema
from dataplane.region.log.logged_group import LoggedGroup
from dataplane.region.manifests.floor import check_floor
from dataplane.region.manifests.manifest import Manifest
from dataplane.region.memory.memory import Memory
from dataplane.region.memory.statement_table import StatementTable
from dataplane.region.memory.statements import remember
from dataplane.region.place import RegionPlace
from dataplane.region.reads.lookup import Counted, LookupView


class RegionContent:
    """Safe for threads: `lock` guards whatever changes, and is never held during I/O."""

    def __init__(self, place: RegionPlace, opened: OpenedRegion) -> None:
        self.lock = threading.Lock()
        self.files = OpenFiles(
            place.files, opened.mine, opened.files_written, opened.manifest.files
        )
        self.memory: Memory = opened.memory
        self.frozen: Frozen | None = None
        """What is being flushed; also what a flush that failed has left."""
        self.statements = opened.statements
        self._held: dict[str, list[FileReader]] = {}
        """Files that are kept for whoever reads as of an open mark, by its name."""
        self.schema = opened.manifest.table_schema
        self.version, self.sequence = opened.manifest.version, opened.manifest.sequence
        self._share, self._statement_share = opened.share, opened.statement_share
        self._is_given_up = False
        self._count()

    def _count(self) -> None:
        if not self._is_given_up:
            self._share.set(sum(memory.bytes for memory in self.memories))
            self._statement_share.set(self.statements.size_bytes)

    def give_up(self) -> None:
        """Nobody reads or writes here any more."""
        with self.lock:
            self._is_given_up = True
            self._share.set(0)
            self._statement_share.set(0)

    def forget_statements(self, now_ms: int) -> None:
        with self.lock:
            if self.statements.forget(now_ms):
                self._count()

    def remembered(self) -> tuple[int, tuple[StatementTable, ...]]:
        """The time of the latest statement that is forgotten, and those that are remembered. The
        lock is held."""
        return self.statements.forgotten_ms, self.statements.tables

    @property
    def memories(self) -> list[Memory]:
        """Newest first. Without the lock too: a flush that begins meanwhile moves one of them."""
        memory, frozen = self.memory, self.frozen
        return [memory] if frozen is None or frozen.memory is memory else [memory, frozen.memory]

    @contextmanager
    def view(
        self, families: Collection[int], schema_version: int | None = None
    ) -> Iterator[Mapping[int, LookupView]]:
        """What a reader of that schema version sees of each family, all at one moment; no file of
        it is removed meanwhile.

        None: a reader whom no floor concerns. Raises Conflict `schema-version-stale`.
        """
        with self.lock:
            if schema_version is not None:
                check_floor(self.schema, schema_version)
            views = {family: self._view_of(family) for family in families}
        try:
            yield views
        finally:
            with self.lock:
                for view in views.values():
                    self.files.give_back(view.files)
                self._count()  # a scan leaves sorted copies

    def resident(self, family: int, schema_version: int) -> LookupView | None:
        """A view for one thread that must not wait: of what is in memory. None: somebody has the
        lock. Raises Conflict `schema-version-stale`."""
        if not self.lock.acquire(blocking=False):
            return None
        try:
            check_floor(self.schema, schema_version)
            return LookupView(self._counted(family), self.files.resident(family), self.lock)
        finally:
            self.lock.release()

    def _view_of(self, family: int) -> LookupView:
        return LookupView(self._counted(family), self.files.take(family), self.lock)

    def _counted(self, family: int) -> Counted:
        found = (memory.of(family) for memory in self.memories)
        return tuple((memtable, memtable.rows) for memtable in found if memtable is not None)

    def families(self) -> set[int]:
        """Those of which there is anything in memory."""
        with self.lock:
            return {family for memory in self.memories for family in memory.families}

    def has_in_memory(self, families: Collection[int], version: int) -> bool:
        """Whether a batch of that version or an older one is in no file yet."""
        with self.lock:
            found = [memory.of(family) for memory in self.memories for family in families]
        firsts = [one.first_version for one in found if one is not None]
        return any(first is not None and first <= version for first in firsts)

    def hold(self, mark: str, families: Collection[int]) -> None:
        """Until that mark is closed or held anew, the files of now stay."""
        with self.lock:
            taken = [reader for family in families for reader in self.files.take(family)]
            self.files.give_back(self._held.pop(mark, []))
            self._held[mark] = taken

    def add(self, group: LoggedGroup, wall_ms: int) -> None:
        """A group that is durable."""
        with self.lock:
            self.memory.add(group.parts, wall_ms)
            self.version = group.version
            self.sequence += 1
            remember(group, self.statements)
            self._count()

    def freeze(self, log_from: int, closed_bytes: int, columns: Sequence[ColumnDef]) -> None:
        """From now on rows go to new memtables. Nobody writes meanwhile."""
        with self.lock:
            self.frozen = Frozen(self.memory, log_from, self.sequence, closed_bytes)
            self.memory = Memory(columns)

    def follow(self, manifest: Manifest, flushed: Frozen | None) -> None:
        """The manifest is current; `flushed`: rows that its files hold."""
        with self.lock:
            self.files.follow(manifest.files)
            self._take_schema(manifest.table_schema)
            if flushed is not None:
                self.frozen = None
            for closed in self._held.keys() - {mark.name for mark in manifest.marks}:
                self.files.give_back(self._held.pop(closed))
            self._count()

    def _take_schema(self, schema: RegionSchema) -> None:
        if schema.columns != self.schema.columns:
            self.memory.reshape(schema.columns or ())
        for memory in self.memories:
            memory.drop(schema.dead)
        self.schema = schema
