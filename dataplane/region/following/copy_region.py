"""A region in the role of a copy: it takes the records of its leader.

Its log is its leader's, record by record. Its memtables and files have only what it knows as common
to every copy of the set, so that cutting back only ever cuts its log (P5.9). Readers that take rows
of a declared age read those (P4.6). Synchronous: one call at a time, each in a thread; readers and
`maintenance` run beside them.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from dataplane.log.records import LogPosition
from dataplane.region.copies.copy_view import CopyView, OfferedRecord
from dataplane.region.copies.history import LogHistory
from dataplane.region.copies.staleness import AppliedLog
from dataplane.region.engine.content import RegionContent
from dataplane.region.engine.current_manifest import CurrentManifest
from dataplane.region.engine.maintenance import RegionMaintenance
from dataplane.region.engine.opening import OpenedRegion, create_or_open
from dataplane.region.engine.reading import RegionReader
from dataplane.region.engine.region_changes import RegionChanges
from dataplane.region.engine.serving import Serving
from dataplane.region.fetching.file_fetch import FileFetch
from dataplane.region.fetching.installing import install
from dataplane.region.fetching.logged_fetch import LoggedFetch, are_durable
from dataplane.region.following.copy_opening import open_copy, read_copy
from dataplane.region.following.pending import PendingRecords, decoded, must_know_columns
from dataplane.region.format.columns import RegionSpec
from dataplane.region.format.schema import RegionSchema
from dataplane.region.log.log_writer import LogWriter, PositionedRecord
from dataplane.region.log.logged_change import PositionedChange
from dataplane.region.log.logged_files import LoggedFiles
from dataplane.region.manifests.manifest import Manifest, SealedEntry
from dataplane.region.place import OpenOrder, RegionPlace
from metasrv_base.errors import Unavailable

NEEDS_FILES = "the log of its leader does not reach back to this copy, which fetches its files"
MEMTABLES = 2
"""Memtables whose bytes a copy may have in memory, as a region: one is flushed beside the other."""


@dataclass(frozen=True, slots=True)
class StreamedRecords:
    """Records that a leader sends to a copy, and what the copy must know of it."""

    epoch: int
    history: LogHistory
    """The positions of the leader's log."""
    common: int
    """The sequence up to which every copy that it requires has its records."""
    groups: Sequence[PositionedRecord]
    """Groups and changes, in order."""
    unlogged_ms: int | None = None
    """The latest time of an applied statement that the leader's log may lack, from its first
    record on; None: it is not said."""


@dataclass(frozen=True, slots=True)
class LackedFiles:
    """Files that a record names and that a copy does not have: it takes no record from there on."""

    epoch: int
    """The epoch of the leader that has sent it."""
    sequence: int
    files: LoggedFiles


class CopyRows:
    """The rows of a copy up to a position, for readers beside the records that come. Safe for
    threads. Ended by the next opening: reads then raise Unavailable."""

    def __init__(self, following: "_Following", applied: AppliedLog) -> None:
        self._following = following
        self.applied = applied
        self.reader = following.reader

    @property
    def spec(self) -> RegionSpec:
        return self._following.manifest.value.spec

    @property
    def schema(self) -> RegionSchema:
        return self._following.content.schema


class CopyRegion:
    """Invariant: `CopyView.common` bounds what memtables and files have; a record is told to the
    view when it is durable."""

    def __init__(self, region_place: RegionPlace, region_id: int) -> None:
        """Raises as `look`."""
        self.place = region_place
        self.region_id = region_id
        self.look()
        self.spec, self._view = _as_on_disk(region_place, region_id)
        self._opened: _Following | None = None
        """The following of a leader; None if none was followed since this process began, or since
        an error."""
        self.rows: CopyRows | None = None
        """The rows that can be read; None: no leader was followed since."""
        self.needs_files: int | None = None
        """The epoch of a leader whose log does not reach back to this one: the copy follows it once
        it has that leader's files. None: the log suffices, as far as it was told."""
        self.lacks: LackedFiles | None = None
        """The files for which the next record waits; None: it waits for none."""
        self._gone: LackedFiles | None = None
        """Files that the leader has no more, under their names: all that it has is needed."""

    @classmethod
    def create(
        cls,
        region_place: RegionPlace,
        spec: RegionSpec,
        epoch: int,
        replaces: Sequence[str] = (),
        *,
        is_learner: bool = False,
    ) -> "CopyRegion":
        """A copy without rows; the same again finds what it made. Raises as `create_or_open`.

        A learner does not know which statements were applied before it was made: records of an
        emptied region do not say so, and a learner may have lacked some in the roots that it
        replaces. Until its leader says so (`StreamedRecords.unlogged_ms`), all that were sent
        before count as forgotten."""
        opened = create_or_open(region_place, spec, epoch, replaces, forgets=is_learner)
        opened.share.set(0)
        opened.statement_share.set(0)
        opened.statement_files.close()
        return cls(region_place, spec.region_id)

    @property
    def epoch(self) -> int:
        """The highest that was followed or led."""
        return self._view.epoch

    @property
    def durable(self) -> LogPosition:
        """The last position of the log."""
        return self._view.history.last

    @property
    def common(self) -> int:
        return self._view.common

    @property
    def maintenance(self) -> RegionMaintenance | None:
        """The flushes and merges of the copy. None: nothing is in memory."""
        return None if self._opened is None else self._opened.maintenance

    def flush_soon(self) -> None:
        """Makes the memory ready to be flushed once nothing is behind it in the log that is not
        common yet, as under steady writes for a moment of each request."""
        if self._opened is not None:
            self._opened.is_to_freeze = True

    def look(self) -> None:
        """Raises Unavailable `region-lost` for a root without a region, or where files of the copy
        are gone; Corrupt for damage, and for one that is no copy. Nothing is under way."""
        read_copy(self.place, self.region_id, is_verified=True)

    def take(self, records: StreamedRecords) -> int:
        """Follows the leader, and appends what comes next in the log and fits in memory, with one
        sync. Returns the sequence up to which the log is durable; sent again it is the same.

        Raises Conflict `stale-epoch` for a leader of an older epoch, Unavailable `region-lost`
        where storage is gone, `not-ready` where the log of the leader of a newer epoch does not
        reach back to this one, so that its files are needed.
        """
        self._view.must_obey(records.epoch)
        if not self._is_reached_by(records):
            self.close()
            self.needs_files, self.lacks = records.epoch, None
            if records.epoch > self._view.epoch:
                what = f"the copy of region {self.region_id}"
                raise Unavailable("not-ready", what=what, reason=NEEDS_FILES)
            return self._view.history.end
        self.needs_files = None
        if self._opened is not None and self._opened.serving.stopped is not None:
            self.close()
        if self._opened is None or records.epoch > self._view.epoch:
            self._follow(records)
        assert self._opened is not None
        following = self._opened
        self._view.flushed(following.log.history.base.sequence)
        with ExitStack() as failed:  # whatever it is: some records may have taken effect in part
            failed.callback(self._forget_opening)
            self._hear_common(following, records)
            if self._append(following, records):
                self._hear_common(following, records)
            failed.pop_all()
        self._lack_no_more()
        return self._view.history.end

    def fetch(self, source: str, manifest: Manifest) -> FileFetch:
        """Begins to fetch the files of a leader's manifest. *source*: its root. Raises Corrupt as
        `FileFetch`."""
        fetch = FileFetch(self.place, source, manifest)
        state = read_copy(self.place, self.region_id)
        fetch.begin(state.manifest, state.awaited)
        return fetch

    def fetch_lacked(self) -> LoggedFetch:
        """Begins to fetch the files for which the next record waits."""
        assert self.lacks is not None
        fetch = LoggedFetch(self.place, self.lacks.files)
        fetch.begin()
        return fetch

    def try_again(self) -> None:
        """Files have arrived: the next record shows whether there are more to come."""
        self.lacks = None

    def needs_all(self) -> None:
        """The leader has merged the files for which the next record waits. The copy asks for the
        files of its manifest instead, which have their rows, when it is sent records again."""
        self._gone = self.lacks

    def install(self, fetch: FileFetch) -> None:
        """Takes the files in the place of all that it had, and then needs none. Raises as
        `installing.install`."""
        assert self._opened is None, "it follows nobody while it needs files"
        assert self.needs_files is not None
        try:
            install(fetch, self.region_id, self.needs_files, self._view.common)
            self.needs_files = self._gone = None
        finally:  # an error may have come behind the manifest
            self.spec, self._view = _as_on_disk(self.place, self.region_id)

    def close(self) -> None:
        """Nothing writes to the root any more. What is in memory is in the log."""
        if self._opened is not None:
            self._forget_opening()

    def _is_reached_by(self, records: StreamedRecords) -> bool:
        """Whether the leader's log has what comes next here. It may send more than it retains."""
        view, end = self._view, self._view.history.end
        gone = self._gone
        if gone is not None and (gone.epoch, gone.sequence) == (records.epoch, end + 1):
            return False
        if records.epoch > view.epoch:
            return view.cut_for(records.epoch, records.history) is not None
        if records.groups and records.groups[0].position.sequence <= end + 1:
            return True
        return records.history.base.sequence <= end

    def _follow(self, records: StreamedRecords) -> None:
        view, cut = self._view, self._view.history.last
        if records.epoch > view.epoch:
            common = view.cut_for(records.epoch, records.history)
            assert common is not None, "the leader's log reaches back to this one"
            cut = common
        self.close()
        order = OpenOrder(self.region_id, records.epoch)
        opened = open_copy(self.place, order, cut.sequence, records.unlogged_ms)
        self._view = CopyView.opened(records.epoch, opened.opened.history)
        self._opened = _Following(self.place, opened.opened, opened.sealed)

    def _append(self, following: "_Following", records: StreamedRecords) -> bool:
        """Takes what comes next in the log. False: it took none. Memory in which the next record
        does not fit is frozen, and so is due to be flushed, if only what is common is in it."""
        view, log = self._view, following.log
        offered = [OfferedRecord(each.position, len(each.payload)) for each in records.groups]
        largest = max((record.bytes for record in offered), default=0)
        room_bytes = following.room_bytes(largest)
        numbers = view.taken(records.epoch, offered, room_bytes)
        if not numbers and any(
            record.position.sequence == view.history.end + 1 and record.bytes > room_bytes
            for record in offered
        ):
            following.maintenance.freeze()
        groups = self._complete(following, [records.groups[number] for number in numbers])
        if not groups:
            return False
        with log.writing, following.serving.in_doubt():
            log.append_records(groups)
            following.serving.look()
        view.appended([group.position for group in groups])
        for group in groups:
            following.pending.add(group)
        return True

    def _lack_no_more(self) -> None:
        """Forgets the files of a record that the copy has, or that another leader may not send."""
        lacks, view = self.lacks, self._view
        if lacks is not None and (lacks.epoch, lacks.sequence) != (
            view.epoch,
            view.history.end + 1,
        ):
            self.lacks = None

    def _complete(
        self, following: "_Following", records: Sequence[PositionedRecord]
    ) -> Sequence[PositionedRecord]:
        """The records in front of the first whose files are not here. What does not decode is
        refused, and not logged."""
        for count, record in enumerate(records):
            entry = decoded(record)
            if isinstance(entry, PositionedChange) and not following.has_files(entry):
                assert entry.change.files is not None
                self.lacks = LackedFiles(self._view.epoch, entry.sequence, entry.change.files)
                return records[:count]
        return records

    def _hear_common(self, following: "_Following", records: StreamedRecords) -> None:
        self._view.heard_common(records.epoch, records.common)
        following.apply(self._view.common)
        self.rows = CopyRows(following, AppliedLog(records.epoch, self._view.common))

    def _forget_opening(self) -> None:
        """The next records open the copy anew, with what was told to the view: what was written
        behind it was acknowledged to nobody, and is cut."""
        self.rows = None
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()


def _as_on_disk(region_place: RegionPlace, region_id: int) -> tuple[RegionSpec, CopyView]:
    state = read_copy(region_place, region_id)
    return state.manifest.spec, CopyView.opened(state.epoch, state.history)


class _Following:
    """One opening of a copy: the parts of a region, without those that write."""

    def __init__(
        self, region_place: RegionPlace, opened: OpenedRegion, sealed: Sequence[SealedEntry]
    ) -> None:
        region_id = opened.manifest.spec.region_id
        self._place = region_place
        self.serving = Serving(region_place, opened.mine)
        self.content = RegionContent(region_place, opened)
        self.manifest = CurrentManifest(self.serving, self.content, opened.manifest)
        self.log = LogWriter(
            region_place.disk, region_place.root, region_id, opened.mine, opened.history
        )
        self.pending = PendingRecords(region_place, sealed)
        self.is_to_freeze = False
        self.reader = RegionReader(self.serving, self.content)
        self.changes = RegionChanges(self.serving, self.manifest, self.content, self.log)
        self.maintenance = RegionMaintenance(
            self.serving, self.manifest, self.content, self.log, opened.statement_files
        )

    def room_bytes(self, largest: int) -> int:
        """The bytes of records that may come. *largest*: of one record, which is taken where there
        is no other, however large."""
        memories = self.content.memories
        if self._place.budget.is_full:
            return 0
        if not self.pending.bytes and not any(memory.rows for memory in memories):
            return max(MEMTABLES * self._place.limits.memtable_bytes, largest)
        memory_bytes = sum(memory.bytes for memory in memories) + self.pending.bytes
        return max(0, MEMTABLES * self._place.limits.memtable_bytes - memory_bytes)

    def has_files(self, record: PositionedChange) -> bool:
        """Whether the files that a change names are in the own root, on stable storage; they are
        not collected from now on. True of one that takes none, or has taken effect."""
        files = record.change.files
        if files is None:
            return True
        with self.manifest.unchanged() as manifest:
            if record.sequence <= manifest.change_sequence:
                return True
            self.content.await_files(record.sequence, files.names_in(self._place.root))
        return are_durable(self._place, files)

    def apply(self, common: int) -> None:
        """Moves what is common to the memtables, and changes to the manifest, in order of the log.
        Where none is left behind it, memtables that are due are made ready to be flushed."""
        now_ms = self._place.clock.wall_ms()
        for entry in self.pending.upto(common):
            if isinstance(entry, PositionedChange):
                self.changes.settle(entry)
            else:
                must_know_columns(entry, self.content.schema)
                self.content.add(entry, now_ms)
        self.content.forget_statements(now_ms)
        if self.is_to_freeze or self.maintenance.needs_flush():
            self.maintenance.freeze()
            self.is_to_freeze &= self.content.frozen is None and self.content.memory.rows > 0

    def close(self) -> None:
        with self.manifest.unchanged(), self.log.writing:
            self.serving.stop(Unavailable("not-ready", reason="closed"))
        self.maintenance.close_log()
        self.maintenance.end()
        self.pending.give_up()
