"""Reads snapshots from the store: which ones are kept, and the catalog that one of them holds."""

import asyncio
from collections.abc import Awaitable, Callable

from keys.catalog.catalog import Catalog
from keys.catalog.snapshot_codec import CatalogBuilder
from keys.model.snapshot.snapshots import (
    PartsDigest,
    SnapshotPartKey,
    SnapshotRef,
    SnapshotVersion,
    SnapshotVersionKey,
)
from keys.store.kv import Get, ReadableStore
from keys.store.scan import pages
from keys.value import decode
from metasrv_base.errors import Corrupt

PARTS_AT_ONCE = Get(b"", limit=16)  # of one read: mostly 400 KiB, and 24 MiB at most


def snapshots_in(raw: bytes) -> SnapshotVersion:
    """The stored value of the one key. Raises Corrupt."""
    snapshots = decode(SnapshotVersion, raw, key=str(SnapshotVersionKey()))
    versions = [ref.version for ref in snapshots.kept]
    if not versions or versions != sorted(set(versions)):
        raise Corrupt(key=str(SnapshotVersionKey()), found=versions)
    return snapshots


async def read_snapshots(
    kv: ReadableStore, *, deadline_ms: int, revision: int = 0
) -> SnapshotVersion | None:
    """The snapshots that are kept, at *revision* or now (0). None: the log begins at version 1."""
    get = Get(bytes(SnapshotVersionKey()))
    page = await kv.range(get, deadline_ms=deadline_ms, revision=revision)
    return snapshots_in(page.items[0].value) if page.items else None


async def _none() -> None:
    return


async def load_snapshot(
    kv: ReadableStore,
    ref: SnapshotRef,
    *,
    deadline_ms: int,
    revision: int,
    page_read: Callable[[], Awaitable[None]] = _none,
) -> Catalog:
    """The catalog that *ref* holds, read at *revision*, at which `read_snapshots` named it.

    Other tasks run between two parts. *page_read* is awaited after each read of some parts: a pin
    of the revision is renewed there. Raises Conflict("history-expired") once that revision is
    compacted: read which snapshots there are again. Raises Corrupt if it is not whole.
    """
    builder, digest = CatalogBuilder(ref), PartsDigest()
    keys = SnapshotPartKey.under(ref.version)
    reader = pages(kv, keys, deadline_ms=deadline_ms, revision=revision, like=PARTS_AT_ONCE)
    async for page in reader:
        for item in page.items:
            digest.add(item.value)
            builder.add(item.value)
            await asyncio.sleep(0)
        await page_read()
    catalog = builder.finished()
    if str(digest) != ref.digest:
        raise Corrupt(snapshot=ref.version, expected=ref.digest, found=str(digest))
    return catalog
