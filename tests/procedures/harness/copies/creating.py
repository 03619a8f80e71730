"""Lives of tables that are created with copies: what is asked for, and how it may end."""

from keys.model.records import ProcedureOutcome
from keys.store.kv import Compare
from metasrv_base.errors import Refused
from procedures.kinds.batch.batch import CommandBatch
from procedures.kinds.batch.members import Change
from procedures.kinds.tables.create_table import CreateTable
from procedures.ports import TransactionLimits
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.copied_ends import followers, roles, told
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    Copies,
    copied_info,
    copied_route,
)
from tests.procedures.harness.ends import (
    End,
    effects,
    is_true,
    knows_floor,
    no_rest,
    nothing,
    serving,
)
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import NODES, put_schema, reserve_ids

NEW = 1090
LEADERS = ("dn-1", "dn-2")
OF_THREE: tuple[Copies, ...] = (
    (("dn-2", IN_SYNC), ("dn-3", IN_SYNC)),
    (("dn-1", IN_SYNC), ("dn-3", IN_SYNC)),
)
OF_TWO: tuple[Copies, ...] = ((("dn-2", IN_SYNC),), (("dn-3", IN_SYNC),))
COPY_NODES = ([["dn-2", "dn-3"], ["dn-1", "dn-3"]], [["dn-2"], ["dn-3"]])
UNDONE = {ProcedureOutcome.ROLLED_BACK: nothing, ProcedureOutcome.FAILED: nothing}
SMALL = TransactionLimits(operations=3)


def creation(copies: tuple[Copies, ...]) -> CreateTable:
    replicas = len(copies[0]) + 1
    info = copied_info(NEW, "new", len(LEADERS), replicas)
    return CreateTable(info=info, route=copied_route(NEW, LEADERS, copies))


BATCH = CommandBatch(
    members=(Change(kind="create_table", state=creation(OF_THREE).model_dump(mode="json")),)
)


async def with_nodes(cluster: Cluster, fence: Compare) -> None:
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")


async def with_dn_3_refusing(cluster: Cluster, fence: Compare) -> None:
    await with_nodes(cluster, fence)
    cluster.plane.nodes["dn-3"].refuses["create"] = Refused("invalid-request", reason="test")


async def with_dn_2_refusing(cluster: Cluster, fence: Compare) -> None:
    await with_nodes(cluster, fence)
    cluster.plane.nodes["dn-2"].refuses["create"] = Refused("invalid-request", reason="test")


def created_with_copies(end: End) -> list[str]:
    """Every region has a set of a majority, and those of the set follow it; who did not answer is a
    learner."""
    sets = [sum(role == "in-sync" for _, role in some) for some in roles(end, NEW)]
    nodes = [[node for node, _ in some] for some in roles(end, NEW)]
    return [
        *effects(end, "table.created"),
        *serving(end, NEW, epoch=1, rows=False),
        *is_true(all(count >= 1 for count in sets), f"sets without a majority: {sets}"),
        *is_true(nodes in COPY_NODES, f"copies on {nodes}"),
        *followers(end, NEW, {"in-sync"}),
        *told(end, NEW),
        *knows_floor(end, NEW, above=0),
        *no_rest(end),
        *is_true("public.new" in end.tables(), "no table"),
    ]


def created_without_dn_3(end: End) -> list[str]:
    learners = [[node for node, role in some if role == "learner"] for some in roles(end, NEW)]
    return [
        *created_with_copies(end),
        *is_true(all("dn-3" in some for some in learners), f"learners {learners}"),
    ]


CREATING_SCENARIOS = (
    Scenario(
        "create_table, with copies",
        "create_table",
        creation(OF_THREE),
        with_nodes,
        {FULL: created_with_copies},
        awaits_heartbeats=True,
        undone=nothing,
    ),
    Scenario(
        "create_table, with two copies",
        "create_table",
        creation(OF_TWO),
        with_nodes,
        {FULL: created_with_copies},
        awaits_heartbeats=True,
        undone=nothing,
    ),
    Scenario(
        "create_table, a copy refuses",
        "create_table",
        creation(OF_THREE),
        with_dn_3_refusing,
        {FULL: created_without_dn_3, **UNDONE},
        awaits_heartbeats=True,
        deadline_ms=5_000,
    ),
    Scenario(
        "create_table, no majority",
        "create_table",
        creation(OF_TWO),
        with_dn_3_refusing,
        UNDONE,
        deadline_ms=500,
    ),
    Scenario(
        "create_table with copies, a leader refuses",
        "create_table",
        creation(OF_THREE),
        with_dn_2_refusing,
        UNDONE,
        deadline_ms=500,
    ),
    Scenario(
        "create_table with copies, cancelled as it commits",
        "create_table",
        creation(OF_THREE),
        with_nodes,
        {FULL: created_with_copies, ProcedureOutcome.CANCELLED: nothing},
        cancel_after_ms=0,
        awaits_heartbeats=True,
    ),
    Scenario(
        "batch, a copy refuses",
        "batch",
        BATCH,
        with_dn_3_refusing,
        {FULL: created_without_dn_3, **UNDONE},
        awaits_heartbeats=True,
        deadline_ms=5_000,
    ),
    Scenario(
        "batch in parts, a copy refuses",
        "batch",
        BATCH,
        with_dn_3_refusing,
        {FULL: created_without_dn_3, **UNDONE},
        one_transaction=SMALL,
        awaits_heartbeats=True,
        deadline_ms=5_000,
    ),
)
