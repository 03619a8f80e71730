"""Lives of drains of a node with copies, and how they may end."""

from collections.abc import Sequence

from keys.store.kv import Compare
from procedures.kinds.moves.drain_node import DrainNode, DroppedTables
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.copied_ends import following, roles, told
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    Copies,
    copied_info,
    copied_route,
    put_copied_table,
)
from tests.procedures.harness.copies.switching import held
from tests.procedures.harness.ends import TABLE, End, is_true, no_rest, serving_at
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import (
    NODES,
    drop_table_keys,
    put_schema,
    region_ids,
    reserve_ids,
    table_info,
)

DRAINED = "dn-1"
LEADERS = ("dn-1", "dn-2", "dn-1")
DROPPED = 1025
COPIES = ((("dn-2", IN_SYNC),), (("dn-1", IN_SYNC),), ())
"""Copies beside the leaders of three regions."""
ALONE: tuple[Copies, ...] = ((), (), ())


async def with_room_for_copies(cluster: Cluster, fence: Compare) -> None:
    """dn-1 leads a region with a copy, has a copy of another, and leads one alone. Learners
    join."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, LEADERS, COPIES)
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 3), route)
    cluster.plane.joining |= set(region_ids(TABLE, 3))


async def with_only_copies(cluster: Cluster, fence: Compare) -> None:
    """dn-1 leads two regions of one copy each, dn-2 a third. Learners join."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, LEADERS, ALONE)
    await put_copied_table(cluster, fence, table_info(TABLE, "t", 3), route)
    cluster.plane.joining |= set(region_ids(TABLE, 3))


async def with_a_dropped_table(cluster: Cluster, fence: Compare) -> None:
    """As `with_only_copies`, and a dropped table has a region on dn-1, and one on dn-2."""
    await with_only_copies(cluster, fence)
    route = copied_route(DROPPED, ("dn-1", "dn-2"), ALONE[:2])
    await put_copied_table(cluster, fence, table_info(DROPPED, "gone", 2), route)
    await drop_table_keys(cluster, fence, DROPPED)


async def with_a_dropped_table_that_moves(cluster: Cluster, fence: Compare) -> None:
    """The same, and learners of that table join."""
    await with_a_dropped_table(cluster, fence)
    cluster.plane.joining |= set(region_ids(DROPPED, 2))


def sound(end: End, before: Sequence[Copies] = COPIES) -> list[str]:
    """Every region is led by a copy in sync with all rows, and no fewer are in sync than before."""
    regions = end.regions(TABLE)
    in_sync = [[role for _, role in some].count("in-sync") for some in roles(end, TABLE)]
    least = [len(some) for some in before]
    return [
        *serving_at(end, TABLE, [region["epoch"] for region in regions]),
        *following(end, TABLE),
        *told(end, TABLE),
        *is_true(all(map(int.__ge__, in_sync, least)), f"copies {roles(end, TABLE)}"),
        *is_true(not held(end), f"writes wait: {held(end)}"),
        *no_rest(end),
    ]


def drained(end: End) -> list[str]:
    """No copy is on the node."""
    return [*sound(end), *_is_empty(end)]


def sound_alone(end: End) -> list[str]:
    return sound(end, ALONE)


def drained_of_only_copies(end: End) -> list[str]:
    """No copy is on the node, and each region has one."""
    copies = roles(end, TABLE)
    return [*sound_alone(end), *_is_empty(end), *is_true(not any(copies), f"copies {copies}")]


def drained_and_purged(end: End) -> list[str]:
    """Nothing is left of the dropped table either."""
    removed = end.agreement.family("__removed-__table_route")
    folders = end.cluster.plane.storage.folders
    left = [root for root in folders if f"/{DROPPED << 32}-" in root]
    return [*drained_of_only_copies(end), *is_true(not removed and not left, f"left {left}")]


def drained_with_dropped(end: End) -> list[str]:
    """The dropped table is dropped still: its regions are on other nodes, closed, with all rows."""
    (removed,) = end.agreement.family("__removed-__table_route").values()
    regions = removed["route"]["region_routes"]
    folders = end.cluster.plane.storage.folders
    left = [root for root in folders if f"/{DROPPED << 32}-" in root]
    nodes = end.cluster.plane.nodes.values()
    are_open = [
        (node.node_id, region["region_id"])
        for region in regions
        for node in nodes
        if region["region_id"] in {**node.serving, **node.following}
    ]
    rows = [folders[region["root"]].rows for region in regions if region["root"] in folders]
    return [
        *drained_of_only_copies(end),
        *is_true(DRAINED not in {region["leader"] for region in regions}, f"routes {regions}"),
        *is_true(not any(region.get("copies") for region in regions), f"copies in {regions}"),
        *is_true({region["state"] for region in regions} == {"open"}, f"states in {regions}"),
        *is_true(not any(f"/{DRAINED}/" in root for root in left), f"left {left}"),
        *is_true(not are_open, f"open: {are_open}"),
        *is_true([len(some) for some in rows] == [2] * len(regions), f"rows {rows}"),
    ]


def _is_empty(end: End) -> list[str]:
    copies = [[node for node, _ in some] for some in roles(end, TABLE)]
    nodes = [
        {region["leader"], *some} for region, some in zip(end.regions(TABLE), copies, strict=True)
    ]
    return is_true(not any(DRAINED in some for some in nodes), f"on {nodes}")


DRAINING_SCENARIOS = (
    Scenario(
        "drain_node, with copies",
        "drain_node",
        DrainNode(node=DRAINED, reason="a new kernel"),
        with_room_for_copies,
        {FULL: drained},
        awaits_heartbeats=True,
        undone=sound,
    ),
    Scenario(
        "drain_node, with only copies",
        "drain_node",
        DrainNode(node=DRAINED, reason="a new kernel"),
        with_only_copies,
        {FULL: drained_of_only_copies},
        awaits_heartbeats=True,
        undone=sound_alone,
    ),
    Scenario(
        "drain_node, beside a dropped table",
        "drain_node",
        DrainNode(node=DRAINED, reason="a new kernel", dropped=DroppedTables.PURGE),
        with_a_dropped_table,
        {FULL: drained_and_purged},
        awaits_heartbeats=True,
        undone=sound_alone,
    ),
    Scenario(
        "drain_node, with a dropped table",
        "drain_node",
        DrainNode(node=DRAINED, reason="a new kernel", dropped=DroppedTables.MOVE),
        with_a_dropped_table_that_moves,
        {FULL: drained_with_dropped},
        awaits_heartbeats=True,
        undone=sound_alone,
    ),
)
