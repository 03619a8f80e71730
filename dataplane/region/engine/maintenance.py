"""What keeps an open region's memory, log and files bounded: flushes, merges and removals."""

import posixpath
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from dataplane.region.compaction.compaction import Merged, compacted, merged, plan_compaction
from dataplane.region.compaction.flush import Frozen, flush_bytes, flushed, write_memtable
from dataplane.region.compaction.rewrite import merge_bytes, write_compacted
from dataplane.region.engine.core import Core
from dataplane.region.format.names import Numbered, data_name
from dataplane.region.manifests.housekeeping import leavings, remove_leavings
from dataplane.region.manifests.manifest import FileEntry, Manifest
from metasrv_base.errors import NotFound, Unavailable


class Maintained(Core):
    """Runs beside readers and writers, each in a thread of its own."""

    def needs_flush(self) -> bool:
        """By bytes or by age; the node asks now and then and calls `flush` in a thread. Waits for
        nothing."""
        limits, memory = self.place.limits, self._content.memory
        if self._content.frozen is not None or memory.bytes >= limits.memtable_bytes:
            return True
        age_ms = self.place.clock.wall_ms() - memory.first_ms
        return memory.rows > 0 and age_ms >= limits.flush_age_ms

    def flush(self) -> bool:
        """Memory to files, one for each family, then a manifest that names them, then the look,
        then the log is cut.

        False: there was nothing. Unavailable `storage-full` leaves the rows where they are.
        """
        with self._flushing:
            self._serving.check()
            frozen = self._freeze()
            if frozen is None:
                return False
            columns, marks = self.spec.columns, self._manifest.marks
            with ExitStack() as names, self.place.budget.flushing(flush_bytes(frozen.memory)):
                entries = [
                    write_memtable(
                        self.place, columns, memtable, names.enter_context(self._new_file()), marks
                    )
                    for memtable in frozen.memory.memtables()
                ]
                with self._publishing:
                    self._serving.check()
                    manifest = self._with_statements(self._manifest)
                    with self._content.lock:
                        version = self._content.version
                    self._publish(flushed(manifest, frozen, entries, version), frozen)
                    self._let_go(entries)
            with self._writing:
                self._log.closed_bytes -= frozen.closed_bytes
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
            reading = self._content.view([plan.family])  # an index may die meanwhile
            with self._new_file() as name, self._stale_first(), reading:
                with self.place.budget.merging(merge_bytes(self.place, columns, plan)):
                    output = write_compacted(self.place, columns, plan, name, check)
                with self._publishing:
                    check()
                    manifest = compacted(self._manifest, plan, output)
                    if manifest is not None:
                        self._publish(manifest)
                        self._let_go(plan.inputs)
                    elif output is not None:
                        self._let_go([output])
            self.sweep()
            return merged(plan, output)

    def has_unread_files(self) -> bool:
        """Whether there is something to `sweep`."""
        with self._content.lock:
            return bool(self._content.files.unread())

    def sweep(self) -> int:
        """Removes files that were let go and that nobody reads any more; returns how many."""
        with self._publishing:
            self._serving.check()
            with self._content.lock:
                names = self._content.files.unread()
            if names:
                self._remove([posixpath.join(self.place.root, name) for name in names])
                with self._content.lock:
                    self._content.files.removed(names)
            return len(names)

    def collect(self, keep_attempts: Iterable[str] = ()) -> int:
        """Removes own files that no manifest names and no open attempt claims; returns how many.

        `keep_attempts`: folders `attempts/{name}` of jobs that may still be writing.
        """
        with self._publishing:
            self._serving.check()
            kept, unnamed = frozenset(keep_attempts), self._content.files.unnamed
            paths = leavings(self.place.disk, self.place.root, self._manifest, kept, unnamed)
            if paths:
                self._remove(paths)
            return len(paths)

    def close_log(self) -> None:
        """Closes the files that grow when nobody writes; the next batch opens others."""
        with self._publishing, self._writing:
            self._log.rotate()
            self._statement_files.close()

    def forget_statements(self) -> None:
        """Forgets those that are outside the window. Waits for nothing."""
        self._content.forget_statements(self.place.clock.wall_ms())

    def _with_statements(self, manifest: Manifest) -> Manifest:
        """Names the files of all statements that are remembered, once they are durable. The time of
        those that are forgotten is taken before: what is forgotten meanwhile is in a file."""
        with self._content.lock:
            forgotten_ms, tables = self._content.remembered()
        with self._serving.unless_unknown():
            files = self._statement_files.write(tables)
        news = {"statements": (), "statement_files": files, "forgotten_ms": forgotten_ms}
        return manifest.model_copy(update=news)

    def _make_room(self) -> None:
        held = self._content.memory.bytes
        is_full = held >= 2 * self.place.limits.memtable_bytes
        if is_full or self.place.budget.must_yield(held):
            self.flush()

    def _freeze(self) -> Frozen | None:
        """What is to be flushed; after a flush that failed, what it left."""
        if self._content.frozen is None and self._content.memory.rows:
            with self._writing:
                self._log.rotate()
                log = self._log
                self._content.freeze(log.next_segment, log.closed_bytes, self.spec.columns)
        return self._content.frozen

    def _let_go(self, entries: Iterable[FileEntry]) -> None:
        """Those of *entries* that the manifest does not name."""
        named = set(self._manifest.files)
        with self._content.lock:
            self._content.files.let_go(entry for entry in entries if entry not in named)

    def _remove(self, paths: Iterable[str]) -> None:
        with self._serving.in_doubt(), self._stale_first():
            remove_leavings(self.place.disk, self.place.root, self.opening, paths)

    @contextmanager
    def _new_file(self) -> Iterator[Numbered]:
        """A name that is taken for no leaving while the file is written."""
        with self._content.lock:
            name = self._content.files.begin()
        try:
            with self._serving.unless_unknown():
                yield name
        except Unavailable as error:
            if error.code == "storage-full":  # nothing names it, and its room is needed
                with suppress(NotFound):
                    self.place.disk.remove(posixpath.join(self.place.root, data_name(name)))
            raise
        finally:
            with self._content.lock:
                self._content.files.end(name)
