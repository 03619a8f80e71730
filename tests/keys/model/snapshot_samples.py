"""A sample of each key of a snapshot; the golden files hold them too."""

from typing import Any

from keys.key import Key
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.placing.placements import default_placement
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.snapshot.pins import CatalogPin, CatalogPinKey, RevisionPin, RevisionPinKey
from keys.model.snapshot.snapshots import (
    CatalogItem,
    PlacementItem,
    SchemaItem,
    SnapshotItem,
    SnapshotPart,
    SnapshotPartKey,
    SnapshotRef,
    SnapshotVersion,
    SnapshotVersionKey,
    TableItem,
    TablespaceItem,
)
from keys.model.tables import TableInfo, TableRoute
from keys.value import StoredModel

AT_MS = 1_763_721_600_000


def living_item(
    info: TableInfo, route: TableRoute, version: int, columns: tuple[int, int]
) -> TableItem:
    """*columns*: the version of the schema, and of the catalog, that has these columns."""
    return TableItem(
        info=info,
        route=route,
        catalog_version=version,
        columns_schema_version=columns[0],
        columns_catalog_version=columns[1],
        columns_at_ms=AT_MS,
    )


def snapshot_samples(*tables: SnapshotItem) -> tuple[tuple[Key[Any], StoredModel], ...]:
    catalog = CatalogInfo(
        catalog_id=1, name="main", options={"owner": "anna"}, created_at_ms=AT_MS, dropping="p"
    )
    schema = SchemaInfo(schema_id=1, catalog="main", name="public", created_at_ms=AT_MS)
    ref = SnapshotRef(
        version=17,
        revision=40,
        at_ms=AT_MS,
        parts=1,
        size_bytes=700,
        log_bytes=9_000,
        digest="0123456789abcdef" * 4,
        made_at_ms=AT_MS + 5,
    )
    pin = CatalogPin(
        name="nightly",
        version=17,
        reason="export",
        by="anna",
        since_ms=AT_MS,
        expires_at_ms=AT_MS + 600_000,
    )
    reader = RevisionPin(
        what="a backup", server="metasrv-1", since_ms=AT_MS, expires_at_ms=AT_MS + 120_000
    )
    space = TablespaceInfo(tablespace_id=1, catalog="main", name="default", created_at_ms=AT_MS)
    items = (
        CatalogItem(info=catalog, leaving=True),
        SchemaItem(info=schema, revision=3),
        PlacementItem(info=default_placement(AT_MS)),
        TablespaceItem(info=space),
        *tables,
    )
    return (
        (CatalogPinKey("nightly"), pin),
        (RevisionPinKey("0190a7c0-0000-7000-8000-000000000001"), reader),
        (SnapshotVersionKey(), SnapshotVersion(kept=(ref,))),
        (SnapshotPartKey(17, 0), SnapshotPart(version=17, part=0, items=items)),
    )
