"""Lives of tables that are created while a node is dead, on which some regions were placed."""

from collections.abc import Sequence

from keys.store.kv import Compare
from procedures.kinds.tables.create_table import CreateTable
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.copied_ends import followers, roles, told
from tests.procedures.harness.copies.creating import NEW, OF_THREE, OF_TWO, creation, with_nodes
from tests.procedures.harness.ends import End, effects, is_true, no_rest, serving_at
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import NODES, table_info, table_route

DEAD = "dn-1"
ALONE = CreateTable(info=table_info(NEW, "new", 3), route=table_route(NEW, NODES))
"""Its first region was placed on the dead node."""


async def with_dead_node(cluster: Cluster, fence: Compare) -> None:
    await with_nodes(cluster, fence)
    cluster.plane.nodes[DEAD].die()


def _created(end: End, epochs: Sequence[int]) -> list[str]:
    return [
        *effects(end, "table.created"),
        *serving_at(end, NEW, epochs, rows=False),
        *followers(end, NEW, {"in-sync"}),
        *told(end, NEW),
        *no_rest(end),
        *is_true("public.new" in end.tables(), "no table"),
        *is_true(all(region["leader"] != DEAD for region in end.regions(NEW)), "a dead node leads"),
    ]


def created_elsewhere(end: End) -> list[str]:
    return _created(end, (2, 1, 1))


def led_by_another_copy(end: End) -> list[str]:
    """The dead node has a copy of each, as a learner that is to be made."""
    learners = [[node for node, role in some if role == "learner"] for some in roles(end, NEW)]
    return [*_created(end, (2, 1)), *is_true(learners == [[DEAD], [DEAD]], f"learners {learners}")]


def placed_anew(end: End) -> list[str]:
    """One living copy of two is no majority."""
    nodes = [{node for node, _ in some} for some in roles(end, NEW)]
    return [*_created(end, (2, 1)), *is_true(all(DEAD not in some for some in nodes), f"{nodes}")]


CREATING_ELSEWHERE_SCENARIOS = (
    Scenario(
        "create_table, a node has died",
        "create_table",
        ALONE,
        with_dead_node,
        {FULL: created_elsewhere},
    ),
    Scenario(
        "create_table with copies, a leader's node has died",
        "create_table",
        creation(OF_THREE),
        with_dead_node,
        {FULL: led_by_another_copy},
        awaits_heartbeats=True,
    ),
    Scenario(
        "create_table with two copies, a node has died",
        "create_table",
        creation(OF_TWO),
        with_dead_node,
        {FULL: placed_anew},
        awaits_heartbeats=True,
    ),
)
