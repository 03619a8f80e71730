"""Lives of moves of regions of dropped tables, and how they may end."""

from collections.abc import Sequence
from typing import Any

from keys.model.records import ProcedureOutcome
from keys.store.kv import Compare
from procedures.kinds.moves.dropped_move import MoveDropped
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.copied_ends import BEFORE
from tests.procedures.harness.copies.copied_tables import with_dropped_copied_table
from tests.procedures.harness.ends import TABLE, Check, End, is_true, no_rest
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import region_ids

FIRST, SECOND, THIRD = region_ids(TABLE, 3)
CANCELLED = (ProcedureOutcome.CANCELLED, ProcedureOutcome.ROLLED_BACK)


def move(region: str, from_node: str, to_node: str) -> MoveDropped:
    return MoveDropped(
        table_id=TABLE,
        name="main.public.t",
        dropped_by="test",
        region_id=region,
        from_node=from_node,
        root=f"/disks/{from_node}/regions/{region}-1",
        to_node=to_node,
        reason="test",
    )


async def with_dropped_table_that_joins(cluster: Cluster, fence: Compare) -> None:
    """Table t is dropped; learners that are added to it join."""
    await with_dropped_copied_table(cluster, fence)
    cluster.plane.joining |= {FIRST, SECOND, THIRD}


def left_of(end: End) -> list[dict[str, Any]]:
    """The regions of the dropped table."""
    (removed,) = end.agreement.family("__removed-__table_route").values()
    regions: list[dict[str, Any]] = removed["route"]["region_routes"]
    return regions


def asleep(
    end: End, leaders: Sequence[str], copies: Sequence[Sequence[tuple[str, str]]]
) -> list[str]:
    """The table is dropped, led by *leaders* with *copies* beside them, each in sync with all rows;
    nothing is open, and no other folder is left."""
    regions, folders = left_of(end), end.cluster.plane.storage.folders
    named = [[region, *region.get("copies", ())] for region in regions]
    roots = {each["root"] for some in named for each in some}
    in_sync = {each["root"] for some in named for each in some if each.get("role") != "learner"}
    rows = {root: len(folders[root].rows) for root in in_sync if root in folders}
    held = [
        sorted((copy["node"], copy["role"]) for copy in region.get("copies", ()))
        for region in regions
    ]
    nodes = end.cluster.plane.nodes.values()
    opened = [(node.node_id, *node.serving, *node.following) for node in nodes]
    led = [region["leader"] for region in regions]
    return [
        *is_true(not end.tables(), "the table is there"),
        *is_true(led == list(leaders), f"led by {led}"),
        *is_true(held == list(map(list, copies)), f"copies {held}"),
        *is_true({region["state"] for region in regions} == {"open"}, f"states of {regions}"),
        *is_true(rows == dict.fromkeys(in_sync, 2), f"rows {rows}"),
        *is_true(set(folders) == roots, f"folders {sorted(folders)} for {sorted(roots)}"),
        *is_true(all(len(some) == 1 for some in opened), f"open: {opened}"),
        *is_true(not end.cluster.plane.leases, f"leases {end.cluster.plane.leases}"),
        *no_rest(end),
    ]


def moved(end: End) -> list[str]:
    return asleep(end, ["dn-1", "dn-1", "dn-2"], BEFORE)


def moved_a_copy(end: End) -> list[str]:
    return asleep(end, ["dn-1"] * 3, [[("dn-3", "in-sync")], *BEFORE[1:]])


def not_moved(end: End) -> list[str]:
    """The region is where it was."""
    return asleep(end, ["dn-1"] * 3, BEFORE)


def not_moved_back(end: End) -> list[str]:
    """Or the new copy leads, and the source is a copy in sync beside it."""
    third = left_of(end)[2]
    if third["leader"] == "dn-2":
        return asleep(end, ["dn-1", "dn-1", "dn-2"], [*BEFORE[:2], [("dn-1", "in-sync")]])
    return not_moved(end)


def scenario(name: str, state: MoveDropped, check: Check) -> Scenario:
    given = with_dropped_table_that_joins
    undone = not_moved_back
    return Scenario(
        name, "move_dropped", state, given, {FULL: check}, awaits_heartbeats=True, undone=undone
    )


MOVING_DROPPED_SCENARIOS = (
    scenario("move_dropped", move(THIRD, "dn-1", "dn-2"), moved),
    scenario("move_dropped, of a copy", move(FIRST, "dn-2", "dn-3"), moved_a_copy),
    Scenario(
        "move_dropped, cancelled",
        "move_dropped",
        move(THIRD, "dn-1", "dn-2"),
        with_dropped_copied_table,
        dict.fromkeys(CANCELLED, not_moved),
        cancel_after_ms=5_000,
        deadline_ms=20_000,
        awaits_heartbeats=True,
        undone=not_moved,
    ),
)
