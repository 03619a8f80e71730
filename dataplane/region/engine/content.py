"""The rows of an open region in memory and in files, and consistent views of them for readers."""

import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from dataplane.region.compaction.flush import Frozen
from dataplane.region.engine.opening import OpenedRegion
from dataplane.region.files.file_reader import FileReader
from dataplane.region.files.open_files import OpenFiles
from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.names import Numbered
from dataplane.region.format.schema import RegionSchema
from dataplane.region.log.logged_group import LoggedGroup
from dataplane.region.manifests.floor import check_floor
from dataplane.region.manifests.manifest import FileEntry, Manifest
from dataplane.region.memory.memory import Memory
from dataplane.region.memory.statement_table import StatementTable
from dataplane.region.memory.statements import remember
from dataplane.region.place import RegionPlace
from dataplane.region.reads.lookup import Counted, LookupView


class RegionContent:
    """Safe for threads: a lock guards whatever changes. It is never held during I/O, and no other
    lock is taken under it. Attributes may be read without it, and are of one moment each.
    """

    def __init__(self, region_place: RegionPlace, opened: OpenedRegion) -> None:
        self._lock = threading.Lock()
        self._files = OpenFiles(
            region_place.files, opened.mine, opened.files_written, opened.manifest.files
        )
        self.memory: Memory = opened.memory
        self.frozen: Frozen | None = None
        """Rows that are being flushed, or that a failed flush has left."""
        self.statements = opened.statements
        self._ended: deque[Mapping[int, LookupView]] = deque()
        """Views that have ended, whose files are still to be taken back."""
        self._held: dict[str, list[FileReader]] = {}
        """Files that are kept for whoever reads as of an open mark, by its name."""
        self._pinned: dict[str, Sequence[FileReader]] = {}
        """Files that are kept for a copy session, by its id."""
        self._awaited = dict(opened.awaited)
        """Names of files that a change of the log names and that no manifest names yet, by the
        sequence of the change."""
        self.schema = opened.manifest.table_schema
        self.version, self.sequence = opened.manifest.version, opened.manifest.sequence
        """The highest row version given, and the position of the newest group in the log."""
        self._share, self._statement_share = opened.share, opened.statement_share
        self._is_given_up = False
        self._count()

    @property
    def columns(self) -> tuple[ColumnDef, ...]:
        """The columns of the table by the current schema. The same object until they change."""
        columns = self.schema.columns
        assert columns is not None, "every manifest has columns"
        return columns

    def _count(self) -> None:
        if not self._is_given_up:
            self._share.set(sum(memory.bytes for memory in self.memories))
            self._statement_share.set(self.statements.size_bytes)

    def give_up(self) -> None:
        """Ends the content: nobody reads or writes here any more."""
        with self._lock:
            self._is_given_up = True
            self._files.close()
            self._share.set(0)
            self._statement_share.set(0)

    def forget_statements(self, now_ms: int) -> None:
        with self._lock:
            self._take_back()
            if self.statements.forget(now_ms):
                self._count()

    def remembered(self) -> tuple[int, tuple[StatementTable, ...]]:
        """The time of the latest statement that is forgotten, and those that are remembered."""
        with self._lock:
            return self.statements.forgotten_ms, self.statements.tables

    def readable_version(self) -> int:
        """The highest row version given. All rows up to it are in memory or in files."""
        with self._lock:
            return self.version

    def raise_version(self, version: int) -> None:
        """No row gets *version* or a lower one from now on. Nobody writes meanwhile."""
        with self._lock:
            self.version = max(self.version, version)

    @property
    def memories(self) -> list[Memory]:
        """Newest first. Without the lock too: a flush that begins meanwhile moves one of them."""
        memory, frozen = self.memory, self.frozen
        return [memory] if frozen is None or frozen.memory is memory else [memory, frozen.memory]

    @contextmanager
    def view(
        self, families: Collection[int], schema_version: int | None = None
    ) -> Iterator[Mapping[int, LookupView]]:
        """Yields a view of each family, as a reader of that schema version sees it, all at one
        moment; no file of a view is removed meanwhile.

        *schema_version* None: no floor concerns the reader. Raises Conflict `schema-version-stale`.
        """
        with self._lock:
            self._take_back()
            if schema_version is not None:
                check_floor(self.schema, schema_version)
            views = {family: self._view_of(family) for family in families}
        is_closed = False
        try:
            yield views
        except GeneratorExit:
            is_closed = True
            raise
        finally:
            self._ended.append(views)
            if not is_closed:
                with self._lock:
                    self._take_back()

    def _take_back(self) -> None:
        """Takes back the files of views that have ended. Called with the lock.

        A scan that is closed before its end leaves its view to the next caller: the garbage
        collector may close it, in a thread that has the lock.
        """
        if self._ended:
            while self._ended:
                for view in self._ended.popleft().values():
                    self._files.give_back(view.files)
            self._count()  # a scan leaves sorted copies

    def resident(self, family: int, schema_version: int) -> LookupView | None:
        """A view for one thread that must not wait: of what is in memory. None: somebody has the
        lock. Raises Conflict `schema-version-stale`."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            check_floor(self.schema, schema_version)
            return LookupView(self._counted(family), self._files.resident(family), self._lock)
        finally:
            self._lock.release()

    def _view_of(self, family: int) -> LookupView:
        return LookupView(self._counted(family), self._files.take(family), self._lock)

    def _counted(self, family: int) -> Counted:
        memtables = (memory.of(family) for memory in self.memories)
        return tuple((memtable, memtable.rows) for memtable in memtables if memtable is not None)

    def families(self) -> set[int]:
        """The families that have rows in memory."""
        with self._lock:
            return {family for memory in self.memories for family in memory.families}

    def has_in_memory(self, families: Collection[int], version: int) -> bool:
        """Whether a batch of that version or an older one is in no file yet."""
        with self._lock:
            memtables = [memory.of(family) for memory in self.memories for family in families]
        firsts = [memtable.first_version for memtable in memtables if memtable is not None]
        return any(first is not None and first <= version for first in firsts)

    @contextmanager
    def new_file(self) -> Iterator[Numbered]:
        """The name of a file that is about to be written. Within the block it is not obsolete."""
        with self._lock:
            name = self._files.begin()
        try:
            yield name
        finally:
            with self._lock:
                self._files.end(name)

    def let_go(self, entries: Iterable[FileEntry]) -> None:
        """Own files that no manifest names any more: they go when nobody reads them."""
        with self._lock:
            self._files.let_go(entries)

    def unread(self) -> list[str]:
        """Names of files that were let go and that nobody reads any more."""
        with self._lock:
            self._take_back()
            return self._files.unread()

    def removed(self, names: Collection[str]) -> None:
        """Files of `unread` that are no longer on disk."""
        with self._lock:
            self._files.removed(names)

    def unnamed_files(self) -> frozenset[str]:
        """Files that no manifest names, since they are being written or were let go, or since a
        change of the log will name them."""
        with self._lock:
            return self._files.unnamed.union(*self._awaited.values())

    def await_files(self, sequence: int, names: frozenset[str]) -> None:
        """The change at that position of the log names these files: they are not obsolete from now
        on, until it has taken effect."""
        with self._lock:
            self._awaited[sequence] = names

    def awaited_files(self) -> frozenset[str]:
        """The files of changes that have not taken effect."""
        with self._lock:
            return frozenset[str]().union(*self._awaited.values())

    def hold(self, mark: str, families: Collection[int]) -> None:
        """Keeps the present files until that mark is closed or held anew."""
        with self._lock:
            dropped = [reader for family in families for reader in self._files.take(family)]
            self._files.give_back(self._held.pop(mark, []))
            self._held[mark] = dropped

    def pin(self, session: str) -> None:
        """Keeps the present files of all families for a copy session."""
        with self._lock:
            self._pinned[session] = self._files.take_all()

    def unpin(self, session: str) -> None:
        """Ends `pin`. May be called again."""
        with self._lock:
            self._files.give_back(self._pinned.pop(session, ()))

    def add(self, group: LoggedGroup, wall_ms: int) -> None:
        """A group that is durable, the next of the log. Of families that have died since it was
        written nothing is kept."""
        with self._lock:
            dead = self.schema.dead
            self.memory.add([part for part in group.parts if part.family not in dead], wall_ms)
            self.version = max(self.version, group.version)
            self.sequence += 1
            self._awaited.pop(self.sequence, None)  # a change that could not be logged
            remember(group, self.statements)
            self._count()

    def pass_change(self, version: int) -> None:
        """The next record of the log is a change, which the manifest has. *version*: the highest
        given before it."""
        with self._lock:
            self.version = max(self.version, version)
            self.sequence += 1
            self._awaited.pop(self.sequence, None)

    def freeze(self, log_from: int, closed_bytes: int, columns: Sequence[ColumnDef]) -> None:
        """Sends rows to new memtables from now on. Nobody writes meanwhile."""
        with self._lock:
            self.frozen = Frozen(self.memory, log_from, self.sequence, closed_bytes)
            self.memory = Memory(columns)

    def follow(
        self, manifest: Manifest, flushed: Frozen | None, replaced: Iterable[FileEntry]
    ) -> None:
        """The manifest is current. `flushed`: rows that its files hold; `replaced`: files that
        are let go unless it names them."""
        named = frozenset(manifest.files)
        unnamed = [entry for entry in replaced if entry not in named]
        with self._lock:
            self._files.follow(manifest.files)
            self._take_schema(manifest.table_schema)
            if flushed is not None:
                self.frozen = None
            for closed in self._held.keys() - {mark.name for mark in manifest.marks}:
                self._files.give_back(self._held.pop(closed))
            self._files.let_go(unnamed)
            self._count()

    def _take_schema(self, schema: RegionSchema) -> None:
        if schema.columns != self.schema.columns:
            self.memory.reshape(schema.columns or ())
        for memory in self.memories:
            memory.drop(schema.dead)
        self.schema = schema
