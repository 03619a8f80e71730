"""Lives of a node whose disk is gone and that has copies, of regions it leads and of others."""

from keys.store.kv import Compare
from procedures.kinds.failover.decommission_node import DecommissionNode
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.copied_ends import followers, roles, told
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    LEARNER,
    copied_info,
    copied_route,
    put_copied_table,
    with_copied_table,
)
from tests.procedures.harness.ends import OTHER, TABLE, End, is_true, serving, still_registered
from tests.procedures.harness.scenario import FULL, Scenario

DEAD = "dn-1"


async def with_copies_on_a_dead_node(cluster: Cluster, fence: Compare) -> None:
    """Table u beside table t: dn-1 has copies of its regions, one in sync and one a learner."""
    await with_copied_table(cluster, fence)
    copies = (((DEAD, IN_SYNC), ("dn-3", IN_SYNC)), ((DEAD, LEARNER), ("dn-2", IN_SYNC)))
    route = copied_route(OTHER, ("dn-2", "dn-3"), copies)
    await put_copied_table(cluster, fence, copied_info(OTHER, "u", 2, 3), route)
    cluster.plane.nodes[DEAD].die()


def released(end: End) -> list[str]:
    """The node is removed, and no route names it."""
    where = ("datanode", DEAD)
    removed = end.agreement.family("__removed-__node").get(where)
    nodes = {
        table: [[node for node, _ in some] for some in roles(end, table)]
        for table in (TABLE, OTHER)
    }
    leaders = [region["leader"] for table in (TABLE, OTHER) for region in end.regions(table)]
    return [
        *is_true(removed is not None and removed["removal"]["lost"], f"removed: {removed}"),
        *is_true(where not in end.agreement.family("__node"), "the node is registered"),
        *is_true(nodes[TABLE] == [[], ["dn-2"], []], f"copies of t on {nodes[TABLE]}"),
        *is_true(nodes[OTHER] == [["dn-3"], ["dn-2"]], f"copies of u on {nodes[OTHER]}"),
        *is_true(DEAD not in leaders, f"led by {leaders}"),
        *serving(end, TABLE, epoch=2),
        *serving(end, OTHER, epoch=1),
        *followers(end, OTHER, {"in-sync"}),
        *told(end, TABLE),
        *told(end, OTHER),
    ]


LEAVING_SCENARIOS = (
    Scenario(
        "decommission_node, with copies",
        "decommission_node",
        DecommissionNode(node=DEAD, reason="its disk is gone", by="anna"),
        with_copies_on_a_dead_node,
        {FULL: released},
        awaits_heartbeats=True,
        undone=still_registered,
    ),
)
