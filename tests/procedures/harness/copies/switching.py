"""Lives of planned switches of leaders, and how they may end."""

from keys.model.records import ProcedureOutcome
from keys.store.kv import Compare
from metasrv_base.errors import Refused, Unavailable
from procedures.kinds.failover.switch_leader import SwitchLeader
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.serving import Opening
from tests.procedures.harness.copies.copied_ends import BEFORE, following, roles, told
from tests.procedures.harness.copies.copied_tables import with_copied_table
from tests.procedures.harness.ends import TABLE, End, effects, is_true, no_rest, serving_at
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import region_ids

FIRST, SECOND, THIRD = region_ids(TABLE, 3)
SWITCH = SwitchLeader(
    table_id=TABLE, name="main.public.t", region_id=SECOND, reason="test", epoch=1
)


async def with_a_leader_that_refuses(cluster: Cluster, fence: Compare) -> None:
    """As one that does not know the order."""
    await with_copied_table(cluster, fence)
    cluster.plane.nodes["dn-1"].refuses["hand-over"] = Refused("invalid-request")


async def with_a_copy_that_lacks_records(cluster: Cluster, fence: Compare) -> None:
    await with_copied_table(cluster, fence)
    cluster.plane.nodes["dn-1"].refuses["hand-over"] = Unavailable("not-ready")


async def with_a_next_leader_that_restarts(cluster: Cluster, fence: Compare) -> None:
    """The process of dn-3 ends behind its first opening, and is started again at once."""
    await with_copied_table(cluster, fence)
    next_leader = cluster.plane.nodes["dn-3"]
    next_leader.dies_at, next_leader.comes_back = Opening.MADE, True


def held(end: End) -> list[str]:
    """Regions whose leaders make writes wait."""
    return [
        region
        for node in end.cluster.plane.nodes.values()
        for region, serving in node.serving.items()
        if serving.holds
    ]


def switched(end: End) -> list[str]:
    """The copy in sync leads, the former leader is in sync, the learner is one."""
    leaders = [region["leader"] for region in end.regions(TABLE)]
    copies = [BEFORE[0], [("dn-1", "in-sync"), ("dn-2", "learner")], BEFORE[2]]
    return [
        *effects(end, "route.changed", "route.changed"),
        *serving_at(end, TABLE, (1, 2, 1)),
        *following(end, TABLE),
        *told(end, TABLE),
        *is_true(leaders == ["dn-1", "dn-3", "dn-1"], f"led by {leaders}"),
        *is_true(roles(end, TABLE) == copies, f"copies {roles(end, TABLE)}"),
        *is_true(not held(end), f"writes wait: {held(end)}"),
        *no_rest(end),
    ]


def led_again(end: End) -> list[str]:
    """The former leader leads again, one epoch on; the copy that started again stays in the set,
    which has no other."""
    leaders = [region["leader"] for region in end.regions(TABLE)]
    copies = [BEFORE[0], [("dn-2", "learner"), ("dn-3", "in-sync")], BEFORE[2]]
    return [
        *serving_at(end, TABLE, (1, 3, 1)),
        *following(end, TABLE),
        *told(end, TABLE),
        *is_true(leaders == ["dn-1"] * 3, f"led by {leaders}"),
        *is_true([sorted(some) for some in roles(end, TABLE)] == copies, f"{roles(end, TABLE)}"),
        *is_true(not held(end), f"writes wait: {held(end)}"),
        *no_rest(end),
    ]


def led_on(end: End) -> list[str]:
    """Nothing has changed, and no write waits."""
    return [
        *serving_at(end, TABLE, (1, 1, 1)),
        *following(end, TABLE),
        *told(end, TABLE),
        *is_true(roles(end, TABLE) == BEFORE, f"copies {roles(end, TABLE)}"),
        *no_rest(end),
    ]


SWITCHING_SCENARIOS = (
    Scenario(
        "switch_leader",
        "switch_leader",
        SWITCH,
        with_copied_table,
        {FULL: switched},
        awaits_heartbeats=True,
        undone=led_on,
    ),
    Scenario(
        "switch_leader, the next leader starts again",
        "switch_leader",
        SWITCH,
        with_a_next_leader_that_restarts,
        {FULL: led_again},
        awaits_heartbeats=True,
        undone=led_on,
    ),
    Scenario(
        "switch_leader, the leader refuses",
        "switch_leader",
        SWITCH,
        with_a_leader_that_refuses,
        {ProcedureOutcome.ROLLED_BACK: led_on},
        awaits_heartbeats=True,
        undone=led_on,
    ),
    Scenario(
        "switch_leader, a copy lacks records",
        "switch_leader",
        SWITCH,
        with_a_copy_that_lacks_records,
        {ProcedureOutcome.ROLLED_BACK: led_on},
        deadline_ms=2_000,
        awaits_heartbeats=True,
        undone=led_on,
    ),
    Scenario(
        "switch_leader, cancelled",
        "switch_leader",
        SWITCH,
        with_a_copy_that_lacks_records,
        {ProcedureOutcome.CANCELLED: led_on, ProcedureOutcome.ROLLED_BACK: led_on},
        cancel_after_ms=500,
        deadline_ms=5_000,
        awaits_heartbeats=True,
        undone=led_on,
    ),
)
