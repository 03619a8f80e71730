"""Tables whose regions have copies: in the store, and on the nodes' disks."""

from collections.abc import Sequence

from keys.commit.change import change
from keys.model.log import TableCreated
from keys.model.tables import (
    CopyRole,
    RegionCopy,
    RegionRoute,
    TableInfo,
    TableInfoKey,
    TableNameKey,
    TableRoute,
    TableRouteKey,
    route_format,
)
from keys.store.kv import Compare
from metasrv_base.errors import Refused
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.disk import Folder
from tests.fakes.datanodes.serving import LOG, Opening, Serving
from tests.keys.commit.changes import absent
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import (
    NODES,
    drop_table_keys,
    put_schema,
    reserve_ids,
    table_info,
    table_route,
)

IN_SYNC, LEARNER = CopyRole.IN_SYNC, CopyRole.LEARNER
Copies = Sequence[tuple[str, CopyRole]]
COPIES: tuple[Copies, ...] = (
    (("dn-2", IN_SYNC),),
    (("dn-2", LEARNER), ("dn-3", IN_SYNC)),
    (),
)
"""Nodes and roles beside dn-1, which leads the three regions of table t."""


def copied(region: RegionRoute, copies: Copies) -> RegionRoute:
    """*region* with copies at its epoch, in roots that are named like the leader's."""
    name = f"{region.region_id}-{region.epoch}"
    return region.with_copies(
        tuple(
            RegionCopy(node=node, root=f"/disks/{node}/regions/{name}", role=role)
            for node, role in copies
        )
    )


def copied_route(table_id: int, leaders: Sequence[str], copies: Sequence[Copies]) -> TableRoute:
    plain = table_route(table_id, tuple(leaders))
    regions = tuple(map(copied, plain.region_routes, copies))
    return plain.model_copy(update={"format": route_format(regions), "region_routes": regions})


def copied_info(table_id: int, name: str, regions: int, replicas: int = 2) -> TableInfo:
    """A table that names its number of copies itself."""
    update = {"format": 3, "replicas": replicas, "own_copies": ("replicas",)}
    return table_info(table_id, name, regions).model_copy(update=update)


async def put_copied_table(
    cluster: Cluster, fence: Compare, info: TableInfo, route: TableRoute
) -> None:
    """The table's keys; its regions with rows. A copy in sync has all of them, a learner those of
    the file. A leader with another copy in its set has no lease."""
    keys = (
        TableInfoKey(info.table_id),
        TableRouteKey(info.table_id),
        TableNameKey("main", info.schema_name, info.name),
    )
    await cluster.change(fence, change(absent(*keys), TableCreated(info=info, route=route)))
    for region in route.region_routes:
        of_file = {"f1": frozenset({f"{region.region_id}/file"})}
        whole = of_file | {LOG: frozenset({f"{region.region_id}/log"})}
        folders, version = cluster.plane.storage.folders, region.copies_version
        has_set = len(region.in_sync) > 1
        folders[region.root] = Folder(fence=1, files=dict(whole))
        serving = Serving(1, region.root, version, has_set)
        cluster.plane.nodes[region.leader].serving[region.region_id] = serving
        if not has_set:
            cluster.plane.lease(region.leader, region.region_id, region.epoch)
        for copy in region.copies:
            files = whole if copy.role is IN_SYNC else of_file
            folders[copy.root] = Folder(fence=1, files=dict(files))
            follower = Serving(1, copy.root, version)
            cluster.plane.nodes[copy.node].following[region.region_id] = follower


async def with_copied_table(cluster: Cluster, fence: Compare, replicas: int = 2) -> None:
    """Table t: dn-1 leads three regions, one without a copy, one with a copy, one with two.
    *replicas*: the number that each is to have."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1",) * 3, COPIES)
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 3, replicas), route)


async def with_copied_table_and_dead_node(cluster: Cluster, fence: Compare) -> None:
    await with_copied_table(cluster, fence)
    cluster.plane.nodes["dn-1"].die()


async def with_copied_table_and_restarting_node(cluster: Cluster, fence: Compare) -> None:
    """dn-1 is dead; the process of dn-2 ends behind its first opening, and is started again."""
    await with_copied_table_and_dead_node(cluster, fence)
    next_leader = cluster.plane.nodes["dn-2"]
    next_leader.dies_at, next_leader.comes_back = Opening.MADE, True


async def with_copied_table_and_refusing_node(cluster: Cluster, fence: Compare) -> None:
    """As a node that knows no copies."""
    await with_copied_table(cluster, fence)
    cluster.plane.nodes["dn-3"].refuses["create"] = Refused("unsupported")


async def with_dropped_copied_table(cluster: Cluster, fence: Compare) -> None:
    await with_copied_table(cluster, fence)
    await drop_table_keys(cluster, fence, TABLE)
    for node in cluster.plane.nodes.values():
        node.following.clear()


async def with_three_in_sync(cluster: Cluster, fence: Compare) -> None:
    """Table t: dn-1 leads one region, of which dn-2 and dn-3 have copies in sync."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1",), ((("dn-2", IN_SYNC), ("dn-3", IN_SYNC)),))
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 1, 3), route)


async def with_a_lost_disk(cluster: Cluster, fence: Compare) -> None:
    """The disk of dn-2 is lost, which nobody has noticed."""
    await with_three_in_sync(cluster, fence)
    route = copied_route(TABLE, ("dn-1",), ((("dn-2", IN_SYNC),),))
    cluster.plane.storage.lost.add(route.region_routes[0].copies[0].root)


async def with_a_node_that_starts_again(cluster: Cluster, fence: Compare) -> None:
    """The process of dn-2 ends when it has opened a region, and is back at once."""
    await with_three_in_sync(cluster, fence)
    node = cluster.plane.nodes["dn-2"]
    node.dies_at, node.comes_back = Opening.MADE, True
