"""A cluster to break: every key by typed transactions, every file by the real region engine."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from dataplane.region.check.inspect import inspect
from dataplane.region.disk.local_disk import LocalDisk, LocalFile
from dataplane.region.engine.region import Region
from dataplane.region.format.columns import PUT, ColumnDef, RegionSpec
from dataplane.region.place import OpenOrder, RegionPlace
from keys.commit.batch import LogHead, PendingTxn, seal
from keys.commit.bootstrap import bootstrap_request
from keys.commit.change import change, route_changed
from keys.commit.log_head import read_log_head
from keys.commit.packing import pack
from keys.commit.txn import Txn, snapshot
from keys.key import Key
from keys.model.catalogs import SchemaNameKey
from keys.model.cluster import LeaderKey, LeaderRecord, NodeKey, NodeRecord, Sequence, SequenceKey
from keys.model.log import (
    Entry,
    SchemaCreated,
    TableAltered,
    TableCreated,
    TableDropped,
    TablePurged,
)
from keys.model.removed import (
    RemovedTableInfo,
    RemovedTableInfoKey,
    RemovedTableNameKey,
    RemovedTableRoute,
    RemovedTableRouteKey,
)
from keys.model.tables import (
    Column,
    RegionRoute,
    RegionState,
    TableInfo,
    TableInfoKey,
    TableNameKey,
    TableNameRecord,
    TableRoute,
    TableRouteKey,
)
from keys.store.kv import Compare, Delete, Get, KeyValue, Kv, LeaseId, Put, Request
from keys.value import StoredModel, encode
from metasrv.check.check_input import NodeRegion, NodeReport, ServerReport
from metasrv_base.errors import Unavailable
from metasrv_base.ids import TableId, region_id
from metasrv_base.schema.keycodec import encode as encode_key
from metasrv_base.schema.partition import HashRule, region_number
from metasrv_base.schema.types import ColumnType
from metasrv_base.wire.node.batches import BatchHeader
from metasrv_base.wire.node.inspect import Inspection, InspectRequest
from metasrv_base.wire.node.nodes import RegionStat
from procedures.steps.placing import root_under
from tests.fakes.clock import FakeClock
from tests.keys.model.samples import NODE, PROCEDURE, SCHEMA

DEADLINE_MS = 1_000
LEASE_MS = 4 * 3_600_000  # longer than any test advances the clock
INT64 = ColumnType("int64")
CLUSTER_ID = "019aa5d3-0000-7abc-8def-0123456789ab"
SALES = SCHEMA.model_copy(update={"name": "sales", "schema_id": 1025})
FLIGHTS, WEATHER, DROPPED = 1024, 1025, 1026


@cache
def key_of(number: int) -> bytes:
    return encode_key((INT64,), (number,))


@cache
def home_of(regions: int, number: int) -> int:
    """Returns the number of the region in which the rule of so many partitions wants a row."""
    return region_number(HashRule(columns=(1,), count=regions), (INT64,), (number,))


def info_of(table_id: int, name: str, schema: str, regions: int) -> TableInfo:
    return TableInfo(
        table_id=table_id,
        catalog="main",
        schema_name=schema,
        name=name,
        version=1,
        schema_version=1,
        schema_floor=1,
        columns=(
            Column(id=1, name="id", type="int64", nullable=False),
            Column(id=2, name="note", type="string", nullable=True),
        ),
        next_column_id=3,
        primary_key=(1,),
        partition=HashRule(columns=(1,), count=regions),
        options={},
        replicas=1,
        created_at_ms=1,
    )


class UnsyncedFile(LocalFile):
    def sync(self) -> None:
        """No power is lost in these tests."""


class UnsyncedDisk(LocalDisk):
    """Files as a region makes them, without the time that an fsync takes."""

    def create(self, path: str) -> LocalFile:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        return UnsyncedFile(path, os.open(path, flags, 0o640))

    def sync_file(self, path: str) -> None:
        """Nothing."""

    def sync_folder(self, path: str) -> None:
        """Nothing."""


@dataclass
class Cluster:
    """Also its own Eyes (metasrv.check.collect): files are inspected, reports are what `reports`
    says, and what is named in `blind` cannot be looked at."""

    kv: Kv
    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    lease: LeaseId | None = None
    line: LogHead | None = None
    regions: dict[str, Region] = field(default_factory=dict)
    reports: dict[str, NodeReport] = field(default_factory=dict)
    answers: dict[str, ServerReport | str] = field(default_factory=dict)
    blind: set[str] = field(default_factory=set)
    looks: int = 0

    # The store ----------------------------------------------------------------------------------

    async def start(self) -> None:
        self.lease = await self.kv.grant(LEASE_MS, deadline_ms=DEADLINE_MS)
        leader = LeaderRecord(server="meta-1", url="http://127.0.0.1:1", lease=str(self.lease))
        won = await self.put(LeaderKey(), leader, lease=self.lease)
        fence = Compare(bytes(LeaderKey()), won)
        answer = await self.kv.txn(
            bootstrap_request(fence, CLUSTER_ID, self.clock.wall_ms()), deadline_ms=DEADLINE_MS
        )
        assert answer.succeeded
        self.line = await read_log_head(self.kv, fence, deadline_ms=DEADLINE_MS)
        for name in ("table_id", "schema_id"):
            await self.put(SequenceKey(name), Sequence(next=1088))

    async def put(self, key: Key[Any], value: StoredModel, lease: LeaseId | None = None) -> int:
        """As `etcdctl put`: nothing is compared. Returns the revision."""
        return await self.put_raw(bytes(key), encode(value), lease)

    async def put_raw(self, key: bytes, value: bytes, lease: LeaseId | None = None) -> int:
        request = Request(writes=(Put(key, value, lease),))
        return (await self.kv.txn(request, deadline_ms=DEADLINE_MS)).revision

    async def delete(self, *keys: Key[Any]) -> None:
        writes = tuple(Delete(bytes(key)) for key in keys)
        await self.kv.txn(Request(writes=writes), deadline_ms=DEADLINE_MS)

    async def raw(self, key: Key[Any]) -> KeyValue:
        page = await self.kv.range(Get(bytes(key)), deadline_ms=DEADLINE_MS)
        return page.items[0]

    async def read(self, key: Key[Any]) -> Any:
        return (await snapshot(self.kv, key, deadline_ms=DEADLINE_MS)).must(key)

    async def edit(self, key: Key[Any], **update: object) -> str:
        """Rewrites one value with other fields, past every rule; returns the key."""
        await self.put(key, (await self.read(key)).model_copy(update=update))
        return str(key)

    async def commit(self, txn: Txn) -> None:
        """As the committer would, with the log."""
        assert self.line is not None
        member = PendingTxn(txn, PROCEDURE)
        packed = pack(self.line, [member], self.clock.wall_ms(), members_max=1)
        batch = seal(self.line, packed.after, packed.shares)
        answer = await self.kv.txn(batch.request, deadline_ms=DEADLINE_MS)
        assert answer.succeeded
        self.line = batch.head_after(answer.revision)

    async def create_schema(self) -> None:
        key = SchemaNameKey("main", SALES.name)
        await self._commit((key,), SchemaCreated(info=SALES))

    async def create_table(self, info: TableInfo, *nodes: str) -> TableRoute:
        """One region on each node, open; its files are made too."""
        route = TableRoute(
            table_id=info.table_id,
            version=1,
            region_routes=tuple(
                self._first_route(info, number, node) for number, node in enumerate(nodes)
            ),
        )
        keys = (TableInfoKey(info.table_id), TableRouteKey(info.table_id), name_key(info))
        await self._commit(keys, TableCreated(info=info, route=route))
        for region in route.region_routes:
            self._create_region(region)
        return route

    async def drop_table(self, table_id: int) -> None:
        info, route = TableInfoKey(table_id), TableRouteKey(table_id)
        old, old_route = await self.read(info), await self.read(route)
        removed = removed_keys(old, old_route)
        keys: tuple[Key[Any], ...] = (info, route, name_key(old), *removed)
        gone = TableDropped(table_id=table_id, dropped_at_ms=5, dropped_by=PROCEDURE)
        await self._commit(keys, gone)
        for region in old_route.region_routes:
            self.regions.pop(region.region_id).close()

    async def purge_table(self, table_id: int) -> list[str]:
        """Its keys; the folders that nobody has deleted yet."""
        info_key, route_key = RemovedTableInfoKey(table_id), RemovedTableRouteKey(table_id)
        info, removed = (await self.read(info_key)).info, await self.read(route_key)
        name = RemovedTableNameKey(info.catalog, info.schema_name, info.name, table_id)
        await self._commit((info_key, route_key, name), TablePurged(table_id=table_id))
        return [region.root for region in removed.route.region_routes]

    async def change_region(self, region: RegionRoute) -> None:
        """A route transaction, with its log entry; no node is told."""
        key = TableRouteKey(int(region.region_id) >> 32)
        await self._commit((key,), route_changed(await self.read(key), (region,)))

    async def alter(self, info: TableInfo) -> None:
        """A change of a table, with its log entry; no node is told."""
        await self._commit((TableInfoKey(info.table_id),), TableAltered(info=info))

    async def route_of(self, table_id: int, number: int) -> RegionRoute:
        route: TableRoute = await self.read(TableRouteKey(table_id))
        return route.region_routes[number]

    async def move(self, region: RegionRoute, node: str) -> None:
        """A failover as far as the borrowing: nothing is brought over yet."""
        moved = region.model_copy(
            update={
                "leader": node,
                "epoch": region.epoch + 1,
                "root": root_under(self.root(node), region.region_id, region.epoch + 1),
                "borrows": (region.root,),
            }
        )
        await self.change_region(moved)
        self.regions.pop(region.region_id).close()
        order = OpenOrder(int(region.region_id), moved.epoch, moved.borrows)
        self.regions[region.region_id] = Region.open(self._place(moved.root), order)

    async def _commit(self, keys: Iterable[Key[Any]], entry: Entry) -> None:
        """Commits *entry*, which changes some of *keys*."""
        read = await snapshot(self.kv, *keys, deadline_ms=DEADLINE_MS)
        await self.commit(change(read, entry))

    # Nodes and files ----------------------------------------------------------------------------

    def root(self, node: str) -> str:
        return str(self.folder / node)

    async def register(self, node: str) -> None:
        value = NODE.model_copy(update={"node_id": node, "root": self.root(node)})
        await self.put(NodeKey("datanode", node), value)

    def _first_route(self, info: TableInfo, number: int, node: str) -> RegionRoute:
        name = str(region_id(TableId(info.table_id), number))
        return RegionRoute(
            region_id=name,
            leader=node,
            epoch=1,
            state=RegionState.OPEN,
            root=root_under(self.root(node), name, 1),
            announced=True,
        )

    def _place(self, root: str) -> RegionPlace:
        return RegionPlace(UnsyncedDisk(), root, self.clock)

    def _create_region(self, region: RegionRoute) -> None:
        spec = RegionSpec(
            region_id=int(region.region_id),
            columns=(
                ColumnDef(id=1, type="int64", nullable=False),
                ColumnDef(id=2, type="string", nullable=True),
            ),
        )
        made = Region.create(self._place(region.root), spec, region.epoch)
        self.regions[region.region_id] = made

    def write(self, info: TableInfo, numbers: range, statement: str) -> None:
        """A row for each number, in the region where the rule wants it."""
        for at in range(info.partition.regions):
            mine = [n for n in numbers if home_of(info.partition.regions, n) == at]
            self.write_to(str(info.table_id << 32 | at), mine, statement)

    def write_to(self, region: str, numbers: list[int], statement: str) -> None:
        served = self.regions[region]
        header = BatchHeader(
            table_id=int(region) >> 32,
            schema_version=1,
            epoch=served.opening.epoch,
            statement_id=statement,
        )
        batch = pa.RecordBatch.from_pydict(
            {
                "_key": pa.array([key_of(n) for n in numbers], pa.binary()),
                "_op": pa.array([PUT] * len(numbers), pa.uint8()),
                "c1": pa.array(numbers, pa.int64()),
                "c2": pa.array([f"row {n}" for n in numbers], pa.string()),
            }
        )
        served.writer.apply([(header, batch)])

    def reopen(self, region: str) -> None:
        """The same epoch again, as after a restart: what was in the log is sealed."""
        old = self.regions[region]
        old.close()
        order = OpenOrder(int(region), old.opening.epoch)
        self.regions[region] = Region.open(old.place, order)

    async def report_truth(self) -> None:
        """Every node reports what it has open."""
        open_at: dict[str, list[NodeRegion]] = {"dn-1": [], "dn-2": []}
        for table_id in (FLIGHTS, WEATHER):
            route: TableRoute = await self.read(TableRouteKey(table_id))
            for region in route.region_routes:
                version = self.regions[region.region_id].stats().version
                open_at[region.leader].append(reported(region, version=version))
        self.reports = {
            node: NodeReport(node_id=node, cluster_id=CLUSTER_ID, regions=tuple(regions))
            for node, regions in open_at.items()
        }

    # Eyes ---------------------------------------------------------------------------------------

    async def report(self, node: NodeRecord) -> NodeReport:
        if node.node_id not in self.reports:
            raise Unavailable(what=node.address)
        return self.reports[node.node_id]

    async def inspect(self, node: NodeRecord, request: InspectRequest) -> Inspection:
        self.looks += 1
        if node.node_id in self.blind:
            raise Unavailable(what=node.root, reason="not on this host")
        return inspect(LocalDisk(), node.root, request)

    async def servers(self) -> Mapping[str, ServerReport | str]:
        return self.answers


def name_key(info: TableInfo) -> TableNameKey:
    return TableNameKey(info.catalog, info.schema_name, info.name)


def reported(region: RegionRoute, **update: object) -> NodeRegion:
    """As a leader reports a region that it serves; *update*: fields of the stat."""
    stat = RegionStat(
        region_id=region.region_id,
        epoch=region.epoch,
        state="open",
        rows=0,
        bytes=0,
        wal_bytes=0,
        files=0,
        version=0,
        root=region.root,
    )
    return NodeRegion(stat=stat.model_copy(update=update), root=region.root)


def removed_keys(info: TableInfo, route: TableRoute) -> dict[Key[Any], StoredModel]:
    """Returns the keys that a drop leaves."""
    facts: Any = {"dropped_at_ms": 5, "dropped_by": PROCEDURE}
    name = (info.catalog, info.schema_name, info.name, info.table_id)
    return {
        RemovedTableInfoKey(info.table_id): RemovedTableInfo(info=info, **facts),
        RemovedTableRouteKey(info.table_id): RemovedTableRoute(route=route, **facts),
        RemovedTableNameKey(*name): TableNameRecord(table_id=info.table_id),
    }
