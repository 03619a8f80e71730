"""One key and one value of every family, as full as it can be; the golden files hold them."""

from typing import Any

from keys.key import Key
from keys.model.catalogs import CatalogInfo, CatalogNameKey, SchemaInfo, SchemaNameKey
from keys.model.cluster import (
    Candidate,
    CandidateKey,
    ClusterKey,
    ClusterRecord,
    Cordon,
    LeaderKey,
    LeaderRecord,
    NodeKey,
    NodeRecord,
    Removal,
    RemovedNode,
    RemovedNodeKey,
    Resources,
    RestoredFrom,
    RestoreMark,
    RestoreMarkKey,
    Returned,
    Sequence,
    SequenceKey,
    SettingKey,
    SettingRecord,
)
from keys.model.holders import HolderKey, HolderRecord
from keys.model.log import (
    CatalogCreated,
    CatalogDropped,
    CatalogDropping,
    CatalogUpdate,
    CatalogUpdateKey,
    CatalogVersion,
    CatalogVersionKey,
    DroppedRouteChanged,
    RouteChanged,
    SchemaCreated,
    SchemaDropped,
    SchemaDropping,
    TableAltered,
    TableCreated,
    TableDropped,
    TablePurged,
    TableRenamed,
    TablesExchanged,
    TableUndropped,
)
from keys.model.origin import CutStatement, Origin
from keys.model.poison import Poison, PoisonKey
from keys.model.records import (
    ClientRequirements,
    Controlled,
    Idempotency,
    IdempotencyKey,
    Lock,
    LockMode,
    ProcedureHistory,
    ProcedureHistoryKey,
    ProcedureKey,
    ProcedureOutcome,
    ProcedurePhase,
    ProcedureRecord,
    Resource,
    StoredError,
    TimelineEntry,
)
from keys.model.removed import (
    RemovedTableInfo,
    RemovedTableInfoKey,
    RemovedTableNameKey,
    RemovedTableRoute,
    RemovedTableRouteKey,
)
from keys.model.snapshot.snapshots import EarlierColumnsItem, TableItem
from keys.model.tables import (
    Column,
    Constraint,
    ConstraintKind,
    DatanodeTable,
    DatanodeTableKey,
    Index,
    RegionRoute,
    RegionState,
    TableInfo,
    TableInfoKey,
    TableNameKey,
    TableNameRecord,
    TableRoute,
    TableRouteKey,
)
from keys.model.transitions import ElementChange, LateHolder, Transition, Went
from keys.value import StoredModel
from metasrv_base.elements.states import ElementState
from metasrv_base.schema.partition import HashRule, RangeRule
from tests.keys.model.placing_samples import PLACING_ENTRIES, PLACING_SAMPLES, placed
from tests.keys.model.snapshot_samples import living_item, snapshot_samples
from tests.keys.model.staged_samples import STAGED_SAMPLES

AT_MS = 1_763_721_600_000
PROCEDURE = "019aa5d3-1c00-7abc-8def-0123456789ab"
CHILD = "019aa5d3-1c01-7abc-8def-0123456789ab"  # of RECORD: its parent
DIGEST = "0f" * 32
REGIONS = (
    RegionRoute(
        region_id="4398046511104",
        leader="dn-1",
        followers=("dn-2",),
        epoch=3,
        state=RegionState.OPENING,
        root="/var/lib/metasrv/dn-1/1024_0000000000",
        announced=False,
        borrows=("/var/lib/metasrv/dn-3/1024_0000000000",),
    ),
    RegionRoute(
        region_id="4398046511105",
        leader="dn-2",
        epoch=1,
        state=RegionState.OPEN,
        root="/var/lib/metasrv/dn-2/1024_0000000001",
        announced=True,
    ),
)
ROUTE = TableRoute(table_id=1024, version=2, region_routes=REGIONS)
INFO = TableInfo(
    table_id=1024,
    catalog="main",
    schema_name="public",
    name="flights",
    version=3,
    schema_version=2,
    schema_floor=1,
    columns=(
        Column(id=1, name="id", type="int64", nullable=False),
        Column(id=2, name="note", type="string", nullable=True, default="ünset"),
        Column(
            id=3,
            name="seats",
            type="int32",
            nullable=False,
            default=100,
            origin_default=1,
            state=ElementState.WRITE_ONLY,
        ),
    ),
    next_column_id=4,
    primary_key=(1,),
    partition=RangeRule(columns=(1,), bounds=((1000,),)),
    options={"retention": "7d"},
    replicas=1,
    created_at_ms=AT_MS,
    indexes=(
        Index(id=2, name="by_note", columns=(2, 1), unique=True, state=ElementState.DELETE_ONLY),
    ),
    next_index_id=3,
    constraints=(
        Constraint(
            id=1,
            name="some_seats",
            kind=ConstraintKind.CHECK,
            columns=(3,),
            expression="c3 > 0",
            holds=False,
            state=ElementState.WRITE_ONLY,
        ),
    ),
    next_constraint_id=2,
    state=ElementState.WRITE_ONLY,
)
HASHED = INFO.model_copy(update={"partition": HashRule(columns=(1,), count=2)})
IN_MEMORY = HASHED.model_copy(update={"engine": "memory", "engine_options": {"a": 1}})
CATALOG = CatalogInfo(
    catalog_id=1,
    name="main",
    options={"owner": "ops"},
    created_at_ms=AT_MS,
)
SCHEMA = SchemaInfo(
    schema_id=2,
    catalog="main",
    name="public",
    options={"quota": "10"},
    created_at_ms=AT_MS,
)
RECORD = ProcedureRecord(
    kind="create_table",
    kind_format=1,
    step="commit",
    phase=ProcedurePhase.UNDO,
    state={"table_id": 1024, "opened": ["dn-1"]},
    trail=("prepare", "open"),
    submission=7,
    locks=(
        Lock(key="catalog:main", mode=LockMode.SHARED),
        Lock(key="name:main.public.flights", mode=LockMode.EXCLUSIVE),
    ),
    overtakes=(CHILD,),
    resource=Resource(type="table", id="1024", name="main.public.flights"),
    client=ClientRequirements(
        submitted_by="anna",
        request_id="req-1",
        statement={"method": "POST", "path": "/v1/tables", "body": {"name": "flights"}},
        idempotency=DIGEST,
        if_version=3,
        table_id=1024,
        expected_epoch=2,
    ),
    parent=CHILD,
    submitted_at_ms=AT_MS,
    deadline_at_ms=AT_MS + 600_000,
    started_at_ms=AT_MS + 5,
    resumed=1,
    cancel=True,
    timeline=(TimelineEntry(step="prepare", at_ms=AT_MS + 9, ms=4),),
    error=StoredError(code="node-not-eligible", facts={"node": "dn-3"}),
    catalog_version=17,
    paused_at_ms=AT_MS + 6,
    throttle_percent=20,
    turned_at_ms=AT_MS + 7,
    poisoned=True,
    controls=(Controlled(action="cancel", by="anna", at_ms=AT_MS + 7, reason="a mistake"),),
    transitions=(
        Transition(
            table_id=1024,
            schema_version=4,
            shifts=(
                ElementChange(
                    what="index",
                    id=1,
                    name="by_carrier",
                    before=ElementState.DELETE_ONLY,
                    after=ElementState.WRITE_ONLY,
                ),
            ),
            regions=3,
            told_ms=12,
            catalog_version=16,
            published_at_ms=AT_MS + 8,
            drained_at_ms=AT_MS + 9,
            holders=2,
            late=(LateHolder(holder="fe-2", ms=1, went=Went.REMOVED, transaction="t-9"),),
        ),
    ),
)
UPDATE = CatalogUpdate(
    version=17,
    at_ms=AT_MS,
    procedure=PROCEDURE,
    origin=Origin(
        by="anna",
        request_id="r-1",
        statement='{"method":"DELETE","path":"/v1/x","body":',
        cut=CutStatement(bytes=5_000, sha256="0a" * 32),
    ),
    entries=(
        CatalogCreated(info=CATALOG),
        SchemaCreated(info=SCHEMA),
        SchemaDropped(catalog="main", name="old"),
        TableCreated(info=INFO, route=ROUTE),
        TableRenamed(info=HASHED),
        TablesExchanged(first=HASHED, second=INFO),
        TableAltered(info=IN_MEMORY),
        TableDropped(table_id=1024, dropped_at_ms=AT_MS, dropped_by=PROCEDURE),
        TableUndropped(info=HASHED, route=ROUTE),
        RouteChanged(table_id=1024, version=3, regions=REGIONS[:1]),
        SchemaDropping(info=SCHEMA.model_copy(update={"dropping": PROCEDURE})),
        CatalogDropping(info=CATALOG.model_copy(update={"dropping": PROCEDURE})),
        CatalogDropped(name="main"),
        TablePurged(table_id=1024),
        *PLACING_ENTRIES,
        DroppedRouteChanged(table_id=1024, version=4, regions=REGIONS[:1]),
    ),
)
REMOVAL = Removal(at_ms=AT_MS, by="anna", reason="sold", lost=True)
NODE = NodeRecord(
    node_id="dn-1",
    role="datanode",
    address="http://127.0.0.1:4001",
    zone="a",
    root="/var/lib/metasrv/dn-1",
    version="0.1.0",
    incarnation="6f1c2d3e4a5b",
    resources=Resources(cpu_cores=2, memory_bytes=24 << 30, disk_bytes=100 << 30),
    registered_at_ms=AT_MS,
    cordon=Cordon(reason="a new disk", by="anna", at_ms=AT_MS),
    dead_since_ms=AT_MS,
    returned=Returned(removal=REMOVAL, folders=("4398046511104-1",), folder_count=1),
    engines=("lsm", "memory"),
    principal="dn-1",
    labels={"disk": "ssd", "rack": "r7"},
)
RESTORED_FROM = RestoredFrom(cluster_id=CHILD, revision=40_017, made_at_ms=AT_MS + 1)

SNAPSHOT_SAMPLES = snapshot_samples(
    EarlierColumnsItem(
        table_id=1024, schema_version=1, catalog_version=9, at_ms=AT_MS, columns=INFO.columns
    ),
    living_item(INFO, ROUTE, 17, (3, 12)),
    TableItem(
        info=HASHED,
        route=ROUTE,
        catalog_version=16,
        dropped_at_ms=AT_MS,
        dropped_by=PROCEDURE,
        columns_schema_version=1,
        columns_catalog_version=11,
        columns_at_ms=AT_MS,
    ),
)

SAMPLES: tuple[tuple[Key[Any], StoredModel], ...] = (
    (TableInfoKey(1024), placed(INFO)),
    (TableRouteKey(1024), ROUTE),
    (DatanodeTableKey("dn-1", 1024), DatanodeTable(table_id=1024, version=2, regions=(0, 1))),
    (TableNameKey("main", "public", "flights"), TableNameRecord(table_id=1024)),
    (CatalogNameKey("main"), CATALOG),
    (SchemaNameKey("main", "public"), SCHEMA),
    *PLACING_SAMPLES,
    (
        RemovedTableInfoKey(1024),
        RemovedTableInfo(info=HASHED, dropped_at_ms=AT_MS, dropped_by=PROCEDURE),
    ),
    (
        RemovedTableRouteKey(1024),
        RemovedTableRoute(route=ROUTE, dropped_at_ms=AT_MS, dropped_by=PROCEDURE),
    ),
    (RemovedTableNameKey("main", "public", "flights", 1024), TableNameRecord(table_id=1024)),
    (SequenceKey("table_id"), Sequence(next=1088)),
    (CatalogVersionKey(), CatalogVersion(version=17, at_ms=AT_MS)),
    (CatalogUpdateKey(17), UPDATE),
    *SNAPSHOT_SAMPLES,
    *STAGED_SAMPLES,
    (ProcedureKey(PROCEDURE), RECORD),
    (
        ProcedureHistoryKey(PROCEDURE),
        ProcedureHistory(
            outcome=ProcedureOutcome.ROLLED_BACK,
            last=RECORD,
            result={"table_id": 1024},
            finished_at_ms=AT_MS + 20,
            catalog_version=17,
        ),
    ),
    (
        IdempotencyKey(DIGEST),
        Idempotency(procedure=PROCEDURE, fingerprint=DIGEST, at_ms=AT_MS),
    ),
    (
        PoisonKey("table:1024"),
        Poison(
            procedure=PROCEDURE,
            kind="create_table",
            resource=RECORD.resource,
            step="open",
            error=StoredError(code="node-not-eligible", facts={"node": "dn-3"}),
            at_ms=AT_MS,
        ),
    ),
    (LeaderKey(), LeaderRecord(server="meta-1", url="http://127.0.0.1:4000", lease="7587869")),
    (
        CandidateKey("meta-1"),
        Candidate(server="meta-1", url="http://127.0.0.1:4000", version="0.1.0"),
    ),
    (NodeKey("datanode", "dn-1"), NODE.model_copy(update={"restored_from": CHILD})),
    (RemovedNodeKey("datanode", "dn-1"), RemovedNode(node=NODE, removal=REMOVAL)),
    (
        HolderKey("fe-1"),
        HolderRecord(
            holder_id="fe-1",
            incarnation="i-1",
            address="http://127.0.0.1:4400",
            version="0.1.0",
            registered_at_ms=AT_MS,
        ),
    ),
    (
        ClusterKey(),
        ClusterRecord(cluster_id=PROCEDURE, created_at_ms=AT_MS, restored=RESTORED_FROM),
    ),
    (
        RestoreMarkKey(),
        RestoreMark(restore_id=PROCEDURE, source=RESTORED_FROM, begun_at_ms=AT_MS + 2),
    ),
    (
        SettingKey("maintenance"),
        SettingRecord(
            name="maintenance",
            value={"enabled": True},
            version=2,
            changed_by="anna",
            changed_at_ms=AT_MS,
        ),
    ),
)
