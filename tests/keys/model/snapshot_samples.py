"""A sample of each key of a snapshot; the golden files hold them too."""

from typing import Any

from keys.key import Key
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.snapshot.pins import CatalogPin, CatalogPinKey
from keys.model.snapshot.snapshots import (
    CatalogItem,
    SchemaItem,
    SnapshotItem,
    SnapshotPart,
    SnapshotPartKey,
    SnapshotRef,
    SnapshotVersion,
    SnapshotVersionKey,
)
from keys.value import StoredModel

AT_MS = 1_763_721_600_000


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
    items = (CatalogItem(info=catalog, leaving=True), SchemaItem(info=schema, revision=3), *tables)
    return (
        (CatalogPinKey("nightly"), pin),
        (SnapshotVersionKey(), SnapshotVersion(kept=(ref,))),
        (SnapshotPartKey(17, 0), SnapshotPart(version=17, part=0, items=items)),
    )
