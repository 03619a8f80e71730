"""One open region: ordered rows behind one fence, written in groups, read as of a moment.

Synchronous, and safe for threads: the node runs each call in a thread. One thread writes at a time
and a group of batches costs one append, one fsync and one look at the fence; a flush runs beside
the writers, in a thread of its own. Readers take no lock while they read files. After an error that
leaves the log or a manifest in doubt, or behind a higher fence, the region answers nothing but
that error: it must be opened again.

Bounds: memory is two memtables (the second while one is flushed), their sorted copies while they
are scanned, the block cache, and for a scan or a merge a window of each file that it touches.
"""

import posixpath
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

import pyarrow as pa

from base.errors import MetaError, NotFound, Unavailable
from base.wire.batches import BatchHeader
from base.wire.inputs import Borrowed
from base.wire.orders import DataFile
from dataplane.region.adoption import adopted, borrowed_inputs, sync_attempt
from dataplane.region.checksum import RowsDigest, digest_rows
from dataplane.region.columns import OP, RegionSpec, chosen
from dataplane.region.compaction import Merged, compacted, merged, plan_compaction
from dataplane.region.fence import look, stale_before_wrong
from dataplane.region.flush import Frozen, flushed, write_memtable
from dataplane.region.group import Applied, Group, Terms
from dataplane.region.housekeeping import leavings, remove_leavings, remove_superseded
from dataplane.region.key_range import KeyRange
from dataplane.region.log_writer import LogWriter
from dataplane.region.lookup import View, live_rows, merge_sources
from dataplane.region.manifest import Manifest, Mark, Remembered, publish_manifest
from dataplane.region.marks import marked, unmarked
from dataplane.region.memtable import Memtable
from dataplane.region.merge import merge_live
from dataplane.region.names import Numbered, Opening, data_name
from dataplane.region.open_files import OpenFiles
from dataplane.region.opening import Opened, create_or_open, open_existing
from dataplane.region.place import OpenOrder, RegionPlace
from dataplane.region.region_stats import RegionStats, stats_of
from dataplane.region.rewrite import write_compacted
from dataplane.region.serving import Serving, unknown_outcome


class Region:
    """Made by `Region.create` or `Region.open`."""

    def __init__(self, place: RegionPlace, opened: Opened) -> None:
        self.place = place
        self.opening: Opening = opened.mine
        self._writing = threading.Lock()  # who orders batches; taken after _publishing
        self._publishing = threading.Lock()  # who writes manifests
        self._state = threading.Lock()  # short: never held during I/O
        self._manifest: Manifest = opened.manifest
        self._manifest_number = opened.manifest.number
        self._memtable: Memtable = opened.memtable
        self._frozen: Frozen | None = None
        self._merging = threading.Lock()  # who merges files; taken before _publishing
        self._files = OpenFiles(
            place.files, opened.mine, opened.files_written, opened.manifest.files
        )
        self._statements = opened.statements
        self._version, self._sequence = opened.manifest.version, opened.manifest.sequence
        self._log = LogWriter(place.disk, place.root, self.spec.region_id, opened.mine)
        self._serving = Serving()

    @classmethod
    def create(
        cls, place: RegionPlace, spec: RegionSpec, epoch: int, replaces: Sequence[str] = ()
    ) -> "Region":
        """A region without rows, open. The same again opens what it made (`create_or_open`)."""
        return cls(place, create_or_open(place, spec, epoch, replaces))

    @classmethod
    def open(cls, place: RegionPlace, order: OpenOrder) -> "Region":
        """Opens what is there, behind raised fences (`open_existing`)."""
        return cls(place, open_existing(place, order))

    @property
    def spec(self) -> RegionSpec:
        return self._manifest.spec

    @property
    def manifest(self) -> Manifest:
        """The current one. Frozen: a copy is not needed."""
        return self._manifest

    @property
    def schema_floor(self) -> int:
        return self._manifest.schema_floor

    @property
    def stopped(self) -> MetaError | None:
        """Why this opening serves no more; None: it serves."""
        return self._serving.stopped

    def apply(
        self, batches: Sequence[tuple[BatchHeader, pa.RecordBatch]]
    ) -> list[Applied | MetaError]:
        """Group commit: one answer for each batch, after one fsync and one look for all.

        An error in the list: `Refused` or `Conflict`: not done. `Unknown`: written, but not
        acknowledged; sent again with the same statement id it is settled. Raises if the region
        serves no more, and `Unavailable` if nothing of the group could be tried.
        """
        self._make_room()
        with self._writing, self._view() as view:
            self._serving.check()
            columns = self._manifest.spec.columns
            terms = Terms(self.opening.epoch, self._manifest.schema_floor, columns)
            group = Group(terms, view, self._statements)
            wall_ms, version = self.place.clock.wall_ms(), self._version
            for header, batch in batches:
                version = group.admit(header, batch, version, wall_ms)
            if not group.staged:
                return group.results()
            failure = self._write(group)
            if failure is None:
                self._install(group, wall_ms)
            return group.results(failure)

    def get(self, keys: Sequence[bytes], column_ids: Collection[int] | None = None) -> pa.Table:
        """The live rows of those keys, by key: `_key`, `_version`, `c{id}` in order of id."""
        self._serving.check()
        with self._view() as view:
            return live_rows(view, keys, chosen(self.spec.columns, column_ids))

    def scan(
        self,
        keys: KeyRange | None = None,
        column_ids: Collection[int] | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Live rows by key, as of the first `next`; `key_range.key_after` of the last continues.

        Columns as in `get`. Streams: at most a row group of each file in its window is in memory.
        """
        self._serving.check()
        columns = chosen(self.spec.columns, column_ids)
        rest = limit
        with self._view() as view:
            for table in merge_live(merge_sources(view, keys or KeyRange(), columns)):
                part = table.drop_columns([OP]).slice(0, rest)
                yield from part.combine_chunks().to_batches()
                if rest is not None:
                    rest -= part.num_rows
                    if rest == 0:
                        return

    def digest(self) -> RowsDigest:
        """Count and order-independent checksum over (key, values) of the live rows: a full scan."""
        return sum(map(digest_rows, self.scan()), RowsDigest())

    def stats(self) -> RegionStats:
        with self._state:
            memtables, log = self._memtables(), self._log
            return stats_of(
                self._manifest, memtables, log.size_bytes, self._version, self._sequence
            )

    def needs_flush(self) -> bool:
        """By bytes or by age; the node asks now and then and calls `flush` in a thread."""
        with self._state:
            limits, memtable = self.place.limits, self._memtable
            if self._frozen is not None or memtable.bytes >= limits.memtable_bytes:
                return True
            age_ms = self.place.clock.wall_ms() - memtable.first_ms
            return memtable.rows > 0 and age_ms >= limits.flush_age_ms

    def flush(self) -> bool:
        """Memory to a file, then a manifest that names it, then the look, then the log is cut.

        False: there was nothing. Unavailable `storage-full` leaves the rows where they are.
        """
        with self._publishing:
            self._serving.check()
            frozen = self._freeze()
            if frozen is None:
                return False
            marks = self._manifest.marks
            with self._new_file() as name:
                entry = write_memtable(self.place, self.spec.columns, frozen.memtable, name, marks)
                with self._state:
                    version, known = self._version, self._statements.all()
                self._publish(flushed(self._manifest, frozen, entry, version, known), frozen)
            return True

    def compact(self) -> Merged | None:
        """Merges small files into one, beside readers and writers. None: nothing is due.

        The inputs go after manifest and look; those that somebody reads go by a later `sweep`.
        """
        with self._merging:
            plan = plan_compaction(self._manifest)
            if plan is None:
                return None
            columns, check = self.spec.columns, self._serving.check
            with self._new_file() as name, self._stale_first():
                output = write_compacted(self.place, columns, plan, name, check)
                with self._publishing:
                    check()
                    self._publish(compacted(self._manifest, plan, output))
                    with self._state:
                        self._files.merged_away(plan.inputs)
            self.sweep()
            return merged(plan, output)

    def has_unread_files(self) -> bool:
        """Whether there is something to `sweep`."""
        with self._state:
            return bool(self._files.unread())

    def sweep(self) -> int:
        """Removes files that were merged away and that nobody reads any more; returns how many."""
        with self._publishing:
            self._serving.check()
            with self._state:
                names = self._files.unread()
            if names:
                paths = [posixpath.join(self.place.root, name) for name in names]
                with self._serving.in_doubt(), self._stale_first():
                    remove_leavings(self.place.disk, self.place.root, self.opening, paths)
                with self._state:
                    self._files.removed(names)
            return len(names)

    def open_mark(self, name: str, version: int) -> bool:
        """From now on rows can be read as of `version`, until the mark is closed (P5).

        No row at or below it will be written. False: it was open. Raises Conflict
        `version-mismatch` for a moment of which versions may be gone.
        """
        with self._publishing:
            self._serving.check()
            manifest = marked(self._manifest, Mark(name=name, version=version))
            if manifest is not None:
                with self._writing, self._state:
                    self._version = max(self._version, version)
                self._publish(manifest)
            return manifest is not None

    def close_mark(self, name: str) -> bool:
        """False: it was not open."""
        with self._publishing:
            self._serving.check()
            manifest = unmarked(self._manifest, name)
            if manifest is not None:
                self._publish(manifest)
            return manifest is not None

    def borrowed(self) -> Borrowed:
        """The read-only inputs of other roots; they stay the same until they are adopted."""
        return borrowed_inputs(self._manifest, self.place.root)

    def adopt(self, procedure: str, attempt: str, files: Sequence[DataFile]) -> bool:
        """Exchanges all borrowed inputs for `files`, in one manifest that names the procedure.

        False: that manifest exists; it was done before. `attempt` is `attempts/{name}`.
        """
        with self._publishing:
            self._serving.check()
            if procedure in self._manifest.adopted:
                return False
            manifest = adopted(self._manifest, procedure, attempt, files)
            sync_attempt(self.place.disk, self.place.root, attempt, files)
            self._publish(manifest)
            return True

    def collect(self, keep_attempts: Iterable[str] = ()) -> int:
        """Removes own files that no manifest names and no open attempt claims; returns how many.

        `keep_attempts`: folders `attempts/{name}` of jobs that may still be writing.
        """
        with self._publishing:
            self._serving.check()
            disk, root = self.place.disk, self.place.root
            kept = frozenset(keep_attempts)
            paths = leavings(disk, root, self._manifest, kept, self._files.unnamed)
            if paths:
                with self._serving.in_doubt(), self._stale_first():
                    remove_leavings(disk, root, self.opening, paths)
            return len(paths)

    def close_log(self) -> None:
        """Closes the log segment when nobody writes; the next batch opens another."""
        with self._writing:
            self._log.rotate()

    def close(self) -> None:
        """Serves no more, and nothing writes to the root. Rows in memory are in the log."""
        with self._publishing, self._writing:
            self._serving.stop(Unavailable("not-ready", reason="closed"))
            self._log.rotate()
        with self._merging:
            pass  # a merge has seen it, at its next window

    @contextmanager
    def _view(self) -> Iterator[View]:
        """What a reader sees; no file of it is removed meanwhile."""
        with self._state:
            counted = tuple((memtable, memtable.batches) for memtable in self._memtables())
            readers = self._files.take()
        try:
            with self._stale_first():  # a successor may have merged the files away
                yield View(counted, readers, self._state)
        finally:
            with self._state:
                self._files.give_back(readers)

    def _memtables(self) -> list[Memtable]:
        return [self._memtable, *([self._frozen.memtable] if self._frozen else [])]

    @contextmanager
    def _new_file(self) -> Iterator[Numbered]:
        """A name that is taken for no leaving while the file is written."""
        with self._state:
            name = self._files.begin()
        try:
            with self._serving.unless_unknown():
                yield name
        except Unavailable as error:
            if error.code == "storage-full":  # nothing names it, and its room is needed
                with suppress(NotFound):
                    self.place.disk.remove(posixpath.join(self.place.root, data_name(name)))
            raise
        finally:
            with self._state:
                self._files.end(name)

    def _make_room(self) -> None:
        if self._memtable.bytes >= 2 * self.place.limits.memtable_bytes:
            self.flush()

    def _write(self, group: Group) -> MetaError | None:
        """None: durable, and nobody had taken over. Otherwise what the group is told."""
        try:
            with self._serving.in_doubt():
                payloads = [staged.payload for staged in group.staged]
                self._log.append(payloads, self._sequence + 1)
                look(self.place.disk, self.place.root, self.opening)
        except Unavailable as error:
            if error.code == "storage-full":
                return error  # nothing was written
            return unknown_outcome(error)
        except MetaError as error:
            return unknown_outcome(error)
        return None

    def _install(self, group: Group, wall_ms: int) -> None:
        with self._state:
            for staged in group.staged:
                self._memtable.add(staged.version, staged.rows, staged.keys, wall_ms)
                self._version = staged.version
                self._sequence += 1
                self._statements.add(
                    Remembered(
                        statement_id=staged.statement_id,
                        version=staged.version,
                        rows=len(staged.keys),
                    )
                )

    def _freeze(self) -> Frozen | None:
        """What is to be flushed; after a flush that failed, what it left."""
        if self._frozen is None and self._memtable.rows:
            with self._writing:
                self._log.rotate()
                with self._state:
                    self._frozen = Frozen(
                        self._memtable,
                        self._log.next_segment,
                        self._sequence,
                        self._log.closed_bytes,
                    )
                    self._memtable = Memtable(self.spec.columns)
        return self._frozen

    def _publish(self, manifest: Manifest, frozen: Frozen | None = None) -> None:
        """Writes first, looks second, deletes third."""
        self._manifest_number += 1
        manifest = manifest.model_copy(update={"number": self._manifest_number})
        with self._serving.in_doubt(), self._stale_first():
            publish_manifest(self.place.disk, self.place.root, manifest)
            remove_superseded(self.place.disk, self.place.root, manifest)
        with self._writing, self._state:
            self._manifest = manifest
            self._files.follow(manifest.files)
            if frozen is not None:
                self._frozen = None
                self._log.closed_bytes -= frozen.closed_bytes

    def _stale_first(self) -> AbstractContextManager[None]:
        return stale_before_wrong(self.place.disk, self.place.root, self.opening)
