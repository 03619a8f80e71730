"""Changes of an open region's schema, floor, marks and files, and the manifests that they become.

A region without copies publishes the manifest at once (docs/decisions/0086). One with copies first
logs the change, in order with its rows, and publishes when every copy that it requires has the
record (docs/decisions/0372), and the files that it names (docs/decisions/0398).
"""

from dataclasses import dataclass

from dataplane.log.records import LogPosition, RecordType
from dataplane.region.engine.content import RegionContent
from dataplane.region.engine.current_manifest import CurrentManifest
from dataplane.region.engine.serving import Serving
from dataplane.region.format.schema import RegionSchema
from dataplane.region.format.versions import next_version
from dataplane.region.log.log_writer import LogWriter, PositionedRecord
from dataplane.region.log.logged_change import LoggedChange, PositionedChange, with_change
from dataplane.region.log.logged_files import LoggedFiles
from dataplane.region.manifests.adoption import Ingest, ingested
from dataplane.region.manifests.floor import with_schema
from dataplane.region.manifests.manifest import Manifest, Mark
from dataplane.region.manifests.marks import marked, unmarked, version_of_mark
from metasrv_base.errors import MetaError

UNLOGGED = "unlogged"
"""The name of files of a region whose log is empty, when it gets copies: nothing else leads a copy
to them. Behind a longer log a copy begins with all files of the manifest."""


@dataclass(frozen=True, slots=True)
class RegionChange:
    """A change of a region that an order asks for."""

    schema: RegionSchema
    """Joined to what is known."""
    mark: str | None = None
    """The name of a mark to open, now, unless it stands already."""
    closes: tuple[str, ...] = ()
    """Marks to close; they may be gone already."""
    reserves: bool = False
    """Whether the mark's version is one that no row has or will be given, but those that a job
    brings."""


@dataclass(frozen=True, slots=True)
class OrderedChange:
    """A change that is in the log of its leader, and in no manifest."""

    logged: PositionedRecord | None
    """The record as copies are sent it; None: the region has all of it already."""
    record: PositionedChange | None
    version: int
    """The answer: the highest row version before the floor took hold; with a mark, the mark's."""


class RegionChanges:
    """Safe for threads. The lock of the manifest is taken first, then that of the log."""

    def __init__(
        self, serving: Serving, manifest: CurrentManifest, content: RegionContent, log: LogWriter
    ) -> None:
        self._serving = serving
        self._manifest = manifest
        self._content = content
        self._log = log

    def publish(self, change: RegionChange) -> int:
        """Makes a change of a region without copies. Returns `OrderedChange.version`."""
        with self._manifest.changing() as before, self._log.writing:
            self._serving.check()
            after, version = self._planned(before, change)
            if after != before:
                self._manifest.publish(after, replaced=before.files)
            return version

    def order(self, change: RegionChange | Ingest, *, anew: bool = False) -> OrderedChange:
        """The first half, for a region with copies: the change is durable in the own log, and has
        no effect. No batch is ordered before it is settled. *anew*: logs what the region has, also
        if nothing changes; with its files where the log is empty. Files of an ingest are durable
        before (`FileIngest.entries_first`), and not collected from now on.

        Raises as `LogWriter.append_records`; whether the record is in the log then is not known,
        and the region serves no more. Raises as `adoption.ingested`; then it is not in the log.
        """
        with self._manifest.changing() as before, self._log.writing:
            self._serving.check()
            assert self._log.history.end == self._content.sequence, "one record at a time waits"
            base, files = self._with_floor_version(before), None
            if isinstance(change, Ingest):
                after, files = self._with_files(base, change)
                version = self._content.version
            else:
                after, version = self._planned(base, change)
            if after == before and not anew:
                return OrderedChange(None, None, version)
            if anew and before.files and not self._log.history.end:
                files = LoggedFiles(name=UNLOGGED, root=self._root, files=before.files)
            logged = LoggedChange.of(after, self._content.version, files)
            sequence = self._log.history.end + 1
            if files is not None:
                self._content.await_files(sequence, files.names_in(self._root))
            record = PositionedRecord(
                LogPosition(self._serving.opening.epoch, sequence),
                logged.encode(),
                type=RecordType.CHANGE,
            )
            with self._serving.in_doubt():
                self._log.append_records([record])
                self._serving.look()
            return OrderedChange(record, PositionedChange(sequence, logged), version)

    def settle(self, record: PositionedChange) -> None:
        """The second half, also at a copy: every copy that is required has the record, and all
        records before it have taken effect here. The next record of the log.

        An error ends the opening: what comes behind must not take effect without it.
        """
        try:
            with self._manifest.changing() as before:
                after = with_change(before, record, self._root)
                if after != before:
                    self._manifest.publish(after, replaced=before.files)
                self._content.pass_change(record.change.version)
        except MetaError as error:
            self._serving.stop(error)
            raise

    @property
    def _root(self) -> str:
        return self._serving.place.root

    def _with_files(self, before: Manifest, source: Ingest) -> tuple[Manifest, LoggedFiles | None]:
        """The manifest with the files of a job, and what a record says of them. The same manifest,
        and None, if they were taken before."""
        if source.name in before.adopted:
            return before, None
        after = ingested(before, source, self._content.version)
        files = after.files[len(before.files) :]
        return after, LoggedFiles(name=source.name, root=self._root, files=files)

    def _planned(self, before: Manifest, change: RegionChange) -> tuple[Manifest, int]:
        """The manifest after the change, and the answer. Nobody writes meanwhile."""
        after = with_schema(before, change.schema, self._content.version)
        for name in change.closes:
            after = unmarked(after, name) or after
        if change.mark is None:
            return after, after.floor_version
        standing = version_of_mark(after, change.mark)  # 0: of a region that had no rows
        version = self._version_now(reserves=change.reserves) if standing is None else standing
        return marked(after, Mark(name=change.mark, version=version)) or after, version

    def _with_floor_version(self, manifest: Manifest) -> Manifest:
        """A copy that was made with a floor has not heard at which version it took hold: now, which
        is not too early."""
        if manifest.floor_version or not manifest.schema_floor:
            return manifest
        return manifest.model_copy(update={"floor_version": self._content.version})

    def _version_now(self, *, reserves: bool) -> int:
        """The highest given; with `reserves` one above it, which is given to nobody. Nobody writes
        meanwhile."""
        if reserves:
            wall_ms = self._serving.place.clock.wall_ms()
            self._content.raise_version(next_version(self._content.version, wall_ms))
        return self._content.version
