"""One open region: ordered rows behind one fence, written in groups, read as of a moment.

Synchronous, and safe for threads: the node runs each call in a thread. One thread writes at a time
and a group of batches costs one append, one fsync and one look at the fence; a flush runs beside
the writers, in a thread of its own. Readers take no lock while they read files. After an error that
leaves the log or a manifest in doubt, or behind a higher fence, the region answers nothing but
that error: it must be opened again.

Bounds: memory is two memtables (the second while one is flushed), their sorted copies while they
are scanned, the block cache, and for a scan or a merge a window of each file that it touches.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from dataplane.region.engine.file_ingest import FileIngest
from dataplane.region.engine.group import Applied, BatchRules, GroupRecord, WriteGroup
from dataplane.region.engine.opening import create_or_open, open_existing
from dataplane.region.engine.serving import unknown_outcome
from dataplane.region.engine.shape import BatchShape
from dataplane.region.format.columns import RegionSpec
from dataplane.region.format.families import ROWS
from dataplane.region.format.schema import RegionSchema
from dataplane.region.format.versions import next_version
from dataplane.region.manifests.adoption import (
    adopted,
    borrowed_inputs,
    entry_of,
    snapshot_files,
    sync_attempt,
)
from dataplane.region.manifests.fence import look
from dataplane.region.manifests.floor import told
from dataplane.region.manifests.manifest import Mark
from dataplane.region.manifests.marks import marked, unmarked, version_of_mark
from dataplane.region.place import OpenOrder, RegionPlace
from metasrv_base.errors import MetaError, NotFound, Unavailable
from metasrv_base.wire.node.batches import BatchHeader
from metasrv_base.wire.node.inputs import Borrowed, Snapshot
from metasrv_base.wire.node.orders import DataFile


class Region(FileIngest):
    """Made by `Region.create` or `Region.open`."""

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

    def apply(
        self, batches: Sequence[tuple[BatchHeader, pa.RecordBatch]]
    ) -> list[Applied | MetaError]:
        """Group commit: one answer for each batch, after one fsync and one look for all.

        An error in the list: `Refused` or `Conflict`: not done. `Unknown`: written, but not
        acknowledged; sent again with the same statement id it is settled. Raises if the region
        serves no more, and `Unavailable` if nothing of the group could be tried.
        """
        self._make_room()
        self.forget_statements()
        with self._writing, self._view({ROWS} | self.schema.indexes) as views:
            remembers = self.place.budget.remembers_more
            terms = BatchRules(self.opening.epoch, self.schema, self._shape_now(), remembers)
            group = WriteGroup(terms, views, self._content.statements)
            wall_ms, version = self.place.clock.wall_ms(), self._content.version
            for header, batch in batches:
                version = group.admit(header, batch, version, wall_ms)
            if not group.staged:
                return group.results()
            record = group.record()
            failure = self._write(record)
            if failure is None:
                self._content.add(record.content, wall_ms)
            return group.results(failure)

    def set_schema(
        self,
        news: RegionSchema,
        mark: str | None = None,
        close: Iterable[str] = (),
        *,
        reserves: bool = False,
    ) -> int:
        """Joins `news` to what is known: from the return on, batches and reads below the floor are
        refused, also after a crash and at the next leader, and dead indexes are gone.

        Returns the highest row version before the floor took hold; with the name of a mark, the
        mark's: now, unless it stands already. Marks to `close` may be gone already. `reserves`: the
        mark's version is one that no row has or will be given, but those that a job brings.
        """
        with self._publishing, self._writing:
            self._serving.check()
            manifest = told(self._manifest, news, self._content.version)
            for name in close:
                manifest = unmarked(manifest, name) or manifest
            if mark is not None:
                standing = version_of_mark(manifest, mark)  # 0: of a region that had no rows
                version = self._version_now(reserves) if standing is None else standing
                manifest = marked(manifest, Mark(name=mark, version=version)) or manifest
            before = self._manifest
            if manifest != before:
                self._publish(manifest)
                self._let_go(before.files)
            return manifest.floor_version if mark is None else version

    def open_mark(self, name: str, version: int) -> bool:
        """From now on rows can be read as of `version`, until the mark is closed (P5).

        No row at or below it will be written. False: it was open. Raises Conflict
        `version-mismatch` for a moment of which versions may be gone.
        """
        with self._flushing, self._publishing:
            self._serving.check()
            manifest = marked(self._manifest, Mark(name=name, version=version))
            if manifest is not None:
                with self._writing, self._content.lock:
                    self._content.version = max(self._content.version, version)
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

    def snapshot(self, mark: str, indexes: Iterable[int] | None = ()) -> Snapshot:
        """Files that hold all rows as of an open mark, and the entries of those indexes; None: of
        whatever index it holds any. What is in memory is flushed first.

        They stay until the mark is closed, the region is closed, or this is asked again. Raises
        NotFound for a mark that is not open."""
        version = self._version_of(mark)
        named = self._content.families() if indexes is None else {ROWS, *indexes}
        while self._content.has_in_memory(named, version):
            self.flush()
        with self._publishing:
            self._serving.check()
            listed = {file.family for file in self._manifest.files}
            families = {ROWS, *listed} if indexes is None else named
            found = snapshot_files(self._manifest, self.place.root, mark, families)
            if found is None:
                raise NotFound(what="mark", name=mark)
            self._content.hold(mark, families)
            return found

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
            self._let_go(entry_of(file) for file in files)
            return True

    def _version_now(self, reserves: bool) -> int:
        """The highest given; with `reserves` one above it, which is given to nobody. Nobody writes
        meanwhile."""
        with self._content.lock:
            if reserves:
                wall_ms = self.place.clock.wall_ms()
                self._content.version = next_version(self._content.version, wall_ms)
            return self._content.version

    def _version_of(self, mark: str) -> int:
        version = version_of_mark(self._manifest, mark)
        if version is None:
            raise NotFound(what="mark", name=mark)
        return version

    def close(self) -> None:
        """Serves no more, and nothing writes to the root. Rows in memory are in the log."""
        with self._publishing, self._writing:
            self._serving.stop(Unavailable("not-ready", reason="closed"))
            self._log.rotate()
            self._statement_files.close()
        with self._merging, self._flushing:
            # A merge has seen it, at its next window, and a flush before its manifest.
            self._content.give_up()

    def _shape_now(self) -> BatchShape:
        """`_writing` is held."""
        columns = self.spec.columns
        if self._shape is None or self._shape.columns is not columns:
            self._shape = BatchShape(columns)
        return self._shape

    def _write(self, record: GroupRecord) -> MetaError | None:
        """None: durable, and nobody had taken over. Otherwise what the group is told."""
        try:
            with self._serving.in_doubt():
                self._log.append(record.payload, record.schemas, self._content.sequence + 1)
                look(self.place.disk, self.place.root, self.opening)
        except Unavailable as error:
            if error.code == "storage-full":
                return error  # nothing was written
            return unknown_outcome(error)
        except MetaError as error:
            return unknown_outcome(error)
        return None
