"""The rules of a restore for each family of keys in a backup: pure functions.

The cluster of the backup may have gone on, so whatever it may have given out since is passed over:
ids of tables, schemas, catalogs and placements by SEQUENCE_JUMP, ids of elements of a table by
ELEMENT_JUMP, schema versions by SCHEMA_JUMP. No region serves before its nodes are adopted
(metasrv/restore/placement.py), which raises its epoch above every fence.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from keys.commit.entry_writes import name_key
from keys.commit.sequence import FIRST
from keys.key import Key
from keys.model.catalogs import CatalogNameKey, SchemaNameKey
from keys.model.cluster import (
    CandidateKey,
    ClusterKey,
    Cordon,
    LeaderKey,
    NodeKey,
    NodeRecord,
    RemovedNodeKey,
    RestoreMarkKey,
    Sequence,
    SequenceKey,
    SettingKey,
)
from keys.model.holders import HolderKey
from keys.model.log import (
    CatalogUpdateKey,
    CatalogVersionKey,
    Entry,
    RouteChanged,
    TableAltered,
    TablePurged,
)
from keys.model.placing.placements import PlacedTableKey, PlacementKey
from keys.model.placing.tablespaces import GroupedTableKey, TablespaceKey
from keys.model.poison import PoisonKey
from keys.model.records import (
    IdempotencyKey,
    ProcedureHistoryKey,
    ProcedureKey,
    ProcedureRecord,
)
from keys.model.removed import RemovedTableInfoKey, RemovedTableNameKey, RemovedTableRouteKey
from keys.model.snapshot.pins import CatalogPinKey, RevisionPinKey
from keys.model.snapshot.snapshots import (
    SnapshotPartKey,
    SnapshotRef,
    SnapshotVersion,
    SnapshotVersionKey,
)
from keys.model.staging.parts import BatchPartKey, LargeUpdateKey
from keys.model.tables import (
    DatanodeTable,
    DatanodeTableKey,
    RegionState,
    TableInfo,
    TableInfoKey,
    TableNameKey,
    TableNameRecord,
    TableRoute,
    TableRouteKey,
)
from keys.store.kv import Put
from keys.value import encode
from metasrv.restore.backup_facts import StoredItem
from metasrv.restore.found_regions import NO_NUMBERS, FoundNumbers, FoundRegions
from metasrv.restore.restored_procedures import BY, restored_procedure

TABLE_IDS = "table_id"
SEQUENCE_JUMP = 1 << 24
"""More tables than any cluster makes between a backup and its restore."""
ELEMENT_JUMP = 256
"""Columns, indexes or constraints that one table may have got between a backup and its restore.
Adoption raises it further where the files of the table name more; a dead index is a number in every
region's manifest, so it is not as large as the others."""
SCHEMA_JUMP = 1 << 20
"""Schema versions that one table may have had between a backup and its restore."""

LEFT_OUT: frozenset[type[Key[Any]]] = frozenset(
    {
        CandidateKey,
        CatalogPinKey,
        CatalogVersionKey,
        ClusterKey,
        DatanodeTableKey,
        HolderKey,
        LeaderKey,
        RemovedTableNameKey,
        RemovedTableRouteKey,
        RestoreMarkKey,
        RevisionPinKey,
        TableNameKey,
    }
)
"""Keys that belong to processes of the old cluster, are written by the last transaction of the
restore, or are derived from others."""
AS_THEY_ARE: frozenset[type[Key[Any]]] = frozenset(
    {
        CatalogNameKey,
        BatchPartKey,
        GroupedTableKey,
        IdempotencyKey,
        PlacedTableKey,
        PlacementKey,
        PoisonKey,
        ProcedureHistoryKey,
        RemovedNodeKey,
        SchemaNameKey,
        SettingKey,
        TablespaceKey,
    }
)


@dataclass(frozen=True, slots=True)
class Restored:
    """The writes for one key of a backup. Puts of metadata share a transaction with an update of
    the log, which has these entries."""

    puts: tuple[Put, ...] = ()
    entries: tuple[Entry, ...] = ()
    is_logged: bool = False


@dataclass(slots=True)
class Restoration:
    """The rules of one restore."""

    old_cluster: str
    now_ms: int
    base: SnapshotRef | None = None
    """The snapshot above which the log of the backup begins; None: it begins at version 1. Others
    bear revisions of the old store, and are left out."""
    inventories: FoundRegions = field(default_factory=FoundRegions)
    """Folders of the nodes whose inventories were given: numbers go on above theirs too."""
    parked: int = 0
    ended: int = 0
    purged: int = 0
    _nothing: Restored = field(default_factory=Restored)
    _sequences: set[str] = field(default_factory=set)
    """Sequences of the backup."""

    def of(self, item: StoredItem) -> Restored:
        key, value = item.key, item.value
        if type(key) in LEFT_OUT:
            return self._nothing
        if type(key) in AS_THEY_ARE:
            return Restored((Put(bytes(key), item.raw),), is_logged=key.is_logged)
        match key, value:
            case (
                CatalogUpdateKey() | LargeUpdateKey() | SnapshotPartKey() | SnapshotVersionKey(),
                _,
            ):
                return self._logged(key, item)
            case SequenceKey(), Sequence():
                self._sequences.add(key.name)
                return _put(key, self._jumped(key, value))
            case NodeKey(), NodeRecord():
                return _put(key, restored_node(value, self.old_cluster, self.now_ms))
            case ProcedureKey(), ProcedureRecord():
                return self._procedure(key, value)
            case TableInfoKey(), TableInfo():
                return _restored_info(value, self.inventories.numbers(value.table_id))
            case TableRouteKey(), TableRoute():
                return _restored_route(value)
            case RemovedTableInfoKey(), _:
                self.purged += 1
                entry = TablePurged(table_id=key.table_id)
                return Restored((), (entry,), is_logged=True)
            case _:
                raise AssertionError(f"no rule for {key}")

    def rest(self) -> Iterator[Restored]:
        """Yields what stands for keys that the backup does not have, once it is read: the old
        cluster may have begun another sequence since."""
        for name in sorted(FIRST.keys() - self._sequences):
            key = SequenceKey(name)
            yield _put(key, self._jumped(key, Sequence(next=FIRST[name])))

    def _jumped(self, key: SequenceKey, sequence: Sequence) -> Sequence:
        above = max(self.inventories.tables, default=0) + 1 if key.name == TABLE_IDS else 0
        return sequence.model_copy(update={"next": max(sequence.next + SEQUENCE_JUMP, above)})

    def _logged(self, key: Key[Any], item: StoredItem) -> Restored:
        base, raw = self.base, item.raw
        floor = 0 if base is None else base.version
        match key:
            case CatalogUpdateKey() | LargeUpdateKey():
                is_kept = key.version > floor
            case SnapshotPartKey():
                is_kept = base is not None and key.version == floor
            case _:
                is_kept = base is not None
                raw = encode(SnapshotVersion(kept=(base,))) if base is not None else raw
        return Restored((Put(bytes(key), raw),)) if is_kept else self._nothing

    def _procedure(self, key: ProcedureKey, record: ProcedureRecord) -> Restored:
        restored = restored_procedure(key, record, self.now_ms)
        if restored.is_parked:
            self.parked += 1
        else:
            self.ended += 1
        return Restored(restored.puts)


def _put(key: Key[Any], value: Any) -> Restored:
    return Restored((Put(bytes(key), encode(value)),))


def restored_node(node: NodeRecord, old_cluster: str, now_ms: int) -> NodeRecord:
    """Cordons a node until it is adopted: it takes no region, and none is taken from it. A node
    that had not been adopted by the cluster of the backup is still one of the cluster before
    that."""
    cordon = node.cordon or Cordon(reason="restored, and not adopted yet", by=BY, at_ms=now_ms)
    update = {
        "restored_from": node.restored_from or old_cluster,
        "cordon": cordon,
        "dead_since_ms": None,
    }
    return node.model_copy(update=update)


def restored_info(info: TableInfo, numbers: FoundNumbers = NO_NUMBERS) -> TableInfo:
    """Every version before it is below the floor; elements go on above what may have been given,
    and above what folders of the table name."""
    version = max(info.schema_version + SCHEMA_JUMP, numbers.schema_version + 1)
    return info.model_copy(
        update={
            "version": info.version + 1,
            "schema_version": version,
            "schema_floor": version,
            "next_column_id": max(info.next_column_id + ELEMENT_JUMP, numbers.column + 1),
            "next_index_id": max(info.next_index_id + ELEMENT_JUMP, numbers.index + 1),
            "next_constraint_id": info.next_constraint_id + ELEMENT_JUMP,
        }
    )


def _restored_info(info: TableInfo, numbers: FoundNumbers) -> Restored:
    new = restored_info(info, numbers)
    puts = [Put(bytes(TableInfoKey(new.table_id)), encode(new))]
    if info.dropping is None:  # a table that a batch drops bears no name any more
        puts.append(Put(bytes(name_key(new)), encode(TableNameRecord(table_id=new.table_id))))
    return Restored(tuple(puts), (TableAltered(info=new),), is_logged=True)


def restored_route(route: TableRoute) -> TableRoute:
    """Lost, until a node is found that holds the region: it is opened nowhere by itself."""
    update = {"state": RegionState.LOST, "unverified": True}
    lost = tuple(region.model_copy(update=update) for region in route.region_routes)
    return route.with_regions(lost)


def _restored_route(route: TableRoute) -> Restored:
    new = restored_route(route)
    entry = RouteChanged(table_id=new.table_id, version=new.version, regions=new.region_routes)
    return Restored(tuple(_route_puts(new)), (entry,), is_logged=True)


def _route_puts(route: TableRoute) -> Iterator[Put]:
    yield Put(bytes(TableRouteKey(route.table_id)), encode(route))
    for node, numbers in route.numbers_by_node().items():
        table = DatanodeTable(table_id=route.table_id, version=route.version, regions=numbers)
        yield Put(bytes(DatanodeTableKey(node, route.table_id)), encode(table))
