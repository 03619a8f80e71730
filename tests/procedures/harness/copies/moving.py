"""Lives of moves of copies, and how they may end."""

from collections.abc import Sequence

from keys.model.records import ProcedureOutcome
from keys.store.kv import Compare
from metasrv_base.errors import Refused
from procedures.kinds.moves.copy_move import MoveCopy
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.copied_ends import BEFORE, following, roles, told
from tests.procedures.harness.copies.copied_tables import with_copied_table
from tests.procedures.harness.copies.switching import held
from tests.procedures.harness.ends import TABLE, Check, End, is_true, no_rest, serving_at
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import region_ids

FIRST, SECOND, THIRD = region_ids(TABLE, 3)
CANCELLED = (ProcedureOutcome.CANCELLED, ProcedureOutcome.ROLLED_BACK)


def move(region: str, from_node: str, to_node: str) -> MoveCopy:
    return MoveCopy(
        table_id=TABLE,
        name="main.public.t",
        region_id=region,
        from_node=from_node,
        root=f"/disks/{from_node}/regions/{region}-1",
        to_node=to_node,
        reason="test",
    )


async def with_joining_copies(cluster: Cluster, fence: Compare) -> None:
    """Learners of two regions join once they follow."""
    await with_copied_table(cluster, fence)
    cluster.plane.joining |= {FIRST, THIRD}


async def with_a_learner_that_joins(cluster: Cluster, fence: Compare) -> None:
    """The learner on dn-2 has no folder: it joins once it was made anew."""
    await with_copied_table(cluster, fence)
    cluster.plane.joining.add(SECOND)
    cluster.plane.nodes["dn-2"].following.pop(SECOND)
    cluster.plane.storage.folders.pop(f"/disks/dn-2/regions/{SECOND}-1")


async def with_a_leader_that_stays(cluster: Cluster, fence: Compare) -> None:
    """As one that does not know the order by which another leads."""
    await with_joining_copies(cluster, fence)
    cluster.plane.nodes["dn-1"].refuses["hand-over"] = Refused("invalid-request")


def copies_at(
    end: End, leaders: Sequence[str], copies: Sequence[Sequence[tuple[str, str]]]
) -> list[str]:
    """The regions are led by *leaders* and have *copies* beside them, with all rows; nothing else
    is left, and no write waits."""
    regions = end.regions(TABLE)
    led = [region["leader"] for region in regions]
    return [
        *serving_at(end, TABLE, [region["epoch"] for region in regions]),
        *following(end, TABLE),
        *told(end, TABLE),
        *is_true(led == list(leaders), f"led by {led}"),
        *is_true(roles(end, TABLE) == list(map(list, copies)), f"copies {roles(end, TABLE)}"),
        *is_true(not held(end), f"writes wait: {held(end)}"),
        *no_rest(end),
    ]


def moved(end: End) -> list[str]:
    return copies_at(end, ["dn-1"] * 3, [[("dn-3", "in-sync")], *BEFORE[1:]])


def moved_with_the_lead(end: End) -> list[str]:
    leaders = ["dn-3", "dn-1", "dn-1"]
    copies = [[("dn-2", "in-sync")], *BEFORE[1:]]
    if end.regions(TABLE)[0]["leader"] == "dn-2":  # the switch to dn-3 had failed
        leaders, copies = ["dn-2", "dn-1", "dn-1"], [[("dn-3", "in-sync")], *BEFORE[1:]]
    return copies_at(end, leaders, copies)


def moved_to_the_learner(end: End) -> list[str]:
    return copies_at(end, ["dn-1"] * 3, [BEFORE[0], [("dn-2", "in-sync")], BEFORE[2]])


def moved_alone(end: End) -> list[str]:
    return copies_at(end, ["dn-1", "dn-1", "dn-2"], [*BEFORE[:2], []])


def not_moved(end: End) -> list[str]:
    """The copies are those of before, and the same node leads."""
    return copies_at(end, ["dn-1"] * 3, BEFORE)


def not_moved_nor_learned(end: End) -> list[str]:
    """The copies are those of before; a learner that was to be made anew may be gone."""
    copies = [BEFORE[0], [("dn-3", "in-sync")], BEFORE[2]]
    if roles(end, TABLE)[1] == BEFORE[1]:
        return is_true(roles(end, TABLE) == BEFORE, f"copies {roles(end, TABLE)}")
    return copies_at(end, ["dn-1"] * 3, copies)


def scenario(
    name: str, state: MoveCopy, ends: dict[ProcedureOutcome, Check], undone: Check = not_moved
) -> Scenario:
    given = with_joining_copies if state.region_id != SECOND else with_a_learner_that_joins
    return Scenario(name, "move_copy", state, given, ends, awaits_heartbeats=True, undone=undone)


MOVING_SCENARIOS = (
    scenario("move_copy", move(FIRST, "dn-2", "dn-3"), {FULL: moved}),
    scenario("move_copy, of the leader", move(FIRST, "dn-1", "dn-3"), {FULL: moved_with_the_lead}),
    scenario("move_copy, of the only copy", move(THIRD, "dn-1", "dn-2"), {FULL: moved_alone}),
    scenario(
        "move_copy, to a learner",
        move(SECOND, "dn-3", "dn-2"),
        {FULL: moved_to_the_learner},
        not_moved_nor_learned,
    ),
    Scenario(
        "move_copy, cancelled",
        "move_copy",
        move(FIRST, "dn-2", "dn-3"),
        with_copied_table,
        dict.fromkeys(CANCELLED, not_moved),
        cancel_after_ms=5_000,
        deadline_ms=20_000,
        awaits_heartbeats=True,
        undone=not_moved,
    ),
    Scenario(
        "move_copy, the leader refuses to hand over",
        "move_copy",
        move(FIRST, "dn-1", "dn-3"),
        with_a_leader_that_stays,
        dict.fromkeys(CANCELLED, not_moved),
        cancel_after_ms=10_000,
        deadline_ms=40_000,
        awaits_heartbeats=True,
        undone=not_moved,
    ),
)
