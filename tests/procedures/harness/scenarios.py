"""One life of each kind, to be crashed anywhere: what is there, what is asked, how it may end."""

from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.records import ProcedureOutcome
from keys.store.kv import Compare
from metasrv_base.errors import Refused
from procedures.kinds.alter.alter_operations import RenameColumnOperation, SetOptionsOperation
from procedures.kinds.alter.alter_table import WAIT_MS, AlterTable
from procedures.kinds.failover.decommission_node import DecommissionNode
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.failover.failover_table import FailoverTable
from procedures.kinds.namespaces.alter_catalog import AlterCatalog
from procedures.kinds.namespaces.create_catalog import CreateCatalog
from procedures.kinds.namespaces.create_schema import CreateSchema
from procedures.kinds.namespaces.drop_catalog import DropCatalog
from procedures.kinds.namespaces.drop_schema import DropSchema
from procedures.kinds.tables.create_table import CreateTable
from procedures.kinds.tables.drop_table import DropTable
from procedures.kinds.tables.purge_table import PurgeTable
from procedures.kinds.tables.rename_table import RenameTable
from procedures.kinds.tables.truncate_table import TruncateTable
from procedures.kinds.tables.undrop_table import UndropTable
from tests.fakes.cluster import Cluster
from tests.procedures.harness.alter_scenarios import ALTER_SCENARIOS
from tests.procedures.harness.batches.batch_scenarios import BATCH_SCENARIOS
from tests.procedures.harness.copies.copied_scenarios import COPIED_SCENARIOS
from tests.procedures.harness.ends import (
    OTHER,
    TABLE,
    altered,
    both_failed_over,
    catalog_dropped,
    created,
    decommissioned,
    dropped,
    effects,
    empty_catalog_dropped,
    exchanged,
    failed_over,
    nothing,
    purged,
    renamed,
    schema_dropped,
    still_registered,
    truncated,
    truncated_elsewhere,
    undropped,
    undropped_elsewhere,
)
from tests.procedures.harness.importing import (
    IMPORTS,
    imported,
    never_imported,
    with_one_region,
    with_repeated_keys,
)
from tests.procedures.harness.online import ADDS, column_added, never_altered
from tests.procedures.harness.placing.filter_scenarios import ON_NODES
from tests.procedures.harness.placing.scenarios import PLACING_SCENARIOS
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import (
    NODES,
    drop_table_keys,
    put_schema,
    put_table,
    region_ids,
    reserve_ids,
    table_info,
    table_route,
)
from tests.procedures.kinds.orphans.orphan_scenarios import ORPHAN_SCENARIOS

# ---- what is there before


async def empty(cluster: Cluster, fence: Compare) -> None:
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)


async def with_schema(cluster: Cluster, fence: Compare) -> None:
    await empty(cluster, fence)
    await put_schema(cluster, fence, "sales")


async def with_table(cluster: Cluster, fence: Compare) -> None:
    """Table t: two regions on dn-1, one on dn-2."""
    await with_schema(cluster, fence)
    await put_table(cluster, fence, table_info(TABLE, "t", 3), ("dn-1", "dn-1", "dn-2"))


async def with_two_tables(cluster: Cluster, fence: Compare) -> None:
    await with_table(cluster, fence)
    await put_table(cluster, fence, table_info(OTHER, "u", 1), ("dn-1",))


async def with_refusing_node(cluster: Cluster, fence: Compare) -> None:
    await with_schema(cluster, fence)
    cluster.plane.nodes["dn-3"].refuses["create"] = Refused("invalid-request", reason="test")


async def with_dropped_table(cluster: Cluster, fence: Compare) -> None:
    await with_table(cluster, fence)
    await drop_table_keys(cluster, fence, TABLE)


async def with_dropped_table_and_dead_node(cluster: Cluster, fence: Compare) -> None:
    await with_dropped_table(cluster, fence)
    cluster.plane.nodes["dn-1"].die()


async def with_dead_node(cluster: Cluster, fence: Compare) -> None:
    await with_table(cluster, fence)
    cluster.plane.nodes["dn-1"].die()


async def with_two_tables_and_dead_node(cluster: Cluster, fence: Compare) -> None:
    await with_two_tables(cluster, fence)
    cluster.plane.nodes["dn-1"].die()


ACME = CreateCatalog(
    info=CatalogInfo(catalog_id=1031, name="acme", created_at_ms=1),
    default_schema=SchemaInfo(schema_id=1032, catalog="acme", name="public", created_at_ms=1),
)
NEW = CreateTable(info=table_info(1090, "new", 3), route=table_route(1090, NODES))
TAKEN = CreateTable(info=table_info(1090, "t", 3), route=table_route(1090, NODES))
PURGE = PurgeTable(
    table_id=TABLE, catalog="main", schema_name="public", name="t", dropped_by="test"
)
TRUNCATE = TruncateTable(catalog="main", schema_name="public", name="t", table_id=TABLE)
DROP = DropTable(catalog="main", schema_name="public", name="t", table_id=TABLE)
MOVED = FailoverTable(
    table_id=TABLE,
    name="main.public.t",
    source="dn-1",
    region_ids=region_ids(TABLE, 2),
    reason="test",
)

SCENARIOS = (
    Scenario(
        "create_schema",
        "create_schema",
        CreateSchema(info=SchemaInfo(schema_id=1031, catalog="main", name="hr", created_at_ms=1)),
        empty,
        {FULL: lambda end: effects(end, "schema.created")},
    ),
    Scenario(
        "create_catalog",  # as servers of before asked for it
        "create_catalog",
        CreateCatalog(info=CatalogInfo(catalog_id=1031, name="acme", created_at_ms=1)),
        empty,
        {FULL: lambda end: effects(end, "catalog.created", "tablespace.created")},
    ),
    Scenario(
        "create_catalog, with its schema",
        "create_catalog",
        ACME,
        empty,
        {FULL: lambda end: effects(end, "catalog.created", "tablespace.created", "schema.created")},
    ),
    Scenario(
        "alter_catalog",
        "alter_catalog",
        AlterCatalog(name="main", catalog_id=1024, limits={"tables": 5}),
        with_table,
        {FULL: lambda end: effects(end, "catalog.altered")},
    ),
    Scenario(
        "drop_catalog, with its default schema",
        "drop_catalog",
        DropCatalog(name="main", catalog_id=1024),
        empty,
        {FULL: empty_catalog_dropped},
    ),
    Scenario(
        "drop_catalog",
        "drop_catalog",
        DropCatalog(name="main", catalog_id=1024, cascade=True),
        with_table,
        {FULL: catalog_dropped},
    ),
    Scenario(
        "drop_schema, cascade",
        "drop_schema",
        DropSchema(catalog="main", name="public", schema_id=1024, cascade=True),
        with_two_tables,
        {FULL: schema_dropped},
    ),
    Scenario(
        "drop_schema",
        "drop_schema",
        DropSchema(catalog="main", name="sales", schema_id=1030),
        with_schema,
        {FULL: lambda end: effects(end, "schema.dropped")},
    ),
    *PLACING_SCENARIOS,
    Scenario("create_table", "create_table", NEW, with_schema, {FULL: created}),
    Scenario(
        "create_table, name taken",
        "create_table",
        TAKEN,
        with_table,
        {ProcedureOutcome.ROLLED_BACK: nothing, ProcedureOutcome.FAILED: nothing},
    ),
    Scenario(
        "create_table, node refuses",
        "create_table",
        NEW,
        with_refusing_node,
        {ProcedureOutcome.ROLLED_BACK: nothing, ProcedureOutcome.FAILED: nothing},
        deadline_ms=500,
    ),
    Scenario(
        "create_table, cancelled",
        "create_table",
        NEW,
        with_refusing_node,
        {ProcedureOutcome.ROLLED_BACK: nothing, ProcedureOutcome.CANCELLED: nothing},
        cancel_after_ms=250,
        deadline_ms=2_000,
    ),
    Scenario(
        "create_table, cancelled as it commits",
        "create_table",
        NEW,
        with_schema,
        {FULL: created, ProcedureOutcome.CANCELLED: nothing},
        cancel_after_ms=0,
    ),
    Scenario(
        "drop_table",
        "drop_table",
        DROP,
        with_table,
        {FULL: dropped},
        client={"if_version": 1, "table_id": TABLE},
        undone=never_altered,
    ),
    Scenario(
        "drop_table, while it is used",
        "drop_table",
        DROP,
        with_table,
        {FULL: dropped},
        undone=never_altered,
        dead_holder=True,
    ),
    Scenario(
        "drop_table, cancelled",
        "drop_table",
        DROP,
        with_table,
        {ProcedureOutcome.CANCELLED: never_altered, FULL: dropped},
        cancel_after_ms=1_000,
        undone=never_altered,
        dead_holder=True,
    ),
    Scenario(
        "undrop_table",
        "undrop_table",
        UndropTable(
            table_id=TABLE, catalog="main", schema_name="public", old_name="t", new_name="t"
        ),
        with_dropped_table,
        {FULL: undropped},
    ),
    Scenario(
        "undrop_table, node gone",
        "undrop_table",
        UndropTable(
            table_id=TABLE, catalog="main", schema_name="public", old_name="t", new_name="t"
        ),
        with_dropped_table_and_dead_node,
        {FULL: undropped_elsewhere},
    ),
    Scenario(
        "purge_table",
        "purge_table",
        PURGE,
        with_dropped_table,
        {FULL: purged},
    ),
    Scenario(
        "rename_table",
        "rename_table",
        RenameTable(
            catalog="main",
            schema_name="public",
            name="t",
            table_id=TABLE,
            new_schema="sales",
            new_name="s",
        ),
        with_table,
        {FULL: renamed},
        client={"if_version": 1, "table_id": TABLE},
    ),
    Scenario(
        "rename_table, names exchanged",
        "rename_table",
        RenameTable(
            catalog="main",
            schema_name="public",
            name="t",
            table_id=TABLE,
            new_schema="public",
            new_name="u",
            other_id=OTHER,
        ),
        with_two_tables,
        {FULL: exchanged},
        client={"if_version": 1, "table_id": TABLE},
    ),
    Scenario(
        "alter_table",
        "alter_table",
        AlterTable(
            catalog="main",
            schema_name="public",
            name="t",
            table_id=TABLE,
            operations=(
                SetOptionsOperation(op="set_options", options={"a": "1"}),
                RenameColumnOperation(op="rename_column", name="note", new_name="text"),
            ),
        ),
        with_table,
        {FULL: altered},
        client={"if_version": 1, "table_id": TABLE},
    ),
    Scenario(
        "alter_table, a column added",
        "alter_table",
        ADDS,
        with_table,
        {FULL: column_added},
        client={"if_version": 1, "table_id": TABLE},
        undone=never_altered,
    ),
    *ALTER_SCENARIOS,
    *BATCH_SCENARIOS,
    Scenario(
        "import_table",
        "import_table",
        IMPORTS,
        with_one_region,
        {FULL: imported},
        client={"if_version": 1, "table_id": TABLE},
        undone=never_imported,
    ),
    Scenario(
        "import_table, keys stand twice",
        "import_table",
        IMPORTS,
        with_repeated_keys,
        {ProcedureOutcome.ROLLED_BACK: never_imported},
        deadline_ms=WAIT_MS,
        undone=never_imported,
    ),
    Scenario(
        "truncate_table",
        "truncate_table",
        TRUNCATE,
        with_table,
        {FULL: truncated},
        client={"if_version": 1, "table_id": TABLE},
    ),
    Scenario(
        "truncate_table, node gone",
        "truncate_table",
        TRUNCATE,
        with_dead_node,
        {FULL: truncated_elsewhere},
    ),
    Scenario(
        "failover_table",
        "failover_table",
        MOVED,
        with_dead_node,
        {FULL: failed_over},
    ),
    Scenario(
        "failover_node",
        "failover_node",
        FailoverNode(node="dn-1", reason="test"),
        with_two_tables_and_dead_node,
        {FULL: both_failed_over},
    ),
    Scenario(
        "decommission_node",
        "decommission_node",
        DecommissionNode(node="dn-1", reason="its disk is gone", by="anna"),
        with_two_tables_and_dead_node,
        {FULL: decommissioned},
        undone=still_registered,
    ),
    *(*ON_NODES, *COPIED_SCENARIOS, *ORPHAN_SCENARIOS),
)
