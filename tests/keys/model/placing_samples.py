"""Samples of placements and tablespaces; the golden files hold them too."""

from typing import Any

from keys.key import Key
from keys.model.log import (
    PlacementAltered,
    PlacementCreated,
    PlacementDropped,
    PlacementRenamed,
    PlacingEntry,
    TablespaceAltered,
    TablespaceCreated,
    TablespaceDropped,
    TablespaceRenamed,
)
from keys.model.placing.placements import (
    LabelCondition,
    NodeFilter,
    PlacedTable,
    PlacedTableKey,
    PlacementInfo,
    PlacementKey,
    StorageProfile,
)
from keys.model.placing.tablespaces import (
    GroupedTable,
    GroupedTableKey,
    TablespaceInfo,
    TablespaceKey,
)
from keys.model.tables import TableInfo
from keys.value import StoredModel

AT_MS = 1_763_721_600_000
PLACEMENT = PlacementInfo(
    placement_id=1025,
    name="fast",
    version=3,
    replicas=1,
    partitions=4,
    storage_profiles=(
        StorageProfile(name="default", engine="lsm"),
        StorageProfile(name="hot", engine="memory", options={"a": "1"}),
    ),
    node_filter=NodeFilter(
        zones=("a", "b"), labels=(LabelCondition(label="disk", values=("ssd", "nvme")),)
    ),
    comment="for dashboards",
    created_at_ms=AT_MS,
)
TABLESPACE = TablespaceInfo(
    tablespace_id=1026,
    catalog="main",
    name="orders",
    version=2,
    comment="together",
    created_at_ms=AT_MS,
)
PLACING_ENTRIES: tuple[PlacingEntry, ...] = (
    PlacementCreated(info=PLACEMENT),
    PlacementAltered(info=PLACEMENT),
    PlacementRenamed(name="slow", info=PLACEMENT),
    PlacementDropped(name="fast"),
    TablespaceCreated(info=TABLESPACE),
    TablespaceAltered(info=TABLESPACE),
    TablespaceRenamed(name="o", info=TABLESPACE),
    TablespaceDropped(catalog="main", name="orders"),
)
PLACING_SAMPLES: tuple[tuple[Key[Any], StoredModel], ...] = (
    (PlacementKey("fast"), PLACEMENT),
    (TablespaceKey("main", "orders"), TABLESPACE),
    (PlacedTableKey(1025, 1024), PlacedTable(table_id=1024, storage_profile="hot")),
    (GroupedTableKey(1026, 1024), GroupedTable(table_id=1024)),
)


def placed(info: TableInfo) -> TableInfo:
    """The same table, where the samples keep it."""
    update = {"format": 2, "placement_id": 1025, "storage_profile": "hot", "tablespace_id": 1026}
    return info.model_copy(update={**update, "colocation": (1,)})
