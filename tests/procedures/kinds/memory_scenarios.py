"""Lives of procedures on a table of the engine `memory`: its rows end with their processes."""

from keys.commit.change import change, route_changed
from keys.commit.txn import snapshot
from keys.model.tables import TableRouteKey
from keys.store.kv import Compare
from metasrv_base.engines import MEMORY
from procedures.kinds.failover.failover_table import FailoverTable
from procedures.kinds.failover.lose_regions import LoseRegions
from procedures.kinds.tables.truncate_table import TruncateTable
from procedures.kinds.tables.undrop_table import UndropTable
from procedures.steps.open_and_publish import as_lost
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.procedures.harness.ends import TABLE, End, effects, is_true, truncated
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import (
    NODES,
    drop_table_keys,
    put_table,
    region_ids,
    reserve_ids,
    table_info,
)

ON_FIRST = region_ids(TABLE, 2)


async def in_memory(cluster: Cluster, fence: Compare) -> None:
    """Table t: two regions on dn-1, one on dn-2."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    info = table_info(TABLE, "t", 3).model_copy(update={"engine": MEMORY})
    await put_table(cluster, fence, info, ("dn-1", "dn-1", "dn-2"))


async def with_dead_node(cluster: Cluster, fence: Compare) -> None:
    await in_memory(cluster, fence)
    cluster.plane.nodes["dn-1"].die()


async def with_new_process(cluster: Cluster, fence: Compare) -> None:
    await with_dead_node(cluster, fence)
    cluster.plane.nodes["dn-1"].alive = True


async def with_lost_regions(cluster: Cluster, fence: Compare) -> None:
    await with_new_process(cluster, fence)
    key = TableRouteKey(TABLE)
    read = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    route = read.must(key)
    lost = as_lost(route.region_routes, ON_FIRST)
    await cluster.change(fence, change(read, route_changed(route, lost)))


async def dropped(cluster: Cluster, fence: Compare) -> None:
    await in_memory(cluster, fence)
    await drop_table_keys(cluster, fence, TABLE)


def states(end: End) -> list[tuple[str, int]]:
    return [(region["state"], region["epoch"]) for region in end.regions(TABLE)]


def lost_elsewhere(end: End) -> list[str]:
    """The route says so, nobody serves them, and the region of the living node serves on.

    A leader that was elected a moment ago takes the node for alive, and leaves it what a move would
    end: detection begins the next failover."""
    if states(end) == [("open", 1)] * 3:
        return effects(end)
    leaders = {region["leader"] for region in end.regions(TABLE)[:2]}
    served = [end.cluster.plane.nodes[leader].serving.keys() & {*ON_FIRST} for leader in leaders]
    return [
        *is_true(states(end) == [("lost", 2), ("lost", 2), ("open", 1)], f"{states(end)}"),
        *is_true("dn-1" not in leaders, f"led by {leaders}"),
        *is_true(not any(served), f"served: {served}"),
    ]


def lost_in_place(end: End) -> list[str]:
    leaders = [region["leader"] for region in end.regions(TABLE)]
    return [
        *effects(end, "route.changed"),
        *is_true(states(end) == [("lost", 1), ("lost", 1), ("open", 1)], f"{states(end)}"),
        *is_true(leaders == ["dn-1", "dn-1", "dn-2"], f"led by {leaders}"),
    ]


def back_and_lost(end: End) -> list[str]:
    """The definition is back; the rows ended when the drop closed the regions."""
    served = [node.serving for node in end.cluster.plane.nodes.values() if node.serving]
    return [
        *is_true("public.t" in end.tables(), "no table"),
        *is_true(states(end) == [("lost", 2)] * 3, f"{states(end)}"),
        *is_true(not served, f"served: {served}"),
    ]


MEMORY_SCENARIOS = (
    Scenario(
        "failover_table, in memory",
        "failover_table",
        FailoverTable(
            table_id=TABLE, name="main.public.t", source="dn-1", region_ids=ON_FIRST, reason="test"
        ),
        with_dead_node,
        {FULL: lost_elsewhere},
    ),
    Scenario(
        "lose_regions",
        "lose_regions",
        LoseRegions(
            table_id=TABLE, name="main.public.t", node="dn-1", epochs=dict.fromkeys(ON_FIRST, 1)
        ),
        with_new_process,
        {FULL: lost_in_place},
    ),
    Scenario(
        "truncate_table, lost in memory",
        "truncate_table",
        TruncateTable(catalog="main", schema_name="public", name="t", table_id=TABLE),
        with_lost_regions,
        {FULL: truncated},
    ),
    Scenario(
        "undrop_table, in memory",
        "undrop_table",
        UndropTable(
            table_id=TABLE, catalog="main", schema_name="public", old_name="t", new_name="t"
        ),
        dropped,
        {FULL: back_and_lost},
    ),
)
