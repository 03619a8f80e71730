"""Tables as tests need them: in the store, on the nodes' disks, and under a lease."""

from keys.commit.change import change
from keys.commit.txn import Txn, snapshot
from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.cluster import Sequence, SequenceKey
from keys.model.log import SchemaCreated, TableCreated, TableDropped
from keys.model.removed import (
    RemovedTableInfoKey,
    RemovedTableNameKey,
    RemovedTableRouteKey,
)
from keys.model.tables import (
    Column,
    RegionRoute,
    RegionState,
    TableInfo,
    TableInfoKey,
    TableNameKey,
    TableRoute,
    TableRouteKey,
)
from keys.store.kv import Compare
from metasrv_base.schema.partition import HashRule
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.fakes.datanodes.disk import Folder
from tests.fakes.datanodes.serving import LOG, Serving
from tests.keys.commit.changes import absent

NODES = ("dn-1", "dn-2", "dn-3")


def table_info(table_id: int, name: str, regions: int, schema: str = "public") -> TableInfo:
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
        created_at_ms=0,
    )


def region_ids(table_id: int, count: int) -> tuple[str, ...]:
    return tuple(str(table_id << 32 | number) for number in range(count))


def table_route(table_id: int, leaders: tuple[str, ...]) -> TableRoute:
    """At epoch 1, every region open."""
    regions = tuple(
        RegionRoute(
            region_id=region_id,
            leader=leader,
            epoch=1,
            state=RegionState.OPEN,
            root=f"/disks/{leader}/regions/{region_id}-1",
            announced=True,
        )
        for region_id, leader in zip(region_ids(table_id, len(leaders)), leaders, strict=True)
    )
    return TableRoute(table_id=table_id, version=1, region_routes=regions)


def rows_of(region_id: str) -> frozenset[str]:
    """Returns the rows that a region of these tests holds."""
    return frozenset({f"{region_id}/file", f"{region_id}/log"})


async def reserve_ids(cluster: Cluster, fence: Compare, following: int) -> None:
    key = SequenceKey("table_id")
    seen = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    await cluster.change(fence, Txn.on(seen).put(key, Sequence(next=following)))


async def put_schema(cluster: Cluster, fence: Compare, name: str) -> None:
    key = SchemaNameKey("main", name)
    info = SchemaInfo(schema_id=1030, catalog="main", name=name, created_at_ms=0)
    await cluster.change(fence, change(absent(key), SchemaCreated(info=info)))


async def put_table(
    cluster: Cluster, fence: Compare, info: TableInfo, leaders: tuple[str, ...]
) -> None:
    """The table's keys; its regions with rows, open and leased on living nodes."""
    route = table_route(info.table_id, leaders)
    name = TableNameKey("main", info.schema_name, info.name)
    keys = (TableInfoKey(info.table_id), TableRouteKey(info.table_id), name)
    txn = change(absent(*keys), TableCreated(info=info, route=route))
    await cluster.change(fence, txn)
    for region in route.region_routes:
        files = {"f1": frozenset({f"{region.region_id}/file"})}
        files[LOG] = frozenset({f"{region.region_id}/log"})
        cluster.plane.storage.folders[region.root] = Folder(fence=1, files=files)
        node = cluster.plane.nodes[region.leader]
        node.serving[region.region_id] = Serving(1, region.root)
        cluster.plane.lease(region.leader, region.region_id, region.epoch)


async def drop_table_keys(cluster: Cluster, fence: Compare, table_id: int) -> None:
    """As drop_table leaves it: keys under `removed`, regions closed, files kept."""
    info_key, route_key = TableInfoKey(table_id), TableRouteKey(table_id)
    seen = await snapshot(cluster.kv, info_key, route_key, deadline_ms=DEADLINE_MS)
    info, route = seen.must(info_key), seen.must(route_key)
    name = TableNameKey(info.catalog, info.schema_name, info.name)
    gone = RemovedTableNameKey(info.catalog, info.schema_name, info.name, table_id)
    removed_info, removed_route = RemovedTableInfoKey(table_id), RemovedTableRouteKey(table_id)
    keys = (info_key, route_key, name, removed_info, removed_route, gone)
    seen = await snapshot(cluster.kv, *keys, deadline_ms=DEADLINE_MS)
    entry = TableDropped(table_id=table_id, dropped_at_ms=1, dropped_by="test")
    await cluster.change(fence, change(seen, entry))
    for node in cluster.plane.nodes.values():
        for region in route.region_routes:
            node.serving.pop(region.region_id, None)
    cluster.plane.leases.clear()
