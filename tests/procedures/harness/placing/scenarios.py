"""Lives of the kinds of placements and tablespaces, to be crashed anywhere."""

from keys.commit.change import change
from keys.model.log import PlacementCreated, TablespaceCreated
from keys.model.placing.placements import NodeFilter, PlacementInfo, PlacementKey, StorageProfile
from keys.model.placing.tablespaces import TablespaceInfo, TablespaceKey
from keys.model.records import ProcedureOutcome
from keys.store.kv import Compare
from procedures.commands.placement_commands import PlacementChanges
from procedures.kinds.batch.batch import CommandBatch
from procedures.kinds.batch.members import Miss
from procedures.kinds.namespaces.placements import (
    AlterPlacement,
    CreatePlacement,
    DropPlacement,
    RenamePlacement,
)
from procedures.kinds.namespaces.tablespaces import (
    AlterTablespace,
    CreateTablespace,
    DropTablespace,
    RenameTablespace,
)
from procedures.kinds.tables.create_table import CreateTable
from procedures.kinds.tables.undrop_table import UndropTable
from tests.fakes.cluster import Cluster
from tests.keys.commit.changes import absent
from tests.procedures.harness.batches.batches import change as change_of
from tests.procedures.harness.batches.batches import drop, in_one_version, said
from tests.procedures.harness.ends import (
    TABLE,
    End,
    created,
    effects,
    is_true,
    no_rest,
    nothing,
    undropped,
)
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import (
    NODES,
    drop_table_keys,
    put_table,
    reserve_ids,
    table_info,
    table_route,
)

FAST = PlacementInfo(
    placement_id=1031,
    name="fast",
    storage_profiles=(StorageProfile(name="hot", engine="lsm"),),
    created_at_ms=1,
)
ORDERS = TablespaceInfo(tablespace_id=1031, catalog="main", name="orders", created_at_ms=1)
REFUSED = {ProcedureOutcome.ROLLED_BACK: nothing, ProcedureOutcome.FAILED: nothing}
RENAMED = RenamePlacement(name="fast", placement_id=1031, new_name="slow")
USES = {"format": 2, "placement_id": 1031, "storage_profile": "hot", "tablespace_id": 1031}


async def empty(cluster: Cluster, fence: Compare) -> None:
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)


async def with_both(cluster: Cluster, fence: Compare) -> None:
    """The placement `fast` and the tablespace `main.orders`."""
    await empty(cluster, fence)
    keys = absent(PlacementKey("fast"), TablespaceKey("main", "orders"))
    entries = (PlacementCreated(info=FAST), TablespaceCreated(info=ORDERS))
    await cluster.change(fence, change(keys, *entries))


async def with_user(cluster: Cluster, fence: Compare) -> None:
    """And a table that uses both."""
    await with_both(cluster, fence)
    info = table_info(TABLE, "t", 1).model_copy(update=USES)
    await put_table(cluster, fence, info, ("dn-1",))


def altered(end: End) -> list[str]:
    info = end.agreement.family("__placement")[("fast",)]
    return [
        *effects(end, "placement.altered"),
        *is_true((info["version"], info["comment"]) == (2, "c"), f"{info}"),
    ]


def renamed(end: End) -> list[str]:
    """Its table has it as before."""
    (table,) = end.tables().values()
    placements = set(end.agreement.family("__placement"))
    return [
        *effects(end, "placement.renamed"),
        *is_true(placements == {("default",), ("slow",)}, f"{placements}"),
        *is_true(table["placement_id"] == 1031, f"{table}"),
    ]


def space_renamed(end: End) -> list[str]:
    spaces = set(end.agreement.family("__tablespace"))
    wanted = {("main", "default"), ("main", "o")}
    return [*effects(end, "tablespace.renamed"), *is_true(spaces == wanted, f"{spaces}")]


SWAPPED = CommandBatch(
    members=(
        change_of("rename_placement", RENAMED),
        drop(TABLE, "t"),
        change_of(
            "drop_tablespace", DropTablespace(catalog="main", name="orders", tablespace_id=1031)
        ),
        change_of("drop_placement", DropPlacement(name="slow", placement_id=1031)),
        change_of(
            "create_placement",
            CreatePlacement(info=FAST.model_copy(update={"placement_id": 1040})),
        ),
        Miss(kind="drop_tablespace", name="main.x", id=None),
    )
)
"""Objects that the table uses go with it, and the name of one is taken at once."""


def swapped(end: End) -> list[str]:
    (ids,) = [
        info["placement_id"]
        for name, info in end.agreement.family("__placement").items()
        if name == ("fast",)
    ]
    ops = ("placement.renamed", "table.altered", "tablespace.dropped", "placement.dropped")
    return [
        *effects(end, *ops, "placement.created", "table.dropped"),
        *is_true(ids == 1040, f"placement {ids}"),
        *is_true(not end.tables(), f"tables {end.tables()}"),
        *in_one_version(end, 5),
        *said(end, [True] * 5 + [False]),
        *no_rest(end),
    ]


PLACED = CreateTable(
    info=table_info(1090, "new", 3).model_copy(update=USES),
    route=table_route(1090, NODES),
    placement="fast",
    tablespace="orders",
)
BACK = UndropTable(
    table_id=TABLE,
    catalog="main",
    schema_name="public",
    old_name="t",
    new_name="t",
    placement="fast",
    tablespace="orders",
)


async def with_dropped_user(cluster: Cluster, fence: Compare) -> None:
    await with_user(cluster, fence)
    await drop_table_keys(cluster, fence, TABLE)


PLACING_SCENARIOS = (
    Scenario("create_table, placed", "create_table", PLACED, with_both, {FULL: created}),
    Scenario(
        "create_table, placement gone",
        "create_table",
        PLACED,
        empty,
        REFUSED,
    ),
    Scenario("undrop_table, placed", "undrop_table", BACK, with_dropped_user, {FULL: undropped}),
    Scenario("batch, of placements", "batch", SWAPPED, with_user, {FULL: swapped}),
    Scenario(
        "create_placement",
        "create_placement",
        CreatePlacement(info=FAST),
        empty,
        {FULL: lambda end: effects(end, "placement.created")},
    ),
    Scenario(
        "create_placement, name taken",
        "create_placement",
        CreatePlacement(info=FAST.model_copy(update={"placement_id": 1040})),
        with_both,
        REFUSED,
    ),
    Scenario(
        "alter_placement",
        "alter_placement",
        AlterPlacement(
            name="fast",
            placement_id=1031,
            changes=PlacementChanges(
                comment="c",
                node_filter=NodeFilter(zones=("a",)),
                storage_profiles=(
                    *FAST.storage_profiles,
                    StorageProfile(name="cold", engine="lsm"),
                ),
            ),
        ),
        with_user,
        {FULL: altered},
    ),
    Scenario(
        "rename_placement",
        "rename_placement",
        RENAMED,
        with_user,
        {FULL: renamed},
    ),
    Scenario(
        "drop_placement",
        "drop_placement",
        DropPlacement(name="fast", placement_id=1031),
        with_both,
        {FULL: lambda end: effects(end, "placement.dropped")},
    ),
    Scenario(
        "drop_placement, in use",
        "drop_placement",
        DropPlacement(name="fast", placement_id=1031),
        with_user,
        REFUSED,
    ),
    Scenario(
        "create_tablespace",
        "create_tablespace",
        CreateTablespace(info=ORDERS),
        empty,
        {FULL: lambda end: effects(end, "tablespace.created")},
    ),
    Scenario(
        "alter_tablespace",
        "alter_tablespace",
        AlterTablespace(catalog="main", name="orders", tablespace_id=1031, comment="c"),
        with_both,
        {FULL: lambda end: effects(end, "tablespace.altered")},
    ),
    Scenario(
        "rename_tablespace",
        "rename_tablespace",
        RenameTablespace(catalog="main", name="orders", tablespace_id=1031, new_name="o"),
        with_user,
        {FULL: space_renamed},
    ),
    Scenario(
        "drop_tablespace",
        "drop_tablespace",
        DropTablespace(catalog="main", name="orders", tablespace_id=1031),
        with_both,
        {FULL: lambda end: effects(end, "tablespace.dropped")},
    ),
    Scenario(
        "drop_tablespace, in use",
        "drop_tablespace",
        DropTablespace(catalog="main", name="orders", tablespace_id=1031),
        with_user,
        REFUSED,
    ),
)
