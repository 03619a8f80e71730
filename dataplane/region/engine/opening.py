"""Opens a region: fence, read, seal, replay, publish, look; and only then it serves (P5)."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from dataplane.region.compaction.flush import stored_position
from dataplane.region.copies.history import START, LogHistory
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.lost import lost_if_missing
from dataplane.region.engine.replay import Replay, statements_left
from dataplane.region.engine.takeover import (
    ManifestSource,
    claim_new_root,
    claim_roots,
    find_source,
)
from dataplane.region.files.file_reader import FileReader
from dataplane.region.format.columns import RegionSpec, ordered
from dataplane.region.format.names import DATA, Numbered, Opening, segment_name
from dataplane.region.log.logged_change import with_change
from dataplane.region.log.sealed_log import (
    SealedLog,
    read_sealed,
    seal_segment,
    unsealed_segments,
)
from dataplane.region.manifests.fence import look, stale_before_wrong
from dataplane.region.manifests.floor import with_schema
from dataplane.region.manifests.housekeeping import remove_superseded
from dataplane.region.manifests.manifest import (
    FileEntry,
    Manifest,
    SealedEntry,
    StatementFile,
    publish_manifest,
    read_current_manifest,
)
from dataplane.region.memory.budget import BudgetShare, StatementShare
from dataplane.region.memory.memory import Memory
from dataplane.region.memory.statement_files import StatementFiles, read_statements
from dataplane.region.memory.statements import StatementMemory
from dataplane.region.place import OpenOrder, RegionPlace
from metasrv_base.engines import is_volatile
from metasrv_base.errors import Conflict, Unavailable


@dataclass(frozen=True, slots=True)
class OpenedRegion:
    """A region that may serve: its first manifest is published and no higher fence was seen."""

    mine: Opening
    manifest: Manifest
    memory: Memory
    statements: StatementMemory
    statement_files: StatementFiles
    files_written: int
    """Numbers of own data files that are taken."""
    share: BudgetShare
    """Counts the memory from its first row on: many regions publish while they hold theirs."""
    statement_share: StatementShare
    history: LogHistory
    """The positions of its log."""
    awaited: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Names of files in the own root that changes of the log name, and that have not taken effect:
    by the sequence of the change."""
    borrowed_sequence: int = 0
    """The last record of the logs that it borrows; 0: it borrows none with records to replay."""


def create_or_open(
    region_place: RegionPlace,
    spec: RegionSpec,
    epoch: int,
    replaces: Sequence[str] = (),
    *,
    forgets: bool = False,
) -> OpenedRegion:
    """Makes a region without rows; the same order again opens what it made. Whoever still writes to
    one of the roots that it *replaces* will not acknowledge it, and what was applied there is not
    applied again: the region remembers the statements (docs/decisions/0333). One that *forgets*
    takes all that were made until now for forgotten, beside those that it finds.

    Raises Conflict `already-exists` if the root holds a region of another spec or epoch,
    `stale-epoch` behind a higher fence, Unavailable `region-lost` if it holds rows without a
    manifest.
    """
    spec = spec.model_copy(update={"columns": ordered(spec.columns)})
    order = OpenOrder(spec.region_id, epoch, tuple(replaces))
    claim = claim_new_root(region_place, order)
    mine = claim.mine.of
    manifest = read_current_manifest(region_place.disk, region_place.root, spec.region_id)
    if manifest is None and DATA in region_place.disk.list(region_place.root):
        raise Unavailable("region-lost", root=region_place.root)
    if manifest is not None:
        if manifest.spec != spec or manifest.epoch != epoch:
            raise Conflict("already-exists", region_id=spec.region_id, epoch=manifest.epoch)
        with stale_before_wrong(region_place.disk, region_place.root, mine):
            return _open_over(
                region_place, mine, ManifestSource(region_place.root, manifest), order
            )
    statements = statements_left(region_place, claim, order) if replaces else None
    if statements is None:
        statements = StatementMemory(region_place.limits.statements)
    if forgets:
        latest_ms = region_place.limits.statements.latest_possible_ms(region_place.clock.wall_ms())
        statements.forgotten_ms = max(statements.forgotten_ms, latest_ms)
    statement_files = StatementFiles(region_place.disk, region_place.root, mine)
    with ExitStack() as unopened:
        unopened.callback(statement_files.close)
        empty = _empty_manifest(mine, spec, statement_files.write(statements.tables))
        empty = empty.model_copy(update={"forgotten_ms": statements.forgotten_ms})
        publish_manifest(region_place.disk, region_place.root, empty)
        look(region_place.disk, region_place.root, mine)
        unopened.pop_all()
    share, statement_share = region_place.budget.share(), region_place.budget.statement_share()
    statement_share.set(statements.size_bytes)
    return OpenedRegion(
        *(mine, empty, Memory(spec.columns), statements, statement_files, 0),
        *(share, statement_share, LogHistory()),
    )


def _empty_manifest(
    mine: Opening, spec: RegionSpec, statement_files: tuple[StatementFile, ...]
) -> Manifest:
    return Manifest(
        epoch=mine.epoch,
        opening=mine.number,
        number=1,
        spec=spec,
        schema_floor=spec.schema_floor,
        version=0,
        sequence=0,
        log_from=1,
        schema_version=spec.schema_version,
        indexes=tuple(sorted(spec.indexes)),
        statement_files=statement_files,
        in_files=stored_position(START),
    )


def open_existing(region_place: RegionPlace, order: OpenOrder) -> OpenedRegion:
    """Raises Unavailable `region-lost` where storage is gone, Conflict `stale-epoch` behind
    a higher fence, Corrupt for damage. Never makes an empty region."""
    claim = claim_roots(region_place, order)
    with stale_before_wrong(region_place.disk, region_place.root, claim.mine.of):
        source = find_source(region_place.disk, claim, order)
        if is_volatile(source.manifest.spec.engine):
            reason = "its rows were in the memory of a process that has ended"
            raise Unavailable("region-lost", root=source.root, reason=reason)
        return _open_over(region_place, claim.mine.of, source, order)


def _open_over(
    region_place: RegionPlace, mine: Opening, source: ManifestSource, order: OpenOrder
) -> OpenedRegion:
    base = with_schema(source.manifest, order.schema, source.manifest.version)
    columns = base.spec.columns
    inherited = Inheritance(region_place.root, source.root)
    files = _present(region_place, map(inherited.file, base.files))
    replay = Replay(region_place, columns, mine, base)
    with ExitStack() as unopened:
        unopened.callback(replay.give_up)
        replay.add_listed(base.statements)
        for listed in base.statement_files:
            replay.add_statements(read_statements(region_place.disk, source.root, listed))
        for log in source_logs(region_place, base.sealed, source):
            if isinstance(log, SealedLog):
                replay.add(log)
            else:
                replay.add_covered(log)
        still_sealed = replay.finish()
        history = replay.history
        if replay.spilled:
            history = history.flushed_to(history.end)
        statements = StatementFiles(region_place.disk, region_place.root, mine)
        unopened.callback(statements.close)
        base = _with_logged(base, replay, source)
        logged = [each for each in map(inherited.file, base.files) if each not in files]
        new_files = [*files, *_present(region_place, logged), *replay.spilled]
        manifest = base.model_copy(
            update={
                "epoch": mine.epoch,
                "opening": mine.number,
                "number": 1,
                "version": replay.version,
                "sequence": replay.sequence,
                "log_from": 1,
                "files": tuple(f for f in new_files if f.family not in base.dead_indexes),
                "sealed": tuple(
                    log for log in still_sealed if log.root is not None or not log.covered
                ),
                "adopted": base.adopted if source.root == region_place.root else (),
                "statements": (),
                "statement_files": statements.write(replay.statements.tables),
                "forgotten_ms": replay.statements.forgotten_ms,
                "in_files": stored_position(history.base),
            }
        )
        publish_manifest(region_place.disk, region_place.root, manifest)
        remove_superseded(region_place.disk, region_place.root, manifest)
        unopened.pop_all()
        return OpenedRegion(
            *(mine, manifest, replay.memory, replay.statements, statements, len(replay.spilled)),
            *(replay.share, replay.statement_share, history),
            borrowed_sequence=replay.borrowed_sequence,
        )


def _present(region_place: RegionPlace, entries: Iterable[FileEntry]) -> list[FileEntry]:
    """The same entries. Raises as `FileReader.verify_present`."""
    files = list(entries)
    for entry in files:
        FileReader(region_place.files, entry).verify_present()
    return files


def _with_logged(base: Manifest, replay: Replay, source: ManifestSource) -> Manifest:
    """The manifest with the changes of the logs. *base* has what the order brings, *source* is the
    manifest before that. A floor that is the order's alone takes hold now."""
    floor = source.manifest.schema_floor
    for record in replay.changes:
        base = with_change(base, record, source.root)
        floor = max(floor, record.change.schema_floor)
    if base.schema_floor == floor:
        return base
    return base.model_copy(update={"floor_version": replay.version})


@dataclass(frozen=True, slots=True)
class Inheritance:
    """Names the entries of another root's manifest as seen from the own root."""

    own_root: str
    source_root: str

    def root_of(self, root: str | None) -> str | None:
        absolute = root or self.source_root
        return None if absolute == self.own_root else absolute

    def file(self, entry: FileEntry) -> FileEntry:
        return entry.model_copy(update={"root": self.root_of(entry.root)})

    def segment(self, entry: SealedEntry) -> SealedEntry:
        return entry.model_copy(update={"root": self.root_of(entry.root)})


def source_logs(
    region_place: RegionPlace, listed: Sequence[SealedEntry], source: ManifestSource
) -> Iterator[SealedLog | SealedEntry]:
    """Yields the logs behind a manifest, oldest first; of one that is covered its entry alone.

    One segment at a time: what has become files is not in memory while the next is read."""
    disk, reading = region_place.disk, region_place.budget.reading
    inherited = Inheritance(region_place.root, source.root)
    for sealed in map(inherited.segment, listed):
        _verify_segment_present(disk, sealed, region_place.root)
        if sealed.covered:
            yield sealed
            continue
        with reading(sealed.bytes):
            yield read_sealed(disk, sealed.root or region_place.root, sealed)
    rest = _synced_rest(disk, source)
    region_id = source.manifest.spec.region_id
    for segment, size in rest.items():
        is_last = segment == max(rest)
        with reading(size):
            log = seal_segment(disk, source.root, region_id, segment, is_last)
            yield replace(log, entry=inherited.segment(log.entry))


def _synced_rest(disk: Disk, source: ManifestSource) -> dict[Numbered, int]:
    """Segments without a seal, and their sizes. Their writers may have died before they synced what
    can be read, or their sync has failed: a seal over bytes that the next power loss takes would
    make the region lost."""
    with lost_if_missing(source.root):
        rest = unsealed_segments(disk.list(source.root), source.manifest)
        paths = {segment: posixpath.join(source.root, segment_name(segment)) for segment in rest}
        for path in paths.values():
            disk.sync_file(path)
        sizes = {segment: disk.size(path) for segment, path in paths.items()}
    if rest:
        disk.sync_folder(source.root)
    return sizes


def _verify_segment_present(disk: Disk, entry: SealedEntry, own_root: str) -> None:
    root = entry.root or own_root
    with lost_if_missing(root, entry.name):
        size = disk.size(f"{root}/{entry.name}")
    if size < entry.bytes:
        raise Unavailable("region-lost", root=root, file=entry.name)
