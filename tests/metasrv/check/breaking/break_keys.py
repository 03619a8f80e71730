"""Raw puts and deletes that break one rule about single keys, tables or ids."""

from typing import Any

from keys.commit.change import change
from keys.commit.txn import snapshot
from keys.model.catalogs import CatalogLimits, CatalogNameKey, SchemaNameKey
from keys.model.cluster import (
    Candidate,
    CandidateKey,
    ClusterKey,
    LeaderKey,
    NodeKey,
    Sequence,
    SequenceKey,
    SettingKey,
    SettingRecord,
)
from keys.model.log import CatalogAltered, CatalogUpdateKey, CatalogVersionKey, TableCreated
from keys.model.removed import RemovedTableInfoKey, RemovedTableNameKey, RemovedTableRouteKey
from keys.model.tables import (
    CopyRole,
    DatanodeTable,
    DatanodeTableKey,
    RegionCopy,
    RegionState,
    TableInfoKey,
    TableNameKey,
    TableNameRecord,
    TableRoute,
    TableRouteKey,
)
from metasrv_base.schema.partition import HashRule
from tests.keys.commit.changes import absent
from tests.keys.model.samples import PROCEDURE
from tests.metasrv.check.breaking.breaking import Breakage
from tests.metasrv.check.cluster import DROPPED, FLIGHTS, WEATHER, Cluster, removed_keys

INFO, ROUTE = TableInfoKey(FLIGHTS), TableRouteKey(FLIGHTS)
NAME = TableNameKey("main", "public", "flights")


async def dropped_by_nobody(at: Cluster) -> str:
    return await at.edit(SchemaNameKey("main", "public"), dropping="nobody")


async def unknown_family(at: Cluster) -> str:
    await at.put_raw(b"__surprise/1", b"{}")
    return "__surprise/1"


async def sloppy_key(at: Cluster) -> str:
    await at.put_raw(b"__table_info/01024", (await at.raw(INFO)).value)
    return "__table_info/01024"


async def newer_format(at: Cluster) -> str:
    number = INFO.value_type.newest_format + 1
    await at.put_raw(bytes(INFO), b'{"format":%d,"shape":"unheard of"}' % number)
    return str(INFO)


async def unknown_field(at: Cluster) -> str:
    value = (await at.raw(INFO)).value
    await at.put_raw(bytes(INFO), value.replace(b'{"format":1', b'{"format":1,"extra":true', 1))
    return str(INFO)


async def unknown_setting(at: Cluster) -> str:
    return await _set(at, "colour", "red")


async def setting_of_another_type(at: Cluster) -> str:
    return await _set(at, "running_max", "many")


async def _set(at: Cluster, name: str, value: object) -> str:
    setting = SettingRecord(name=name, value=value, version=1, changed_by="anna", changed_at_ms=1)
    await at.put(SettingKey(name), setting)
    return str(SettingKey(name))


async def torn_value(at: Cluster) -> str:
    await at.put_raw(bytes(ROUTE), (await at.raw(ROUTE)).value[:-20])
    return str(ROUTE)


async def other_id_inside(at: Cluster) -> str:
    return await at.edit(INFO, table_id=FLIGHTS + 7)


async def other_id_on_a_node(at: Cluster) -> str:
    return await at.edit(DatanodeTableKey("dn-1", FLIGHTS), table_id=WEATHER)


async def other_node_inside(at: Cluster) -> str:
    return await at.edit(NodeKey("datanode", "dn-1"), node_id="dn-9")


async def lost_identity(at: Cluster) -> str:
    await at.delete(ClusterKey())
    return str(ClusterKey())


async def lost_sequence(at: Cluster) -> str:
    await at.delete(SequenceKey("catalog_id"))
    return str(SequenceKey("catalog_id"))


async def eternal_leader(at: Cluster) -> str:
    return await at.edit(LeaderKey())  # a put without a lease takes the lease away


async def foreign_lease(at: Cluster) -> str:
    other = await at.kv.grant(60_000, deadline_ms=1_000)
    await at.put(LeaderKey(), await at.read(LeaderKey()), lease=other)
    return str(LeaderKey())


async def eternal_candidate(at: Cluster) -> str:
    key = CandidateKey("meta-7")
    await at.put(key, Candidate(server="meta-7", url="http://127.0.0.1:7", version="0.1.0"))
    return str(key)


async def node_to_adopt(at: Cluster) -> str:
    return await at.edit(NodeKey("datanode", "dn-2"), restored_from=PROCEDURE)


async def shared_storage(at: Cluster) -> str:
    return await at.edit(NodeKey("datanode", "dn-2"), root=at.root("dn-1"))


async def name_of_nothing(at: Cluster) -> str:
    key = TableNameKey("main", "public", "ghosts")
    await at.put(key, TableNameRecord(table_id=1077))
    return str(key)


async def second_name(at: Cluster) -> str:
    key = TableNameKey("main", "public", "alias")
    await at.put(key, TableNameRecord(table_id=FLIGHTS))
    return str(key)


async def nameless_table(at: Cluster) -> str:
    await at.delete(NAME)
    return str(NAME)


async def name_of_another(at: Cluster) -> set[str]:
    await at.put(NAME, TableNameRecord(table_id=WEATHER))
    return {str(NAME), str(INFO)}


async def lost_route(at: Cluster) -> str:
    await at.delete(ROUTE)
    return str(ROUTE)


async def lost_info(at: Cluster) -> str:
    await at.delete(INFO)
    return str(INFO)


async def old_reverse(at: Cluster) -> str:
    return await at.edit(DatanodeTableKey("dn-1", FLIGHTS), version=7)


async def wrong_numbers(at: Cluster) -> str:
    return await at.edit(DatanodeTableKey("dn-1", FLIGHTS), regions=(0, 1))


async def lost_reverse(at: Cluster) -> str:
    await at.delete(DatanodeTableKey("dn-2", FLIGHTS))
    return str(DatanodeTableKey("dn-2", FLIGHTS))


async def extra_reverse(at: Cluster) -> str:
    key = DatanodeTableKey("dn-1", WEATHER)  # the region has moved to dn-2
    await at.put(key, DatanodeTable(table_id=WEATHER, version=2, regions=(0,)))
    return str(key)


async def unregistered_node(at: Cluster) -> set[str]:
    await at.delete(NodeKey("datanode", "dn-2"))
    return {str(ROUTE), str(TableRouteKey(WEATHER))}


async def region_of_another_table(at: Cluster) -> str:
    return await _edit_region(at, 1, region_id=str(WEATHER << 32 | 1))


async def more_partitions_than_regions(at: Cluster) -> str:
    """The rule and the log say three regions, the route has two."""
    info, route = await at.read(INFO), await at.read(ROUTE)
    wide = info.model_copy(
        update={"table_id": 1030, "name": "wide", "partition": HashRule(columns=(1,), count=3)}
    )
    narrow = TableRoute(
        table_id=1030,
        version=1,
        region_routes=tuple(
            one.model_copy(
                update={"region_id": str(1030 << 32 | one.number), "root": f"{one.root}0"}
            )
            for one in route.region_routes
        ),
    )
    name = TableNameKey("main", "public", "wide")
    read = absent(TableInfoKey(1030), TableRouteKey(1030), name)
    await at.commit(change(read, TableCreated(info=wide, route=narrow)))
    return str(TableRouteKey(1030))


async def epoch_of_nobody(at: Cluster) -> str:
    return await _edit_region(at, 0, epoch=0)


async def shared_root(at: Cluster) -> str:
    other = await at.route_of(FLIGHTS, 1)
    return await _edit_region(at, 0, root=other.root)


async def unregistered_copy(at: Cluster) -> str:
    return await _copied(at, _copy("dn-9", "/elsewhere"))


async def root_of_a_copy_shared(at: Cluster) -> str:
    return await _copied(at, _copy("dn-2", (await at.route_of(FLIGHTS, 1)).root))


async def copy_beside_its_leader(at: Cluster) -> str:
    return await _copied(at, _copy((await at.route_of(FLIGHTS, 0)).leader, "/elsewhere"))


async def _copied(at: Cluster, copy: RegionCopy) -> str:
    region = await at.route_of(FLIGHTS, 0)
    await at.change_region(region.model_copy(update={"copies": (copy,)}))
    return str(ROUTE)


def _copy(node: str, root: str) -> RegionCopy:
    return RegionCopy(node=node, root=root, role=CopyRole.LEARNER)


async def own_root_borrowed(at: Cluster) -> str:
    return await _edit_region(at, 0, borrows=((await at.route_of(FLIGHTS, 0)).root,))


async def open_unannounced(at: Cluster) -> str:
    return await _edit_region(at, 0, announced=False)


async def schema_gone(at: Cluster) -> str:
    await at.delete(SchemaNameKey("main", "sales"))
    return str(SchemaNameKey("main", "sales"))


async def catalog_gone(at: Cluster) -> str:
    await at.delete(CatalogNameKey("main"))
    return str(CatalogNameKey("main"))


async def above_its_limit(at: Cluster) -> str:
    key = CatalogNameKey("main")
    read = await snapshot(at.kv, key, deadline_ms=1_000)
    info = read.must(key)
    tenant = info.as_tenant(info.own_settings, CatalogLimits(tables=1))
    await at.commit(change(read, CatalogAltered(info=tenant)))
    return str(key)


async def opened_by_nobody(at: Cluster) -> str:
    region = await at.route_of(FLIGHTS, 0)
    await at.change_region(region.model_copy(update={"state": RegionState.OPENING}))
    return f"region {region.region_id}"


async def lost_region(at: Cluster) -> str:
    region = await at.route_of(FLIGHTS, 0)
    await at.change_region(region.model_copy(update={"state": RegionState.LOST}))
    return f"region {region.region_id}"


async def half_dropped(at: Cluster) -> str:
    await at.delete(RemovedTableRouteKey(DROPPED))
    return str(RemovedTableRouteKey(DROPPED))


async def dropped_under_another_name(at: Cluster) -> str:
    key = RemovedTableNameKey("main", "sales", "trips", DROPPED)
    await at.put(key, TableNameRecord(table_id=DROPPED))
    return str(key)


async def dropped_twice(at: Cluster) -> str:
    return await at.edit(RemovedTableRouteKey(DROPPED), dropped_at_ms=9)


async def dropped_and_alive(at: Cluster) -> set[str]:
    removed = removed_keys(await at.read(INFO), await at.read(ROUTE))
    for key, value in removed.items():
        await at.put(key, value)
    return {str(key) for key in removed}


async def folder_of_a_dropped_table(at: Cluster) -> str:
    key = RemovedTableRouteKey(DROPPED)
    route = (await at.read(key)).route
    (region,) = route.region_routes
    taken = region.model_copy(update={"root": (await at.route_of(FLIGHTS, 0)).root})
    return await at.edit(key, route=route.model_copy(update={"region_routes": (taken,)}))


async def sequence_fallen_back(at: Cluster) -> str:
    await at.put(SequenceKey("table_id"), Sequence(next=1025))
    return str(SequenceKey("table_id"))


async def schema_sequence_fallen_back(at: Cluster) -> str:
    await at.put(SequenceKey("schema_id"), Sequence(next=1024))
    return str(SequenceKey("schema_id"))


async def table_id_again(at: Cluster) -> str:
    """A dropped table was purged, and the next create was given its id once more."""
    info = await at.read(RemovedTableInfoKey(DROPPED))
    await at.purge_table(DROPPED)
    await at.create_table(info.info, "dn-1")
    version = await at.read(CatalogVersionKey())
    return str(CatalogUpdateKey(version.version))


async def schema_id_again(at: Cluster) -> set[str]:
    edited = await at.edit(SchemaNameKey("main", "sales"), schema_id=1024)
    return {edited, str(SchemaNameKey("main", "public"))}


async def _edit_region(at: Cluster, number: int, **update: Any) -> str:
    route = await at.read(ROUTE)
    regions = list(route.region_routes)
    regions[number] = regions[number].model_copy(update=update)
    return await at.edit(ROUTE, region_routes=tuple(regions))


BREAKAGES = (
    Breakage("key-family", unknown_family),
    Breakage("key-family", sloppy_key),
    Breakage("value-newer", newer_format),
    Breakage("value-decodes", unknown_field),
    Breakage("value-decodes", torn_value),
    Breakage("value-identity", other_id_inside),
    Breakage("value-identity", other_id_on_a_node),
    Breakage("value-identity", other_node_inside),
    Breakage("cluster-bootstrapped", lost_identity),
    Breakage("cluster-bootstrapped", lost_sequence),
    Breakage("leader-leased", eternal_leader),
    Breakage("leader-leased", foreign_lease),
    Breakage("candidate-leased", eternal_candidate),
    Breakage("setting-valid", unknown_setting),
    Breakage("setting-valid", setting_of_another_type),
    Breakage("node-root", shared_storage),
    Breakage("node-adopted", node_to_adopt),
    Breakage("table-name", name_of_nothing),
    Breakage("table-name", second_name),
    Breakage("table-name", nameless_table),
    Breakage("table-name", name_of_another),
    Breakage("table-whole", lost_route),
    Breakage("table-whole", lost_info),
    Breakage("table-reverse", old_reverse),
    Breakage("table-reverse", wrong_numbers),
    Breakage("table-reverse", lost_reverse),
    Breakage("table-reverse", extra_reverse),
    Breakage("route-nodes", unregistered_node),
    Breakage("route-nodes", unregistered_copy),
    Breakage("region-ids", region_of_another_table),
    Breakage("region-ids", more_partitions_than_regions),
    Breakage("region-epoch", epoch_of_nobody),
    Breakage("region-root", shared_root),
    Breakage("region-root", own_root_borrowed),
    Breakage("region-root", root_of_a_copy_shared),
    Breakage("region-copies", copy_beside_its_leader),
    Breakage("region-announced", open_unannounced),
    Breakage("table-schema", schema_gone),
    Breakage("table-schema", catalog_gone),
    Breakage("tenant-limits", above_its_limit),
    Breakage("region-opening", opened_by_nobody),
    Breakage("region-lost", lost_region),
    Breakage("drop-unfinished", dropped_by_nobody),
    Breakage("removed-whole", half_dropped),
    Breakage("removed-whole", dropped_under_another_name),
    Breakage("removed-whole", dropped_twice),
    Breakage("removed-living", dropped_and_alive),
    Breakage("removed-roots", folder_of_a_dropped_table),
    Breakage("id-sequence", sequence_fallen_back),
    Breakage("id-sequence", schema_sequence_fallen_back),
    Breakage("id-once", table_id_again),
    Breakage("id-once", schema_id_again),
)
