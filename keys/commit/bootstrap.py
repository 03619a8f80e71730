"""The first keys of an empty prefix, in one transaction that compares their absence."""

from collections.abc import Iterator
from typing import Any

from keys.commit.entry_writes import writes_of
from keys.commit.sequence import BOOTSTRAPPED, FIRST
from keys.commit.txn import Snapshot
from keys.key import Key, Range
from keys.model.catalogs import (
    DEFAULT_CATALOG,
    DEFAULT_SCHEMA,
    CatalogInfo,
    SchemaInfo,
)
from keys.model.cluster import ClusterKey, ClusterRecord, Sequence, SequenceKey
from keys.model.log import (
    CatalogCreated,
    CatalogUpdate,
    CatalogUpdateKey,
    CatalogVersion,
    CatalogVersionKey,
    Entry,
    PlacementCreated,
    SchemaCreated,
    TablespaceCreated,
    format_of,
)
from keys.model.placing.placements import default_placement
from keys.model.placing.tablespaces import default_tablespace
from keys.store.kv import Compare, Put, Request
from keys.value import StoredModel, encode

FIRST_VERSION = 1
# Everything but the election, which the bootstrapping leader itself has just written.
OURS = (Range(b"__a", b"__election/"), Range(b"__election0", b"__z"))


def bootstrap_request(fence: Compare, cluster_id: str, now_ms: int) -> Request:
    """Cluster id, the catalog `main` with its schema `public`, the default placement and
    tablespace, the sequences, version 1.

    Refused, it found a cluster (or a lost fence) and did nothing.
    """
    catalog = CatalogInfo(
        catalog_id=FIRST["catalog_id"], name=DEFAULT_CATALOG, created_at_ms=now_ms
    )
    schema = SchemaInfo(
        schema_id=FIRST["schema_id"],
        catalog=DEFAULT_CATALOG,
        name=DEFAULT_SCHEMA,
        created_at_ms=now_ms,
    )
    entries = (
        PlacementCreated(info=default_placement(now_ms)),
        CatalogCreated(info=catalog),
        TablespaceCreated(info=default_tablespace(catalog)),
        SchemaCreated(info=schema),
    )
    update = CatalogUpdate(
        format=format_of(entries),
        version=FIRST_VERSION,
        at_ms=now_ms,
        procedure=None,
        entries=entries,
    )
    taken = {"schema_id": 1, "catalog_id": 1}
    sequences = [
        Put(bytes(SequenceKey(name)), encode(Sequence(next=FIRST[name] + taken.get(name, 0))))
        for name in BOOTSTRAPPED
    ]
    return Request(
        compares=(fence, *(Compare(start, 0, end) for start, end in OURS)),
        writes=(
            Put(
                bytes(ClusterKey()),
                encode(ClusterRecord(cluster_id=cluster_id, created_at_ms=now_ms)),
            ),
            *(Put(bytes(key), encode(value)) for key, value in _metadata(entries)),
            *sequences,
            Put(bytes(CatalogUpdateKey(FIRST_VERSION)), encode(update)),
            Put(
                bytes(CatalogVersionKey()),
                encode(CatalogVersion(version=FIRST_VERSION, at_ms=now_ms)),
            ),
        ),
    )


def _metadata(entries: tuple[Entry, ...]) -> Iterator[tuple[Key[Any], StoredModel]]:
    """The keys of the first version: *entries* follow an empty store."""
    for key, value, _ in writes_of(entries, Snapshot(0, {})):
        assert value is not None
        yield key, value
