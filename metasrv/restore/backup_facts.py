"""The first reading of a backup: it is whole and readable, and these are its numbers.

Nothing is written before it has ended. One key is held at once, and a few numbers.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from keys.key import Key
from keys.model.cluster import ClusterRecord, NodeRecord, RestoredFrom
from keys.model.families import parse_any
from keys.model.log import CatalogUpdateKey, CatalogVersion
from keys.model.records import ProcedureKey, ProcedureRecord
from keys.model.snapshot.snapshots import SnapshotRef, SnapshotVersion
from keys.model.staging.parts import LargeUpdate
from keys.model.tables import TableRoute
from keys.value import NewerFormat, StoredModel, decode
from metasrv_base.backup.backup_file import BackupHeader, BackupKey
from metasrv_base.backup.backup_reader import BackupReader
from metasrv_base.errors import Corrupt, Refused

LISTED_MAX = 1_000
"""Procedures and nodes that are named; further ones are counted."""
Tell = Callable[[int, int], None]
"""Hears of the keys that were read, and of all there are."""


@dataclass(frozen=True, slots=True)
class StoredItem:
    """One key of a backup, understood."""

    key: Key[Any]
    value: StoredModel
    raw: bytes
    """The value as it was stored."""


@dataclass(frozen=True, slots=True)
class ActiveInBackup:
    """A procedure that was not over."""

    procedure: str
    kind: str
    resource: str
    step: str


@dataclass(slots=True)
class BackupFacts:
    """The content of a backup, by number."""

    source: RestoredFrom
    version: CatalogVersion
    keys: int
    counts: Counter[str] = field(default_factory=Counter)
    """Keys by the name of their family."""
    regions: int = 0
    nodes: tuple[str, ...] = ()
    procedures: tuple[ActiveInBackup, ...] = ()
    base: SnapshotRef | None = None
    """The snapshot above which the log begins; None: it begins at version 1."""


class BackupItems:
    """The keys of a backup as typed values, one after the other. `header` is set once its line has
    come. Raises Refused `invalid-backup` for a file that is not whole, foreign, newer, or holds a
    key or value that this program does not understand."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = parts
        self._reader = BackupReader()

    @property
    def header(self) -> BackupHeader | None:
        return self._reader.header

    def __iter__(self) -> Iterator[StoredItem]:
        for part in self._parts:
            for line in self._reader.feed(part):
                yield understood(line)
        self._reader.close()


def understood(line: BackupKey) -> StoredItem:
    """Raises Refused `invalid-backup`."""
    raw = line.raw
    try:
        key = parse_any(line.key.encode())
        return StoredItem(key, decode(key.value_type, raw, key=line.key), raw)
    except NewerFormat as error:
        raise unusable(f"{line.key} was written by a newer metasrv") from error
    except Corrupt as error:
        raise unusable(f"{line.key} cannot be read") from error


def read_backup_facts(parts: Iterable[bytes], tell: Tell = lambda done, total: None) -> BackupFacts:
    """Reads all of the file. Raises Refused `invalid-backup`."""
    items, counted = BackupItems(parts), _Counted()
    for item in items:
        counted.take(item)
        assert items.header is not None
        tell(counted.keys, items.header.keys)
    header = items.header
    assert header is not None, "a reader that closed had a header"
    return counted.facts(header)


@dataclass(slots=True)
class _Counted:
    keys: int = 0
    regions: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    cluster: ClusterRecord | None = None
    version: CatalogVersion | None = None
    snapshots: SnapshotVersion | None = None
    updates: int = 0
    above_base: int = 0
    """Updates above the oldest snapshot, whose key precedes theirs."""
    nodes: list[str] = field(default_factory=list)
    procedures: list[ActiveInBackup] = field(default_factory=list)

    def take(self, item: StoredItem) -> None:
        self.keys += 1
        self.counts[type(item.key).__name__.removesuffix("Key")] += 1
        match item.key, item.value:
            case _, ClusterRecord() as cluster:
                self.cluster = cluster
            case _, CatalogVersion() as version:
                self.version = version
            case _, SnapshotVersion() as snapshots:
                self.snapshots = snapshots
            case _, LargeUpdate() as large if not large.is_copied:
                raise unusable(f"keys of version {large.version} were being written")
            case CatalogUpdateKey() as update, _:
                self.updates += 1
                self.above_base += update.version > self.floor
            case _, TableRoute() as route:
                self.regions += len(route.region_routes)
            case _, NodeRecord() as node if len(self.nodes) < LISTED_MAX:
                self.nodes.append(node.node_id)
            case ProcedureKey() as key, ProcedureRecord() as record:
                if len(self.procedures) < LISTED_MAX:
                    self.procedures.append(_active(key, record))
            case _:
                pass

    @property
    def floor(self) -> int:
        return self.snapshots.floor if self.snapshots is not None else 0

    def base(self, version: int) -> SnapshotRef | None:
        """Raises Refused for a log from which the catalog cannot be told."""
        if self.updates == version:
            return None
        if self.snapshots is None or self.above_base != version - self.floor:
            raise unusable("updates of its log are missing")
        return self.snapshots.kept[0]

    def facts(self, header: BackupHeader) -> BackupFacts:
        if self.cluster is None or self.version is None:
            raise unusable("the cluster that it is of had not begun")
        if self.cluster.cluster_id != header.cluster_id:
            raise unusable(f"it is not of the cluster {header.cluster_id}")
        source = RestoredFrom(
            cluster_id=header.cluster_id, revision=header.revision, made_at_ms=header.made_at_ms
        )
        return BackupFacts(
            source,
            self.version,
            self.keys,
            self.counts,
            self.regions,
            tuple(self.nodes),
            tuple(self.procedures),
            self.base(self.version.version),
        )


def _active(key: ProcedureKey, record: ProcedureRecord) -> ActiveInBackup:
    return ActiveInBackup(key.procedure, record.kind, record.resource.name, record.step)


def unusable(reason: str) -> Refused:
    return Refused("invalid-backup", reason=reason)
