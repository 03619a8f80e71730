"""Lives of procedures that choose nodes by a placement's node filter, or by a partition group. A
node of these tests is alone in a zone of its name."""

from keys.commit.change import change
from keys.commit.txn import snapshot
from keys.model.log import PlacementAltered
from keys.model.placing.placements import NodeFilter, PlacementKey
from keys.store.kv import Compare
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.failover.failover_table import FailoverTable
from procedures.kinds.tables.truncate_table import TruncateTable
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.procedures.harness.ends import (
    OTHER,
    TABLE,
    End,
    begun_anew,
    failed_over,
    is_true,
    serving_at,
)
from tests.procedures.harness.placing.scenarios import (
    FAST,
    USES,
    with_both,
)
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import put_table, region_ids, table_info
from tests.procedures.kinds.memory_scenarios import MEMORY_SCENARIOS

ONLY = NodeFilter(zones=("dn-1", "dn-3"))
"""Without dn-2, which has room and would be the first by its name."""
LEADERS = ("dn-1", "dn-1", "dn-2")
"""The last region was placed before the filter was altered, and stays."""


async def with_filter(cluster: Cluster, fence: Compare) -> None:
    """Table t: two regions on dn-1, one on dn-2, in a placement that excludes dn-2 by now."""
    await with_both(cluster, fence)
    info = table_info(TABLE, "t", 3).model_copy(update=USES)
    await put_table(cluster, fence, info, LEADERS)
    found = await snapshot(cluster.kv, PlacementKey("fast"), deadline_ms=DEADLINE_MS)
    altered = FAST.model_copy(update={"version": 2, "node_filter": ONLY})
    await cluster.change(fence, change(found, PlacementAltered(info=altered)))


async def with_filter_and_dead_node(cluster: Cluster, fence: Compare) -> None:
    await with_filter(cluster, fence)
    cluster.plane.nodes["dn-1"].die()


async def with_group_and_dead_node(cluster: Cluster, fence: Compare) -> None:
    """Table t as before, without a filter; table u of the same tablespace has its first two regions
    on dn-2, which leads more than dn-3."""
    await with_both(cluster, fence)
    uses = {"format": 2, "tablespace_id": USES["tablespace_id"]}
    info = table_info(TABLE, "t", 3).model_copy(update=uses)
    await put_table(cluster, fence, info, LEADERS)
    other = table_info(OTHER, "u", 2).model_copy(update=uses)
    await put_table(cluster, fence, other, ("dn-2", "dn-2"))
    cluster.plane.nodes["dn-1"].die()


def inside(end: End) -> list[str]:
    """Moved to the one node that the filter allows; the region on dn-2 stays."""
    leaders = [region["leader"] for region in end.regions(TABLE)]
    return [
        *failed_over(end),
        *is_true(leaders == ["dn-3", "dn-3", "dn-2"], f"led by {leaders}"),
    ]


def _truncated(end: End, leaders: dict[str, int]) -> list[str]:
    """A leader that was elected a moment ago takes the node that is gone for alive, begins its
    regions anew there, and once more when it has found out."""
    cuts = min(end.regions(TABLE)[0]["epoch"] - 1, 2)
    return [
        *begun_anew(end, leaders, changes=cuts + 1),
        *serving_at(end, TABLE, (cuts + 1, cuts + 1, 2), rows=False),
    ]


def truncated_inside(end: End) -> list[str]:
    return _truncated(end, {"dn-2": 1, "dn-3": 2})


def truncated_beside(end: End) -> list[str]:
    """The regions of dn-1 went to their groups."""
    return _truncated(end, {"dn-2": 3})


TRUNCATE = TruncateTable(catalog="main", schema_name="public", name="t", table_id=TABLE)
FILTER_SCENARIOS = (
    Scenario(
        "failover_table, node filter",
        "failover_table",
        FailoverTable(
            table_id=TABLE,
            name="main.public.t",
            source="dn-1",
            region_ids=region_ids(TABLE, 2),
            reason="test",
        ),
        with_filter_and_dead_node,
        {FULL: inside},
    ),
    Scenario(
        "failover_node, drain by a node filter",
        "failover_node",
        FailoverNode(node="dn-1", reason="test"),
        with_filter,
        {FULL: inside},
    ),
    Scenario(
        "truncate_table, node filter",
        "truncate_table",
        TRUNCATE,
        with_filter_and_dead_node,
        {FULL: truncated_inside},
    ),
    Scenario(
        "truncate_table, partition group",
        "truncate_table",
        TRUNCATE,
        with_group_and_dead_node,
        {FULL: truncated_beside},
    ),
)
ON_NODES = (*MEMORY_SCENARIOS, *FILTER_SCENARIOS)
"""Lives that end by which nodes there are."""
