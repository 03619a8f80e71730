"""One open region: ordered rows behind one fence, written in groups, read as of a moment.

Synchronous, and safe for threads: the node runs each call in a thread. One thread writes at a time
and a group of batches costs one append, one fsync and one look at the fence; a flush runs beside
the writers, in a thread of its own. Readers take no lock while they read files. After an error that
leaves the log or a manifest in doubt, or behind a higher fence, the region answers nothing but
that error: it must be opened again.

Bounds: memory is two memtables (the second while one is flushed), their sorted copies while they
are scanned, the block cache, and for a scan or a merge a window of each file that it touches.
"""

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa

from dataplane.region.compaction.compaction import small_files
from dataplane.region.copies.history import LogHistory
from dataplane.region.engine.content import RegionContent
from dataplane.region.engine.current_manifest import CurrentManifest
from dataplane.region.engine.file_ingest import FileIngest
from dataplane.region.engine.maintenance import RegionMaintenance
from dataplane.region.engine.opening import OpenedRegion, create_or_open, open_existing
from dataplane.region.engine.reading import RegionReader
from dataplane.region.engine.region_changes import RegionChange, RegionChanges
from dataplane.region.engine.serving import Serving
from dataplane.region.engine.writer import RegionWriter
from dataplane.region.format.columns import RegionSpec
from dataplane.region.format.families import ROWS
from dataplane.region.format.names import Opening
from dataplane.region.format.schema import RegionSchema
from dataplane.region.log.log_writer import LogWriter
from dataplane.region.manifests.adoption import borrowed_inputs, snapshot_files
from dataplane.region.manifests.manifest import Manifest, Mark
from dataplane.region.manifests.marks import marked, unmarked, version_of_mark
from dataplane.region.memory.region_stats import RegionStats, stats_of
from dataplane.region.place import OpenOrder, RegionPlace
from metasrv_base.errors import MetaError, NotFound, Unavailable
from metasrv_base.wire.node.inputs import Borrowed, Snapshot

REGION_FILE = "file of the region"
FILES_MAX = 512
"""Small ones of a region: with more, every read looks into too many. Merging keeps fewer than 40 of
a family, so it has fallen behind, and writes wait for it."""


class Region:
    """A region that is open, made by `Region.create` or `Region.open`. Rows come in by `writer` and
    go out by `reader`; `maintenance` keeps it small; `file_ingest` takes what jobs made;
    `changes` makes those of its schema and its marks. The region itself is closed.

    Behind them stand, each the only owner of its state: whether the opening still serves
    (`Serving`), the rows in memory and files (`RegionContent`), the manifest (`CurrentManifest`)
    and the log (`LogWriter`).

    Locks are taken in this order, and any may be left out: the merge and the flush of
    `RegionMaintenance`, the manifest, the log, the content. The content's alone is never held
    during I/O.
    """

    def __init__(
        self,
        region_place: RegionPlace,
        opened: OpenedRegion,
        log_type: type[LogWriter] = LogWriter,
    ) -> None:
        self.place = region_place
        serving = self._serving = Serving(region_place, opened.mine)
        content = self._content = RegionContent(region_place, opened)
        manifest = self._manifest = CurrentManifest(serving, content, opened.manifest)
        log = self._log = log_type(
            region_place.disk,
            region_place.root,
            self.spec.region_id,
            opened.mine,
            opened.history,
        )
        log.borrowed_sequence = opened.borrowed_sequence
        self.unlogged_ms = opened.statements.latest_ms
        """The latest time of a statement that was applied before this opening, and that its log may
        lack; 0: there is none."""
        self.reader = RegionReader(serving, content)
        self.maintenance = RegionMaintenance(
            serving, manifest, content, log, opened.statement_files
        )
        self.writer = RegionWriter(serving, content, log, self.reader, self.maintenance)
        self.changes = RegionChanges(serving, manifest, content, log)
        self.file_ingest = FileIngest(serving, manifest, content, self.reader, self.writer)

    @classmethod
    def create(
        cls, region_place: RegionPlace, spec: RegionSpec, epoch: int, replaces: Sequence[str] = ()
    ) -> "Region":
        """A region without rows, open. The same again opens what it made (`create_or_open`)."""
        return cls(region_place, create_or_open(region_place, spec, epoch, replaces))

    @classmethod
    def open(cls, region_place: RegionPlace, order: OpenOrder) -> "Region":
        """Opens what is there, behind raised fences (`open_existing`)."""
        return cls(region_place, open_existing(region_place, order))

    @property
    def spec(self) -> RegionSpec:
        return self._manifest.value.spec

    @property
    def manifest(self) -> Manifest:
        """The current one. Frozen: a copy is not needed."""
        return self._manifest.value

    @property
    def log_history(self) -> LogHistory:
        """The positions of what is durable in its log."""
        return self._log.history

    @property
    def schema(self) -> RegionSchema:
        return self._content.schema

    @property
    def schema_floor(self) -> int:
        return self.schema.floor

    @property
    def opening(self) -> Opening:
        return self._serving.opening

    @property
    def stopped(self) -> MetaError | None:
        """The reason why this opening serves no more; None: it serves."""
        return self._serving.stopped

    @property
    def file_count(self) -> int:
        """Files that the manifest names."""
        return len(self.manifest.files)

    @property
    def borrowed_roots(self) -> tuple[str, ...]:
        return self.manifest.borrowed_roots

    @property
    def has_marks(self) -> bool:
        return bool(self.manifest.marks)

    def must_have_room(self, rows: pa.RecordBatch) -> None:
        """Raises Unavailable while merging has fallen behind. *rows*: of the batch that comes."""
        if self.file_count < FILES_MAX:
            return
        files = small_files(self.manifest, self.place.limits.memtable_bytes)
        if files >= FILES_MAX:
            what = f"region {self.spec.region_id}"
            raise Unavailable(what=what, reason="its files wait to be merged", files=files)

    def stats(self) -> RegionStats:
        """Waits for nothing: heartbeats ask for it on the event loop. Figures beside a write or a
        flush may be of before or after it."""
        content, log = self._content, self._log
        return stats_of(
            self.manifest, content.memories, log.size_bytes, content.version, content.sequence
        )

    def set_schema(
        self,
        newer: RegionSchema,
        mark: str | None = None,
        close: Iterable[str] = (),
        *,
        reserves: bool = False,
    ) -> int:
        """Joins *newer* to what is known, in a region without copies: from the return on,
        batches and reads below the floor are refused, also after a crash and at the next leader,
        and dead indexes are gone.

        Returns the highest row version before the floor took hold; with the name of a mark, the
        mark's: now, unless it stands already. Marks to `close` may be gone already. `reserves`: the
        mark's version is one that no row has or will be given, but those that a job brings.
        """
        return self.changes.publish(RegionChange(newer, mark, tuple(close), reserves))

    def open_mark(self, name: str, version: int) -> bool:
        """Opens a mark: rows can be read as of `version` until it is closed (P5).

        No row at or below it will be written. False: it was open. Raises Conflict
        `version-mismatch` for a moment of which versions may be gone.
        """
        with self.maintenance.without_flush(), self._manifest.changing() as before:
            manifest = marked(before, Mark(name=name, version=version))
            if manifest is not None:
                with self._log.writing:
                    self._content.raise_version(version)
                self._manifest.publish(manifest)
            return manifest is not None

    def close_mark(self, name: str) -> bool:
        """Closes a mark; returns False if it was not open."""
        with self._manifest.changing() as before:
            manifest = unmarked(before, name)
            if manifest is not None:
                self._manifest.publish(manifest)
            return manifest is not None

    def borrowed(self) -> Borrowed:
        """The read-only inputs of other roots; they stay the same until they are adopted."""
        return borrowed_inputs(self.manifest, self.place.root)

    def snapshot(self, mark: str, indexes: Iterable[int] | None = ()) -> Snapshot:
        """Files that hold all rows as of an open mark, and the entries of those indexes; None: of
        whatever index it holds any. What is in memory is flushed first.

        They stay until the mark is closed, the region is closed, or this is asked again. Raises
        NotFound for a mark that is not open."""
        version = self._version_of(mark)
        named = self._content.families() if indexes is None else {ROWS, *indexes}
        while self._content.has_in_memory(named, version):
            if not self.maintenance.flush() and self._content.has_in_memory(named, version):
                what = f"region {self.spec.region_id}"
                raise Unavailable(what=what, reason="a write waits for its copies")
        with self._manifest.changing() as manifest:
            listed = {file.family for file in manifest.files}
            families = {ROWS, *listed} if indexes is None else named
            snapshot = snapshot_files(manifest, self.place.root, mark, families)
            if snapshot is None:
                raise NotFound(what="mark", name=mark)
            self._content.hold(mark, families)
            return snapshot

    def pin_files(self, session: str) -> Manifest:
        """Returns the current manifest. Its data files stay on disk until `unpin_files`, or until
        the region is closed; its files of statements may go with the next flush."""
        with self._manifest.changing() as manifest:
            self._content.pin(session)
            return manifest

    def pin_named(self, session: str, names: Collection[str]) -> None:
        """Keeps own data files, by their names, until `unpin_files`: those of the manifest, and
        those of changes of the log. Raises NotFound for another name."""
        with self._manifest.changing() as manifest:
            own = {entry.name for entry in manifest.files if entry.root is None}
            unknown = sorted(set(names) - own - self._content.awaited_files())
            if unknown:
                raise NotFound(what=REGION_FILE, name=unknown[0])
            self._content.pin(session)

    def unpin_files(self, session: str) -> None:
        """Ends a pin. Waits for nothing; may be called again."""
        self._content.unpin(session)

    def _version_of(self, mark: str) -> int:
        version = version_of_mark(self.manifest, mark)
        if version is None:
            raise NotFound(what="mark", name=mark)
        return version

    def close(self) -> None:
        """Serves no more, and nothing writes to the root. Rows in memory are in the log."""
        with self._manifest.unchanged(), self._log.writing:
            self._serving.stop(Unavailable("not-ready", reason="closed"))
        self.maintenance.close_log()
        self.maintenance.end()
