"""A table with copies comes back while one of its leaders starts again."""

from keys.store.kv import Compare
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.serving import Opening
from tests.procedures.harness.copies.copied_tables import with_dropped_copied_table
from tests.procedures.kinds.copies.copy_lives import code_of, lives, regions
from tests.procedures.kinds.runs import undrop


async def with_a_leader_that_restarts(cluster: Cluster, fence: Compare) -> None:
    """The process of dn-1 ends behind its first opening, and is started again at once."""
    await with_dropped_copied_table(cluster, fence)
    leader = cluster.plane.nodes["dn-1"]
    leader.dies_at, leader.comes_back = Opening.MADE, True


def test_given_a_leader_that_starts_again_when_its_table_comes_back_then_all_regions_open() -> None:
    """It opens nothing at that epoch any more, and its node is never taken for dead."""
    (end,), cluster = lives(("undrop_table", undrop()), given=with_a_leader_that_restarts)

    assert code_of(end) is None
    assert [region["state"] for region in regions(cluster)] == ["open"] * 3
    assert cluster.plane.violations == []
