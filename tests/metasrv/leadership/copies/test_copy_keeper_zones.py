"""Leaders that follow the preferred zones of their placement, on a whole server: when the keeper
switches them, and when it does not."""

from typing import Any

import pytest

from keys.model.tables import CopyRole, RegionRoute
from metasrv.leadership.copies import copy_keeper
from metasrv.leadership.copies.copy_keeper import AGAIN_MS, CopyKeeper
from metasrv.leadership.copies.zone_followers import SWITCHES_MAX
from metasrv_base.errors import Unavailable
from procedures.kinds.failover.decommission_node import DECOMMISSION_NODE
from procedures.kinds.failover.failover_node import FAILOVER_NODE
from procedures.kinds.failover.switch_leader import SWITCH_LEADER
from procedures.kinds.moves.drain_node import DRAIN_NODE
from procedures.kinds.moves.move_copy import MOVE_COPY
from procedures.machine import Kind
from tests.metasrv.api.rig import Server, beat, leader, registration
from tests.metasrv.nodes.samples import stat
from tests.metasrv.service.cluster.copied import copied_region, region_now

NODES = ("dn-1", "dn-2", "dn-3", "dn-4")
BOTH_IN_SYNC = (CopyRole.IN_SYNC, CopyRole.IN_SYNC)
DEFAULT = "/v1/placements/default"
WAIT = {"prefer": "wait=10"}


async def in_zones(server: Server) -> RegionRoute:
    """A region of three copies in sync; each node stands in a zone of its name."""
    for node in NODES:
        await server.term.nodes.register(registration(node, zone=node))
        server.term.nodes.heartbeat(beat(node, zone=node))
    region = await copied_region(server, BOTH_IN_SYNC)
    hear(server, 60_000)
    return region


def hear(server: Server, ms: int, *silent: str) -> None:
    """Time passes; then every node but the *silent* ones reports what the route says of it."""
    server.clock.ahead_ms += ms
    (table,) = server.state.follower.catalog.tables.values()
    (region,) = table.route.region_routes
    here = dict(zip(region.nodes, region.roots, strict=True))
    for node in NODES:
        if node in silent:
            continue
        facts = {"epoch": region.epoch, "copies_version": region.copies_version}
        stats = [
            stat(region.region_id).model_copy(update={**facts, "root": root})
            for name, root in here.items()
            if name == node
        ]
        server.term.nodes.heartbeat(beat(node, server.clock.mono_ms(), stats, zone=node))


async def prefer(server: Server, *zones: str) -> None:
    answer = await server.client.patch(DEFAULT, json={"preferred_zones": zones}, headers=WAIT)
    assert answer.status_code == 200, answer.text


async def looked(server: Server, keeper: CopyKeeper) -> None:
    """One look, and what it submits is over."""
    await keeper.look()
    while server.term.manager.living():
        await server.term.manager.changed(deadline_ms=1_000)


def keeper_of(server: Server) -> CopyKeeper:
    return CopyKeeper(server.term, server.clock, server.state.ids)


def others_of(region: RegionRoute) -> tuple[str, str]:
    first, second = region.other_nodes
    return first, second


async def test_given_a_preference_when_altered_then_the_leader_follows_and_stays() -> None:
    async with leader(nodes=0) as server:
        region = await in_zones(server)
        first, second = others_of(region)
        keeper = keeper_of(server)

        await looked(server, keeper)
        assert region_now(server, region) == region, "no zone is preferred"
        await prefer(server, second)
        await looked(server, keeper)
        switched = region_now(server, region)
        assert keeper.is_busy
        hear(server, AGAIN_MS)
        await looked(server, keeper)

        assert (switched.leader, switched.epoch) == (second, region.epoch + 1)
        assert set(switched.in_sync) == set(region.nodes)
        assert region_now(server, region) == switched
        assert not keeper.is_busy

        await prefer(server, first, second)
        await looked(server, keeper)
        assert region_now(server, region).leader == first


async def test_given_a_switch_that_fails_then_it_is_not_repeated_at_once() -> None:
    async with leader(nodes=0) as server:
        region = await in_zones(server)
        second = others_of(region)[1]
        keeper, begun = keeper_of(server), list[str]()
        await prefer(server, second)

        async def refuses(kind: Any, state: Any, request: Any) -> None:
            begun.append(f"{kind.name} to {state.to_node}")
            raise Unavailable("too-many-requests")

        submit = server.term.manager.submit
        server.term.manager.submit = refuses  # type: ignore[assignment, method-assign]
        await looked(server, keeper)
        hear(server, AGAIN_MS // 2)
        await looked(server, keeper)
        assert begun == [f"{SWITCH_LEADER.name} to {second}"]

        server.term.manager.submit = submit  # type: ignore[method-assign]
        hear(server, AGAIN_MS)
        await looked(server, keeper)
        assert region_now(server, region).leader == second


async def test_given_maintenance_or_a_cordon_then_the_leader_stays() -> None:
    async with leader(nodes=0) as server:
        region = await in_zones(server)
        second = others_of(region)[1]
        keeper, node = keeper_of(server), f"/v1/nodes/{second}"
        await prefer(server, second)

        url = "/v1/cluster/maintenance"
        await server.client.put(url, json={"enabled": True, "reason": "a move of racks"})
        await looked(server, keeper)
        assert region_now(server, region) == region, "planned maintenance"
        await server.client.put(url, json={"enabled": False})

        on = await server.client.post(f"{node}/cordon", json={"reason": "a new kernel"})
        assert on.status_code == 200, on.text
        await looked(server, keeper)
        assert region_now(server, region) == region, "a cordon goes before a zone"

        await server.client.post(f"{node}/uncordon")
        await looked(server, keeper)
        assert region_now(server, region).leader == second


@pytest.mark.parametrize(
    ("kind", "states"),
    [
        (DRAIN_NODE, [{"node": "dn-3"}]),
        (DECOMMISSION_NODE, [{"node": "dn-3"}]),
        (FAILOVER_NODE, [{"node": "dn-3"}]),
        (SWITCH_LEADER, [{"region_id": "9"}] * SWITCHES_MAX),
        (MOVE_COPY, [{"region_id": "4398046511104"}]),
    ],
)
async def test_given_procedures_under_way_then_nothing_is_switched_against_them(
    monkeypatch: pytest.MonkeyPatch, kind: Kind[Any], states: list[dict[str, str]]
) -> None:
    """A drain of the node, as many switches as may be, or a move of a copy of the region."""
    async with leader(nodes=0) as server:
        region = await in_zones(server)
        await prefer(server, "dn-3")
        keeper = keeper_of(server)

        with monkeypatch.context() as patched:
            patched.setattr(
                copy_keeper,
                "_living",
                lambda term, *kinds: iter(states if kind in kinds else ()),
            )
            await looked(server, keeper)
        assert region_now(server, region) == region

        await looked(server, keeper)
        assert region_now(server, region).leader == "dn-3"


async def test_given_leaders_outside_the_preferred_zones_then_a_metric_counts_them() -> None:
    """Also in maintenance, when no leader is switched."""
    name = "metasrv_regions_led_outside_preferred_zones"

    async def shown() -> str:
        lines = (await server.client.get("/metrics")).text.splitlines()
        (line,) = (line for line in lines if line.startswith(f"{name} "))
        return line.removeprefix(f"{name} ")

    async with leader(nodes=0) as server:
        region = await in_zones(server)
        second = others_of(region)[1]
        keeper = keeper_of(server)
        maintenance = {"enabled": True, "reason": "a move of racks"}
        await server.client.put("/v1/cluster/maintenance", json=maintenance)

        await looked(server, keeper)
        assert await shown() == "0.0", "no zone is preferred"
        await prefer(server, second)
        await looked(server, keeper)
        assert await shown() == "1.0"
        await server.client.put("/v1/cluster/maintenance", json={"enabled": False})
        await looked(server, keeper)
        assert region_now(server, region).leader == second
        await looked(server, keeper)
        assert await shown() == "0.0"
