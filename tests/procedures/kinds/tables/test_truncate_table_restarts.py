"""A table is truncated while the process of one of its leaders starts again."""

from keys.store.kv import Compare
from procedures.kinds.failover.failover_table import FailoverTable
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.serving import Opening
from tests.procedures.harness.copies.copied_tables import (
    LEARNER,
    copied_info,
    copied_route,
    put_copied_table,
)
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import TRUNCATE
from tests.procedures.harness.tables import put_schema, region_ids, reserve_ids
from tests.procedures.kinds.copies.copy_lives import code_of, lives, regions


async def with_a_leader_that_restarts(cluster: Cluster, fence: Compare) -> None:
    """dn-1 is alone in the set of a region; its process ends as its empty root is granted a lease,
    and is started again at once."""
    cluster.plane.add("dn-1", "dn-2", "dn-3")
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1",), ((("dn-2", LEARNER),),))
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 1, 2), route)
    leader = cluster.plane.nodes["dn-1"]
    leader.dies_at, leader.comes_back = Opening.ANNOUNCED, True


def test_given_a_leader_alone_that_starts_again_when_truncated_then_a_failover_opens_it() -> None:
    """It opens nothing at that epoch any more, and its failover waits for the truncate."""
    (region_id,) = region_ids(TABLE, 1)
    failover = FailoverTable(
        table_id=TABLE, name="t", source="dn-1", region_ids=(region_id,), reason="started again"
    )

    ends, cluster = lives(
        ("truncate_table", TRUNCATE),
        ("failover_table", failover),
        given=with_a_leader_that_restarts,
    )

    assert list(map(code_of, ends)) == [None, None]
    (region,) = regions(cluster)
    assert (region["leader"], region["state"], region["epoch"]) == ("dn-1", "open", 3)
    assert cluster.plane.violations == []
