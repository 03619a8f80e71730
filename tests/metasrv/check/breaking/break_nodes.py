"""Reports of nodes and servers, and folders, that break one rule about them."""

import os

from keys.model.holders import HolderKey, HolderRecord
from keys.model.tables import CopyRole, RegionCopy
from metasrv.check.check_input import NodeReport, ServerReport
from procedures.steps.placing import root_under
from tests.metasrv.check.breaking.breaking import Breakage
from tests.metasrv.check.cluster import CLUSTER_ID, DROPPED, FLIGHTS, Cluster, reported
from tests.metasrv.check.conftest import SERVER


async def node_of_another_cluster(at: Cluster) -> str:
    at.reports["dn-1"] = at.reports["dn-1"].model_copy(update={"cluster_id": "another"})
    return "dn-1"


async def server_of_another_cluster(at: Cluster) -> str:
    at.answers = {SERVER: ServerReport(cluster_id="another", catalog_version=100)}
    return SERVER


async def holder_under_a_lease(at: Cluster) -> str:
    key = HolderKey("fe-1")
    await at.put(key, _holder("fe-1"), lease=at.lease)
    return str(key)


async def holder_of_another_name(at: Cluster) -> str:
    key = HolderKey("fe-1")
    await at.put(key, _holder("fe-2"))
    return str(key)


def _holder(holder_id: str) -> HolderRecord:
    return HolderRecord(
        holder_id=holder_id,
        incarnation="i-1",
        address="http://127.0.0.1:1",
        version="0",
        registered_at_ms=0,
    )


async def second_leader(at: Cluster) -> str:
    region = await at.route_of(FLIGHTS, 0)
    _add(at, "dn-2", reported(region).model_dump())
    return f"region {region.region_id} at dn-2"


async def leader_of_an_epoch_nobody_gave(at: Cluster) -> str:
    region = await at.route_of(FLIGHTS, 0)
    _add(at, "dn-2", reported(region, epoch=9).model_dump())
    return f"region {region.region_id} at dn-2"


async def lost_at_its_node(at: Cluster) -> str:
    region = await at.route_of(FLIGHTS, 0)
    _replace(at, "dn-1", region.region_id, state="lost")
    return f"region {region.region_id} at dn-1"


async def closed_at_its_leader(at: Cluster) -> str:
    region = await at.route_of(FLIGHTS, 0)
    at.reports["dn-1"] = at.reports["dn-1"].model_copy(update={"regions": ()})
    return f"region {region.region_id} at dn-1"


async def copy_that_its_node_lacks(at: Cluster) -> str:
    region = await at.route_of(FLIGHTS, 0)
    root = root_under(at.root("dn-2"), region.region_id, 1)
    copy = RegionCopy(node="dn-2", root=root, role=CopyRole.IN_SYNC)
    await at.change_region(region.with_copies((copy,)))
    return f"copy of region {region.region_id} at dn-2"


async def open_in_another_folder(at: Cluster) -> str:
    region = await at.route_of(FLIGHTS, 0)
    elsewhere = reported(region).model_copy(update={"root": at.root("dn-1") + "/other"})
    at.reports["dn-1"] = at.reports["dn-1"].model_copy(update={"regions": (elsewhere,)})
    return f"region {region.region_id} at dn-1"


async def dropped_table_still_served(at: Cluster) -> str:
    region = await at.route_of(FLIGHTS, 0)
    ghost = region.model_copy(update={"region_id": str(DROPPED << 32)})
    _add(at, "dn-1", reported(ghost).model_dump())
    return f"region {DROPPED << 32} at dn-1"


async def stale_server(at: Cluster) -> str:
    at.answers = {SERVER: ServerReport(cluster_id=CLUSTER_ID, catalog_version=1)}
    return SERVER


async def folder_of_nobody(at: Cluster) -> str:
    folder = root_under(at.root("dn-1"), str(1077 << 32), 1)
    os.makedirs(folder)
    return folder


async def silent_node(at: Cluster) -> str:
    del at.reports["dn-2"]
    return "node dn-2"


async def silent_server(at: Cluster) -> str:
    at.answers = {SERVER: "not asked: it is stopped"}
    return SERVER


def _add(at: Cluster, node: str, region: object) -> None:
    report = at.reports[node].model_dump()
    report["regions"] = [*report["regions"], region]
    at.reports[node] = NodeReport.model_validate(report)


def _replace(at: Cluster, node: str, region_id: str, **update: object) -> None:
    report = at.reports[node].model_dump()
    for region in report["regions"]:
        if region["stat"]["region_id"] == region_id:
            region["stat"].update(update)
    at.reports[node] = NodeReport.model_validate(report)


BREAKAGES = (
    Breakage("holder-plain", holder_under_a_lease),
    Breakage("value-identity", holder_of_another_name),
    Breakage("cluster-one", node_of_another_cluster),
    Breakage("cluster-one", server_of_another_cluster),
    Breakage("region-one-leader", second_leader),
    Breakage("region-one-leader", leader_of_an_epoch_nobody_gave),
    Breakage("region-readable", lost_at_its_node),
    Breakage("region-serves", closed_at_its_leader),
    Breakage("copy-follows", copy_that_its_node_lacks),
    Breakage("region-serves", open_in_another_folder),
    Breakage("region-claimed", dropped_table_still_served),
    Breakage("server-follows", stale_server),
    Breakage("folder-orphan", folder_of_nobody),
    Breakage("unseen", silent_node),
    Breakage("unseen", silent_server),
)
