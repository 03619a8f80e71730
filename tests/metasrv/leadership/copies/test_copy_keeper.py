"""The loop that makes lost copies again, on a whole server: when it acts, and when it does not."""

import pytest

from keys.model.tables import RegionRoute
from metasrv.leadership.copies.copy_keeper import AGAIN_MS, EVERY_MS, SOON_MS, CopyKeeper, pause_ms
from metasrv.leadership.copies.copy_survey import ABSENT_MS, LOST_MS
from metasrv.leadership.retirement import look as mark_offline
from metasrv_base.wire.node.nodes import RegionStat
from tests.metasrv.api.rig import Server, beat, leader
from tests.metasrv.nodes.samples import stat
from tests.metasrv.service.cluster.copied import (
    change_of,
    copied_region,
    region_now,
    results,
    roles,
)

HOUR_MS = 3_600_000
NODES = ("dn-1", "dn-2", "dn-3", "dn-4")


def keeper_of(server: Server) -> CopyKeeper:
    return CopyKeeper(server.term, server.clock, server.state.ids)


def report(region: RegionRoute, node: str) -> list[RegionStat]:
    """A node has what the route says of it."""
    here = dict(zip(region.nodes, region.roots, strict=True))
    if node not in here:
        return []
    facts = {"epoch": region.epoch, "root": here[node], "copies_version": region.copies_version}
    return [stat(region.region_id).model_copy(update=facts)]


def passes(server: Server, ms: int, *silent: str, empty: str = "", broken: str = "") -> None:
    """Time passes: all nodes are heard at its end but the *silent* ones; *empty* reports that it
    has nothing, *broken* that what it has is lost."""
    server.clock.ahead_ms += ms
    (table,) = server.state.follower.catalog.tables.values()
    (region,) = table.route.region_routes
    for node in NODES:
        if node not in silent:
            here = [] if node == empty else report(region, node)
            if node == broken:
                here = [each.model_copy(update={"state": "lost"}) for each in here]
            server.term.nodes.heartbeat(beat(node, server.clock.mono_ms(), here))


async def looked(server: Server, keeper: CopyKeeper) -> None:
    """One look, and what it submits is over."""
    await mark_offline(server.term, server.clock)
    await keeper.look()
    while server.term.manager.living():
        await server.term.manager.changed(deadline_ms=1_000)


async def test_given_a_node_that_is_dead_for_the_time_then_its_copy_is_made_elsewhere() -> None:
    async with leader(nodes=4) as server:
        region = await copied_region(server)
        lost = region.copies[1].node
        keeper = keeper_of(server)

        passes(server, 60_000, lost)
        await looked(server, keeper)
        assert region_now(server, region) == region, "it is dead, and may come back"

        passes(server, HOUR_MS, lost)
        await looked(server, keeper)
        now = region_now(server, region)
        assert keeper.is_busy
        assert roles(now) == {**roles(region), "dn-4": "learner"}
        assert now.copies[-1].root == f"/data/dn-4/regions/{region.region_id}-1-2"

        passes(server, 10_000, lost)
        await looked(server, keeper)
        assert region_now(server, region) == now, "the learner catches up"


async def test_given_a_partition_group_then_a_missing_copy_is_made_where_it_is() -> None:
    """dn-3 has no region at all."""
    async with leader(nodes=3) as server:
        await server.client.post("/v1/catalogs/main/tablespaces", json={"name": "orders"})
        for name in ("a", "b"):
            await server.make(name, tablespace="orders", replicas=2)
        _, region = _regions(server)
        (beside,) = region.other_nodes
        remove = f"/v1/regions/{region.region_id}/copies/{beside}/remove"
        body = {"reason": "its disk is slow", "force": True}
        gone = await server.client.post(remove, json=body, headers={"prefer": "wait=60"})
        assert gone.status_code == 200, gone.text

        server.clock.ahead_ms += 60_000
        for node in NODES[:3]:
            here = [stat for each in _regions(server) for stat in report(each, node)]
            server.term.nodes.heartbeat(beat(node, server.clock.mono_ms(), here))
        await looked(server, keeper_of(server))

        assert roles(region_now(server, region)) == {beside: "learner"}


def _regions(server: Server) -> list[RegionRoute]:
    tables = server.state.follower.catalog.tables.values()
    return [region for table in tables for region in table.route.region_routes]


def test_given_copies_on_their_way_then_looks_come_soon_and_take_a_tenth_of_the_time() -> None:
    assert pause_ms(5_000, is_busy=False) == EVERY_MS
    assert pause_ms(10, is_busy=True) == SOON_MS
    assert pause_ms(300, is_busy=True) == 2_700
    assert pause_ms(5_000, is_busy=True) == EVERY_MS


async def test_given_maintenance_or_many_dead_nodes_then_nothing_is_made_again() -> None:
    async with leader(nodes=4) as server:
        region = await copied_region(server)
        lost = region.copies[1].node
        keeper = keeper_of(server)
        url = "/v1/cluster/maintenance"
        on = await server.client.put(url, json={"enabled": True, "reason": "a move of racks"})
        assert on.status_code == 200, on.text

        passes(server, 60_000, lost)
        await looked(server, keeper)
        passes(server, HOUR_MS, lost)
        await looked(server, keeper)
        assert region_now(server, region) == region, "planned maintenance"
        assert not keeper.is_busy

        await server.client.put(url, json={"enabled": False})
        all_dead = (region.leader, *(copy.node for copy in region.copies))
        passes(server, HOUR_MS, *all_dead)
        await looked(server, keeper)
        assert region_now(server, region) == region, "who is cut off: they, or this server?"

        passes(server, 10_000, lost)
        await looked(server, keeper)
        assert "dn-4" in roles(region_now(server, region))


async def test_given_a_new_leader_within_the_grace_then_it_makes_nothing() -> None:
    async with leader(nodes=4) as server:
        region = await copied_region(server)
        lost = region.copies[1].node
        server.term.nodes.entry(lost).is_offline = True
        passes(server, 15_000, lost)

        await keeper_of(server).look()

        assert not server.term.manager.living()
        assert region_now(server, region) == region


async def test_given_a_learner_that_its_node_does_not_have_then_it_is_made_anew_after_a_while() -> (
    None
):
    async with leader(nodes=4) as server:
        region = await copied_region(server)
        learner = region.copies[1]
        keeper = keeper_of(server)

        passes(server, 60_000, empty=learner.node)
        await looked(server, keeper)
        assert region_now(server, region) == region

        passes(server, ABSENT_MS, empty=learner.node)
        await looked(server, keeper)
        now = region_now(server, region)
        assert roles(now) == roles(region)
        assert now.copies[-1].root != learner.root

        passes(server, AGAIN_MS)
        await looked(server, keeper)
        assert region_now(server, region) == now


async def test_given_a_learner_whose_node_reports_it_as_lost_then_it_is_made_anew_soon() -> None:
    async with leader(nodes=4) as server:
        region = await copied_region(server)
        learner = region.copies[1]
        keeper = keeper_of(server)

        passes(server, 60_000, broken=learner.node)
        await looked(server, keeper)
        assert region_now(server, region) == region
        passes(server, LOST_MS, broken=learner.node)
        await looked(server, keeper)

        now = region_now(server, region)
        assert roles(now) == roles(region)
        assert now.copies[-1].root != learner.root


@pytest.mark.parametrize("reports", ["empty", "broken"])
async def test_given_a_copy_that_may_lead_when_its_node_lacks_it_then_it_stays_and_one_is_added(
    reports: str,
) -> None:
    """It may be the only other disk with every acknowledged row, and is slow to open."""
    async with leader(nodes=4) as server:
        region = await copied_region(server)
        copy, keeper = region.copies[0], keeper_of(server)
        passes(server, 60_000)
        await results(server, region.leader, change_of(region, copy, eligible=True))
        assert [each.root for each in region_now(server, region).eligible] == [copy.root]

        for ms in (2_000, ABSENT_MS):
            passes(server, ms, **{reports: copy.node})
            await looked(server, keeper)

        now = region_now(server, region)
        assert [each.root for each in now.eligible] == [copy.root]
        assert "dn-4" in roles(now)
        assert not [order for _, order in server.nodes.asked if order.op == "discard"]


async def test_given_lost_copies_then_metrics_count_the_regions_at_risk() -> None:
    """Also in maintenance, when nothing is made again."""
    async with leader(nodes=4) as server:
        region = await copied_region(server)
        in_sync = region.copies[0].node
        keeper = keeper_of(server)
        url = "/v1/cluster/maintenance"
        await server.client.put(url, json={"enabled": True, "reason": "a move of racks"})

        passes(server, 60_000)
        await looked(server, keeper)
        before = (await server.client.get("/metrics")).text
        passes(server, 60_000, in_sync)
        await looked(server, keeper)
        passes(server, HOUR_MS, in_sync)
        await looked(server, keeper)
        after_loss = (await server.client.get("/metrics")).text
        (left,) = await results(server, region.leader, change_of(region, region.copies[0]))
        assert left["error"] is None
        await keeper.look()
        after_leaving = (await server.client.get("/metrics")).text

        assert 'metasrv_regions_at_risk{risk="on_one_disk"} 0.0' in before
        assert 'metasrv_regions_at_risk{risk="below_min_in_sync"} 0.0' in before
        assert 'metasrv_regions_at_risk{risk="on_one_disk"} 1.0' in after_loss
        assert 'metasrv_regions_at_risk{risk="below_min_in_sync"} 0.0' in after_loss
        assert 'metasrv_regions_at_risk{risk="below_min_in_sync"} 1.0' in after_leaving
