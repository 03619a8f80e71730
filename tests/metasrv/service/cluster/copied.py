"""A table whose regions have copies, and the changes that its leader asks for."""

from collections.abc import Sequence
from typing import Any

import httpx

from keys.commit.change import change, route_changed
from keys.commit.txn import snapshot
from keys.model.log import TableAltered
from keys.model.tables import CopyRole, RegionCopy, RegionRoute, TableInfoKey, TableRouteKey
from tests.metasrv.api.rig import CLUSTER, DEADLINE_MS, Server

ROLES = (CopyRole.IN_SYNC, CopyRole.LEARNER)


async def copied_region(server: Server, roles: Sequence[CopyRole] = ROLES) -> RegionRoute:
    """Makes table t of three copies, with *roles* beside the leader: by default, one in sync, one
    a learner."""
    await server.make()
    (table,) = server.state.follower.catalog.tables.values()
    info_key, key = TableInfoKey(table.info.table_id), TableRouteKey(table.info.table_id)
    read = await snapshot(server.kv, info_key, key, deadline_ms=DEADLINE_MS)
    info, route = read.get(info_key), read.get(key)
    assert info is not None
    assert route is not None
    (region,) = route.region_routes
    others = [node for node in ("dn-1", "dn-2", "dn-3") if node != region.leader]
    copies = tuple(
        RegionCopy(node=node, root=f"/data/{node}/regions/{region.region_id}-1", role=role)
        for node, role in zip(others, roles, strict=True)
    )
    copied = region.with_copies(copies)
    own = {"format": 3, "own_copies": ("replicas",)}
    update = {"replicas": len(region.nodes) + len(copies), "version": info.version + 1}
    altered = TableAltered(info=info.model_copy(update={**own, **update}))
    entries = (altered, route_changed(route, (copied,)))
    committed = await server.term.committer.commit(change(read, *entries))
    assert committed.stamp.catalog_version is not None
    await server.state.follower.wait_for(committed.stamp.catalog_version, deadline_ms=DEADLINE_MS)
    return region_now(server, copied)


def region_now(server: Server, region: RegionRoute) -> RegionRoute:
    """The route of the region, as the applied catalog has it."""
    regions = [
        each
        for table in server.state.follower.catalog.tables.values()
        for each in table.route.region_routes
        if each.region_id == region.region_id
    ]
    return regions[0]


def roles(region: RegionRoute) -> dict[str, str]:
    return {copy.node: copy.role.value for copy in region.copies}


def change_of(region: RegionRoute, copy: RegionCopy, **more: Any) -> dict[str, Any]:
    """A change as the leader of *region* asks for it: whoever is a learner joins, others leave."""
    is_learner = copy.role is CopyRole.LEARNER
    facts = {
        "region_id": region.region_id,
        "epoch": region.epoch,
        "copies_version": region.copies_version,
        "change": "join" if is_learner else "leave",
        "node": copy.node,
        "root": copy.root,
        "reason": "it has caught up" if is_learner else "no answer for 10 s",
    }
    return {**facts, **more}


def body(node: str, *changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    facts = {"cluster_id": CLUSTER, "node_id": node, "incarnation": "i-1"}
    return {**facts, "changes": list(changes), **more}


async def post(server: Server, node: str, *changes: dict[str, Any], **more: Any) -> httpx.Response:
    url = f"/internal/v1/nodes/{node}/copies"
    return await server.client.post(url, json=body(node, *changes, **more))


async def results(server: Server, node: str, *changes: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await post(server, node, *changes)
    assert answer.status_code == 200, answer.text
    shown: list[dict[str, Any]] = answer.json()["results"]
    return shown
