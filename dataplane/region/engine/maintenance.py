"""Keeps an open region's memory, log and files bounded: flushes, merges and removals."""

import posixpath
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

from dataplane.region.compaction.compaction import (
    RUNS_MAX,
    RUNS_MIN,
    Compaction,
    Merged,
    compacted,
    merged,
    plan_compaction,
)
from dataplane.region.compaction.flush import Frozen, flush_bytes, flushed, write_memtable
from dataplane.region.compaction.rewrite import merge_bytes, write_compacted
from dataplane.region.engine.content import RegionContent
from dataplane.region.engine.current_manifest import CurrentManifest
from dataplane.region.engine.serving import Serving
from dataplane.region.format.names import Numbered, data_name
from dataplane.region.log.log_writer import LogWriter
from dataplane.region.manifests.housekeeping import obsolete_paths, remove_obsolete
from dataplane.region.manifests.manifest import Manifest
from dataplane.region.memory.statement_files import StatementFiles
from metasrv_base.errors import NotFound, Unavailable


class RegionMaintenance:
    """Runs beside readers and writers, each call in a thread of its own.

    At most one merge and one flush are under way, each under a lock of its own that is taken
    before all others. A merge may wait for a flush, and never the other way round.
    """

    def __init__(
        self,
        serving: Serving,
        manifest: CurrentManifest,
        content: RegionContent,
        log: LogWriter,
        statement_files: StatementFiles,
    ) -> None:
        self._place = serving.place
        self._serving = serving
        self._manifest = manifest
        self._content = content
        self._log = log
        self._statement_files = statement_files
        """Used only while the manifest does not change."""
        self._merging = threading.Lock()
        self._flushing = threading.Lock()

    @property
    def memory_bytes(self) -> int:
        """The bytes of rows that are in memory, and in no file."""
        return sum(memory.bytes for memory in self._content.memories)

    def needs_flush(self) -> bool:
        """Whether a flush is due, by bytes or by age; the node asks now and then and calls `flush`
        in a thread. Waits for nothing."""
        limits, memory = self._place.limits, self._content.memory
        if self._content.frozen is not None or memory.bytes >= limits.memtable_bytes:
            return True
        age_ms = self._place.clock.wall_ms() - memory.first_ms
        return memory.rows > 0 and age_ms >= limits.flush_age_ms

    def flush(self, *, to_end: bool = False) -> bool:
        """Memory to files, one for each family, then a manifest that names them, then the look,
        then the log is cut. *to_end*: also if there are no rows, so that the manifest says that the
        files reach to the end of the log.

        False: there was nothing. Unavailable `storage-full` leaves the rows where they are.
        """
        with self._flushing:
            self._serving.check()
            frozen = self._freeze(to_end=to_end)
            if frozen is None:
                return False
            columns, marks = self._manifest.value.spec.columns, self._manifest.value.marks
            with ExitStack() as names, self._place.budget.flushing(flush_bytes(frozen.memory)):
                entries = [
                    write_memtable(
                        self._place, columns, memtable, names.enter_context(self._new_file()), marks
                    )
                    for memtable in frozen.memory.memtables()
                ]
                with self._manifest.changing() as manifest:
                    manifest = self._with_statements(manifest)
                    version = self._content.readable_version()
                    position = self._log.history.at(frozen.sequence)
                    manifest = flushed(manifest, frozen, entries, version, position)
                    self._manifest.publish(manifest, frozen, replaced=entries)
            with self._log.writing:
                self._log.cut(frozen.closed_bytes, frozen.sequence)
            return True

    def freeze(self) -> None:
        """Closes the memtables and the segment that have the rows so far: `flush` writes them."""
        self._freeze()

    def make_room(self) -> None:
        """Flushes before further rows come, if memory holds too many. Then writers wait."""
        held = self._content.memory.bytes
        is_full = held >= 2 * self._place.limits.memtable_bytes
        if is_full or self._place.budget.is_to_flush(held):
            self.flush()

    def is_merge_due(self) -> bool:
        """Whether `compact` has something to merge. Waits for nothing."""
        return plan_compaction(self._manifest.value) is not None

    def compact(self) -> Merged | None:
        """Merges small files into one run, beside readers and writers. None: nothing is due, or
        memory has no room for it now.

        The inputs go after manifest and look; those that somebody reads go by a later `sweep`.
        """
        with self._merging:
            manifest, budget = self._manifest.value, self._place.budget
            columns = manifest.spec.columns
            plan, size = self._fitting_merge(manifest)
            if plan is None:
                return None
            reading = self._content.view([plan.family])  # an index may die meanwhile
            with ExitStack() as names, self._serving.stale_first(), reading:
                with budget.merging(size) as has_room:
                    if not has_room:
                        return None
                    outputs = write_compacted(
                        self._place,
                        columns,
                        plan,
                        lambda: names.enter_context(self._new_file()),
                        self._serving.check,
                    )
                with self._manifest.changing() as current:
                    new_manifest = compacted(current, plan, outputs)
                    if new_manifest is not None:
                        self._manifest.publish(new_manifest, replaced=plan.inputs)
                    else:
                        self._content.let_go(outputs)
            self.sweep()
            return merged(plan, outputs)

    def _fitting_merge(self, manifest: Manifest) -> tuple[Compaction | None, int]:
        """The merge that is due, and the memory that it takes: of fewer runs where those of more
        do not fit in the part for merges."""
        columns, runs = manifest.spec.columns, RUNS_MAX
        while plan := plan_compaction(manifest, runs):
            size = merge_bytes(self._place, columns, plan)
            if size <= self._place.budget.merge_max or len(plan.runs) == RUNS_MIN:
                return plan, size
            runs = len(plan.runs) - 1
        return None, 0

    def has_unread_files(self) -> bool:
        """Whether there is something to `sweep`."""
        return bool(self._content.unread())

    def sweep(self) -> int:
        """Removes files that were let go and that nobody reads any more; returns how many."""
        with self._manifest.changing():
            names = self._content.unread()
            if names:
                self._remove([posixpath.join(self._place.root, name) for name in names])
                self._content.removed(names)
            return len(names)

    def collect(self, keep_attempts: Iterable[str] = ()) -> int:
        """Removes own files that no manifest names and no open attempt claims; returns how many.

        `keep_attempts`: folders `attempts/{name}` of jobs that may still be writing.
        """
        with self._manifest.changing() as manifest:
            kept, unnamed = frozenset(keep_attempts), self._content.unnamed_files()
            paths = obsolete_paths(self._place.disk, self._place.root, manifest, kept, unnamed)
            if paths:
                self._remove(paths)
            return len(paths)

    def close_log(self) -> None:
        """Closes the files that grow when nobody writes; the next batch opens others."""
        with self._manifest.unchanged(), self._log.writing:
            self._log.rotate()
            self._statement_files.close()

    def forget_statements(self) -> None:
        """Forgets those that are outside the window. Waits for nothing."""
        self._content.forget_statements(self._place.clock.wall_ms())

    def without_flush(self) -> AbstractContextManager[bool]:
        """Waits for the flush that is under way; none begins within the block."""
        return self._flushing

    def end(self) -> None:
        """The region serves no more. Waits for a merge, which sees it at its next window, and for
        a flush, which sees it before its manifest; then the memory is given back."""
        with self._merging, self._flushing:
            self._content.give_up()

    def _with_statements(self, manifest: Manifest) -> Manifest:
        """Names the files of all statements that are remembered, once they are durable. The time of
        those that are forgotten is taken before: what is forgotten meanwhile is in a file."""
        forgotten_ms, tables = self._content.remembered()
        with self._serving.unless_unknown():
            files = self._statement_files.write(tables)
        new_manifest = {"statements": (), "statement_files": files, "forgotten_ms": forgotten_ms}
        return manifest.model_copy(update=new_manifest)

    def _freeze(self, *, to_end: bool = False) -> Frozen | None:
        """Returns the memtable to flush; after a flush that failed, the one that it left. None too
        while the log has records that are not in memory yet: a file never lets go what it lacks."""
        is_behind = to_end and self._log.history.base.sequence < self._content.sequence
        if self._content.frozen is None and (self._content.memory.rows or is_behind):
            log = self._log
            with log.writing:
                if log.history.end > self._content.sequence:
                    return None
                log.rotate()
                columns = self._manifest.value.spec.columns
                self._content.freeze(log.next_segment, log.closed_bytes, columns)
        return self._content.frozen

    def _remove(self, paths: Iterable[str]) -> None:
        opening = self._serving.opening
        with self._serving.in_doubt(), self._serving.stale_first():
            remove_obsolete(self._place.disk, self._place.root, opening, paths)

    @contextmanager
    def _new_file(self) -> Iterator[Numbered]:
        """The name of a new file, which is not collected as obsolete while it is written."""
        with self._content.new_file() as name:
            try:
                with self._serving.unless_unknown():
                    yield name
            except Unavailable as error:
                if error.code == "storage-full":  # nothing names it, and its room is needed
                    with suppress(NotFound):
                        self._place.disk.remove(posixpath.join(self._place.root, data_name(name)))
                raise
