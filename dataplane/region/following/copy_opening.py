"""Opens a copy that follows a leader: fence, read, seal up to the cut, publish, look (P5.11).

To cut a log back is to seal it shorter: the first manifest of the opening names each segment up to
the cut, and no replay reads beyond a seal. So a cut is one manifest, and is done or not.

Nothing of the log is replayed into memory: of a record that is in no file, a copy that starts does
not know whether every copy of the set has it (P5.9).
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

from dataplane.log.records import LogPosition
from dataplane.region.copies.history import START, LogHistory
from dataplane.region.disk.lost import lost_if_missing
from dataplane.region.engine.opening import OpenedRegion, source_logs
from dataplane.region.engine.replay import Replay
from dataplane.region.engine.takeover import ManifestSource, claim_roots, find_source
from dataplane.region.files.file_reader import FileReader
from dataplane.region.log.logged_change import PositionedChange, files_of_changes
from dataplane.region.log.logged_files import LoggedFiles
from dataplane.region.log.sealed_log import SealedLog, cut_log
from dataplane.region.manifests.fence import stale_before_wrong
from dataplane.region.manifests.housekeeping import remove_superseded
from dataplane.region.manifests.manifest import (
    Manifest,
    SealedEntry,
    publish_manifest,
    read_current_manifest,
)
from dataplane.region.memory.statement_files import StatementFiles, read_statements
from dataplane.region.place import OpenOrder, RegionPlace
from metasrv_base.errors import Corrupt, Unavailable


@dataclass(frozen=True, slots=True)
class CopyState:
    """A copy on disk: its newest manifest, and the positions of its log."""

    manifest: Manifest
    history: LogHistory
    awaited: frozenset[str]
    """Names of files that changes of the log name, and that have not taken effect."""

    @property
    def epoch(self) -> int:
        """The highest that was followed or led here. A higher fence without a manifest was raised
        by an opening that did not get so far as to cut the log."""
        return self.manifest.epoch


@dataclass(frozen=True, slots=True)
class OpenedCopy:
    opened: OpenedRegion
    sealed: tuple[SealedEntry, ...]
    """Segments whose records are in no file, oldest first."""


def open_copy(
    region_place: RegionPlace, order: OpenOrder, cut: int | None, unlogged_ms: int | None = None
) -> OpenedCopy:
    """Opens an epoch with the records up to the sequence *cut*; None: with all there are, as a copy
    does that is promoted. Repeated, it does the same again in an opening of its own.

    *unlogged_ms*: the latest time of a statement that the leader's log may lack. A copy whose own
    log goes back to the first record has all others, so it has forgotten none that is later.

    Raises Conflict `stale-epoch` behind a higher fence, Unavailable `region-lost` where storage is
    gone, Corrupt for damage.
    """
    claim = claim_roots(region_place, order)
    mine = claim.mine.of
    with stale_before_wrong(region_place.disk, region_place.root, mine):
        source = find_source(region_place.disk, claim, order)
        base = _own(source.manifest, region_place.root)
        logs, history, changes = _cut_logs(region_place, source, cut)
        logged = files_of_changes(changes, base)
        _must_be_there(region_place, base, logged.values())
        replay = Replay(region_place, base.spec.columns, mine, base)
        with ExitStack() as unopened:
            unopened.callback(replay.give_up)
            for listed in base.statement_files:
                replay.add_statements(read_statements(region_place.disk, source.root, listed))
            if unlogged_ms is not None and history.base == START:
                replay.statements.forgotten_ms = unlogged_ms
            statements = StatementFiles(region_place.disk, region_place.root, mine)
            unopened.callback(statements.close)
            manifest = base.model_copy(
                update={
                    "epoch": mine.epoch,
                    "opening": mine.number,
                    "number": 1,
                    "sequence": history.base.sequence,
                    "log_from": 1,
                    "sealed": logs,
                    "statement_files": statements.write(replay.statements.tables),
                    "forgotten_ms": replay.statements.forgotten_ms,
                }
            )
            publish_manifest(region_place.disk, region_place.root, manifest)
            remove_superseded(region_place.disk, region_place.root, manifest)
            unopened.pop_all()
            opened = OpenedRegion(
                mine,
                manifest,
                replay.memory,
                replay.statements,
                statements,
                0,
                replay.share,
                replay.statement_share,
                history,
                {number: each.names_in(region_place.root) for number, each in logged.items()},
            )
            return OpenedCopy(opened, logs)


def read_copy(region_place: RegionPlace, region_id: int, *, is_verified: bool = False) -> CopyState:
    """The state of a copy that no process has open. Changes nothing but that it syncs what it has
    read. *is_verified*: its data files are looked for too. Raises as `open_copy`."""
    source = find_own_source(region_place, region_id)
    _own(source.manifest, region_place.root)
    _, history, changes = _cut_logs(region_place, source, None)
    logged = files_of_changes(changes, source.manifest).values()
    awaited = frozenset[str]().union(*(files.names_in(region_place.root) for files in logged))
    if is_verified:
        _must_be_there(region_place, source.manifest, logged)
    return CopyState(source.manifest, history, awaited)


def _must_be_there(
    region_place: RegionPlace, manifest: Manifest, logged: Iterable[LoggedFiles]
) -> None:
    """Raises Unavailable `region-lost` or Corrupt where a file is not there in its size."""
    named = (files.entries_in(region_place.root) for files in logged)
    for entry in chain(manifest.files, *named):
        FileReader(region_place.files, entry).verify_present()


def find_own_source(region_place: RegionPlace, region_id: int) -> ManifestSource:
    """The newest manifest of the own root. Raises Unavailable `region-lost` without one."""
    with lost_if_missing(region_place.root):
        manifest = read_current_manifest(region_place.disk, region_place.root, region_id)
    if manifest is None:
        raise Unavailable("region-lost", root=region_place.root)
    return ManifestSource(region_place.root, manifest)


def _own(manifest: Manifest, root: str) -> Manifest:
    """Raises Corrupt for a copy that builds on other roots, or of which it is not known up to
    where its files go."""
    if manifest.borrowed_roots or manifest.in_files is None:
        raise Corrupt(root=root, reason="this is no copy: its files and log are not told apart")
    return manifest


def _cut_logs(
    region_place: RegionPlace, source: ManifestSource, cut: int | None
) -> tuple[tuple[SealedEntry, ...], LogHistory, Sequence[PositionedChange]]:
    """The segments up to the cut, their positions, and the changes that they have. Raises Corrupt
    for a log with a gap, or a cut that it does not reach."""
    in_files = source.manifest.in_files
    assert in_files is not None
    base = LogPosition(in_files.epoch, in_files.sequence)
    history, kept = LogHistory(base, (), base.sequence), list[SealedEntry]()
    changes = list[PositionedChange]()
    for log in source_logs(region_place, source.manifest.sealed, source):
        assert isinstance(log, SealedLog), "a copy has no covered segments"
        shorter = log if cut is None else cut_log(region_place.disk, region_place.root, log, cut)
        for epoch, first, last in () if shorter is None else shorter.runs():
            if not history.follows(LogPosition(epoch, first)):
                raise Corrupt(segment=log.path, sequence=first, end=history.end)
            history = history.with_run(epoch, first, last)
        if shorter is not None:
            kept.append(shorter.entry)
            changes += shorter.changes()
    if cut is not None and history.end != cut:
        raise Corrupt(root=region_place.root, cut=cut, end=history.end)
    return tuple(kept), history, changes
