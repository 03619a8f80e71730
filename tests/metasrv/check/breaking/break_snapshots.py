"""Snapshots of the catalog, written as a leader would, and what breaks one rule about them."""

from dataclasses import replace

from keys.catalog.catalog import Catalog
from keys.catalog.snapshot_codec import parts_of
from keys.model.log import CatalogUpdate, CatalogUpdateKey, CatalogVersionKey
from keys.model.snapshot.snapshots import (
    PartsDigest,
    SnapshotPartKey,
    SnapshotRef,
    SnapshotVersion,
    SnapshotVersionKey,
)
from keys.store.scan import scan
from keys.value import decode
from tests.metasrv.check.breaking.breaking import Breakage
from tests.metasrv.check.cluster import DEADLINE_MS, Cluster

KEY = SnapshotVersionKey()


async def catalogs(at: Cluster) -> dict[int, Catalog]:
    """The catalog at each version, by the log."""
    items, _ = await scan(at.kv, CatalogUpdateKey.under(), deadline_ms=DEADLINE_MS)
    found, catalog = dict[int, Catalog](), Catalog()
    for item in items:
        update = decode(CatalogUpdate, item.value, key=item.key.decode())
        catalog = catalog.apply(update, item.mod_revision)
        found[catalog.version] = catalog
    return found


async def put_snapshots(at: Cluster, *held: Catalog) -> None:
    refs = []
    for catalog in held:
        digest, parts = PartsDigest(), list(parts_of(catalog))
        for number, raw in enumerate(parts):
            digest.add(raw)
            await at.put_raw(bytes(SnapshotPartKey(catalog.version, number)), raw)
        refs.append(
            SnapshotRef(
                version=catalog.version,
                revision=catalog.revision,
                at_ms=catalog.at_ms,
                parts=len(parts),
                size_bytes=sum(map(len, parts)),
                log_bytes=1,
                digest=str(digest),
                made_at_ms=1,
            )
        )
    await at.put(KEY, SnapshotVersion(kept=tuple(refs)))


async def compacted(at: Cluster, *versions: int) -> None:
    """Snapshots at *versions*, and no update up to the first of them."""
    by_version = await catalogs(at)
    await put_snapshots(at, *(by_version[version] for version in versions))
    await at.delete(*(CatalogUpdateKey(version) for version in range(1, versions[0] + 1)))


async def of_a_version_to_come(at: Cluster) -> str:
    head = (await at.read(CatalogVersionKey())).version
    by_version = await catalogs(at)
    await put_snapshots(at, by_version[2], replace(by_version[head], version=head + 1))
    return str(KEY)


async def no_snapshot_named(at: Cluster) -> str:
    await at.put(KEY, SnapshotVersion(kept=()))
    return str(KEY)


async def part_missing(at: Cluster) -> str:
    await compacted(at, 3)
    await at.delete(SnapshotPartKey(3, 0))
    return str(SnapshotPartKey(3, 0))


async def part_too_many(at: Cluster) -> str:
    await compacted(at, 3)
    part = await at.read(SnapshotPartKey(3, 0))
    await at.put(SnapshotPartKey(3, 1), part.model_copy(update={"part": 1}))
    return str(SnapshotPartKey(3, 0))


async def another_snapshot_in_its_place(at: Cluster) -> str:
    await compacted(at, 3)
    part = await at.read(SnapshotPartKey(3, 0))
    await at.put(SnapshotPartKey(3, 0), part.model_copy(update={"items": part.items[:-1]}))
    return str(SnapshotPartKey(3, 0))


async def last_update_is_lacking(at: Cluster) -> str:
    by_version = await catalogs(at)
    now = by_version[5]
    lacking = replace(by_version[4], version=5, revision=now.revision, at_ms=now.at_ms)
    await put_snapshots(at, by_version[2], lacking)
    return str(SnapshotPartKey(5, 0))


async def of_another_moment(at: Cluster) -> str:
    by_version = await catalogs(at)
    await put_snapshots(at, by_version[2], replace(by_version[5], at_ms=7))
    return str(SnapshotPartKey(5, 0))


async def gap_above_the_snapshot(at: Cluster) -> str:
    await compacted(at, 3)
    await at.delete(CatalogUpdateKey(4))
    return str(CatalogUpdateKey(4))


async def early_above_the_snapshot(at: Cluster) -> str:
    await compacted(at, 3)
    return await at.edit(CatalogUpdateKey(4), at_ms=1)


BREAKAGES = (
    Breakage("snapshot-listed", of_a_version_to_come),
    Breakage("snapshot-listed", no_snapshot_named),
    Breakage("snapshot-whole", part_missing),
    Breakage("snapshot-whole", part_too_many),
    Breakage("snapshot-whole", another_snapshot_in_its_place),
    Breakage("snapshot-tells", last_update_is_lacking),
    Breakage("snapshot-tells", of_another_moment),
    Breakage("log-dense", gap_above_the_snapshot),
    Breakage("log-times", early_above_the_snapshot),
)
