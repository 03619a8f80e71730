"""Lives of tables with copies that are truncated, and how they may end."""

from keys.store.kv import Compare
from metasrv_base.errors import Refused
from procedures.kinds.tables.truncate_table import TruncateTable
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.copied_ends import followers, roles, told
from tests.procedures.harness.copies.copied_tables import (
    with_copied_table,
    with_copied_table_and_dead_node,
)
from tests.procedures.harness.ends import TABLE, End, is_true, knows_floor, no_rest, serving_at
from tests.procedures.harness.scenario import FULL, Scenario

TRUNCATE = TruncateTable(catalog="main", schema_name="public", name="t", table_id=TABLE)


async def with_dn_3_refusing(cluster: Cluster, fence: Compare) -> None:
    await with_copied_table(cluster, fence)
    cluster.plane.nodes["dn-3"].refuses["create"] = Refused("invalid-request", reason="test")


def begun_anew(end: End) -> list[str]:
    """Every region is empty, at its leader and in the folders of its set; nothing of before is
    left; who is in the set was in it."""
    regions = end.regions(TABLE)
    epochs = [region["epoch"] for region in regions]
    folders = end.cluster.plane.storage.folders
    of_sets = [
        copy["root"]
        for region in regions
        for copy in region.get("copies", ())
        if copy["role"] == "in-sync"
    ]
    rows = {root: dict(folders[root].files) for root in of_sets if folders[root].files}
    at_leaders = [end.cluster.plane.rows(region["region_id"]) for region in regions]
    return [
        *serving_at(end, TABLE, epochs, rows=False),
        *followers(end, TABLE, {"in-sync"}),
        *told(end, TABLE),
        *is_true(min(epochs) > 1, f"epochs {epochs}"),
        *is_true(not rows, f"rows at copies: {rows}"),
        *is_true(at_leaders == [frozenset()] * 3, f"rows {at_leaders}"),
        *knows_floor(end, TABLE),
        *(left for left in no_rest(end) if not is_of_dead(end, left)),
    ]


def is_of_dead(end: End, left: str) -> bool:
    """Whether it is a folder of a node that is dead, which nobody else deletes."""
    nodes = end.cluster.plane.nodes.values()
    return any(f" {node.root}/" in left for node in nodes if not node.alive)


def truncated(end: End) -> list[str]:
    """No one changes its place: who did not answer is a learner."""
    leaders = [region["leader"] for region in end.regions(TABLE)]
    nodes = [[node for node, _ in some] for some in roles(end, TABLE)]
    learner = dict(roles(end, TABLE)[1]).get("dn-2")
    return [
        *begun_anew(end),
        *is_true(leaders == ["dn-1"] * 3, f"led by {leaders}"),
        *is_true(nodes == [["dn-2"], ["dn-2", "dn-3"], []], f"copies on {nodes}"),
        *is_true(learner == "learner", f"dn-2 is {learner} of the second region"),
    ]


def truncated_elsewhere(end: End) -> list[str]:
    """Copies of the sets lead where the leader is gone, which is a learner."""
    leaders = [region["leader"] for region in end.regions(TABLE)]
    of_first, of_second = (dict(some) for some in roles(end, TABLE)[:2])
    return [
        *begun_anew(end),
        *is_true(leaders[:2] == ["dn-2", "dn-3"], f"led by {leaders}"),
        *is_true(of_first == {"dn-1": "learner"}, f"copies {of_first}"),
        *is_true(of_second == {"dn-1": "learner", "dn-2": "learner"}, f"copies {of_second}"),
    ]


TRUNCATING_SCENARIOS = (
    Scenario(
        "truncate_table, with copies",
        "truncate_table",
        TRUNCATE,
        with_copied_table,
        {FULL: truncated},
        awaits_heartbeats=True,
    ),
    Scenario(
        "truncate_table, a copy refuses",
        "truncate_table",
        TRUNCATE,
        with_dn_3_refusing,
        {FULL: truncated},
        awaits_heartbeats=True,
    ),
    Scenario(
        "truncate_table with copies, node gone",
        "truncate_table",
        TRUNCATE,
        with_copied_table_and_dead_node,
        {FULL: truncated_elsewhere},
        awaits_heartbeats=True,
    ),
)
