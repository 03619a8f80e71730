"""Writes snapshots and removes what they replace, in fenced transactions of bounded size.

The order makes each crash harmless: parts are written where nothing refers to them, one transaction
adopts them, and only then is deleted what the adopted value no longer names. Whatever is left over,
unfinished parts or updates below the floor, is found by its key and deleted by the next leader.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from keys.catalog.catalog import Catalog
from keys.catalog.snapshot_codec import parts_of
from keys.catalog.snapshot_loading import snapshots_in
from keys.commit.committer import Committer
from keys.commit.txn import Txn
from keys.key import Key, Range
from keys.model.log import CatalogUpdateKey
from keys.model.snapshot.snapshots import (
    EVERY_PART,
    SNAPSHOTS_MAX,
    PartsDigest,
    SnapshotPartKey,
    SnapshotRef,
    SnapshotVersion,
    SnapshotVersionKey,
)
from keys.model.staging.parts import BatchPartKey, LargeUpdate, LargeUpdateKey
from keys.store.kv import Get, KeyValue, Kv
from keys.value import decode
from metasrv_base.concurrency.fanout import fan_out

DELETED_AT_ONCE = 48
"""Keys of one transaction: less than half of what it may hold, so that other changes share it."""
DELETIONS = 3
"""The most of them at once. Each waits for a batch behind what else is committed: one after the
other they would delete less than a busy cluster writes."""
KEY = SnapshotVersionKey()
EMPTY = SnapshotRef(
    version=0,
    revision=0,
    at_ms=0,
    parts=0,
    size_bytes=0,
    log_bytes=0,
    digest=str(PartsDigest()),
    made_at_ms=0,
)
"""The catalog before the first update: the oldest snapshot as long as the log has all updates."""


@dataclass(frozen=True, slots=True)
class StoredSnapshots:
    """The one key as it was read. `revision` 0: there is no snapshot."""

    value: SnapshotVersion | None
    revision: int

    @property
    def kept(self) -> tuple[SnapshotRef, ...]:
        return () if self.value is None else self.value.kept

    @property
    def floor(self) -> int:
        return 0 if self.value is None else self.value.floor

    @property
    def newest(self) -> int:
        return 0 if self.value is None else self.value.newest.version


class SnapshotWriter:
    """Belongs to one term, and to one task of it: two at once would mix their parts."""

    def __init__(self, kv: Kv, committer: Committer, *, deadline_ms: int) -> None:
        self._kv = kv
        self._committer = committer
        self._deadline_ms = deadline_ms

    async def read(self) -> StoredSnapshots:
        page = await self._kv.range(Get(bytes(KEY)), deadline_ms=self._deadline_ms)
        if not page.items:
            return StoredSnapshots(None, 0)
        item = page.items[0]
        return StoredSnapshots(snapshots_in(item.value), item.mod_revision)

    async def save(self, catalog: Catalog, *, log_bytes: int, now_ms: int) -> bool:
        """Writes a snapshot of *catalog* and adopts it; False: an equal or newer one exists.

        *log_bytes*: stored bytes of the updates above the snapshot before, up to this one. Raises
        as reads and `Committer.commit`; what was written then is deleted by `collect`.
        """
        stored = await self.read()
        if stored.newest >= catalog.version:
            return False
        await self.collect()
        parts, size_bytes, digest = 0, 0, PartsDigest()
        for raw in parts_of(catalog):
            key = SnapshotPartKey(catalog.version, parts)
            await self._committer.commit(Txn().expecting(key, 0).put_stored(key, raw))
            parts, size_bytes = parts + 1, size_bytes + len(raw)
            digest.add(raw)
        ref = SnapshotRef(
            version=catalog.version,
            revision=catalog.revision,
            at_ms=catalog.at_ms,
            parts=parts,
            size_bytes=size_bytes,
            log_bytes=log_bytes,
            digest=str(digest),
            made_at_ms=now_ms,
        )
        await self._adopt(stored, with_newest(stored.kept or (EMPTY,), ref))
        return True

    async def raise_floor(self, version: int) -> bool:
        """Keeps no snapshot below the newest one at or below *version*, so that the log begins
        there. False: it does already. What is below stays in the store until `collect`."""
        stored = await self.read()
        base = None if stored.value is None else stored.value.nearest(version)
        if base is None or base.version == stored.floor:
            return False
        await self._adopt(stored, tuple(ref for ref in stored.kept if ref.version >= base.version))
        return True

    async def collect(self) -> int:
        """Deletes parts of snapshots that are not kept, and updates up to the floor with their
        parts. Returns the number of keys that it deleted. Raises as reads and
        `Committer.commit`."""
        stored = await self.read()
        deleted = 0
        for gap in _gaps([ref.version for ref in stored.kept]):
            while items := await self._keys(gap):
                deleted += await self._delete(SnapshotPartKey, items)
        deleted += await self._collect_parts(stored.floor)
        oldest = await self._keys(CatalogUpdateKey.under(), limit=1)
        first = CatalogUpdateKey.parse(oldest[0].key).version if oldest else stored.floor + 1
        behind, step = stored.floor + 1, DELETIONS * DELETED_AT_ONCE
        for low in range(first, behind, step):
            parts = range(low, min(low + step, behind), DELETED_AT_ONCE)
            calls = [partial(self._delete_updates, part, behind) for part in parts]
            deleted += sum(await fan_out(calls, at_once=DELETIONS))
        return deleted

    async def _delete_updates(self, low: int, behind: int) -> int:
        high = min(low + DELETED_AT_ONCE, behind)
        updates = Range(bytes(CatalogUpdateKey(low)), bytes(CatalogUpdateKey(high)))
        return await self._delete(CatalogUpdateKey, await self._keys(updates))

    async def _collect_parts(self, floor: int) -> int:
        """Deletes the parts that updates up to *floor* name; then what says so."""
        deleted = 0
        behind = Range(LargeUpdateKey.under().start, bytes(LargeUpdateKey(floor + 1)))
        while items := await self._items(behind):
            for item in items:
                large = decode(LargeUpdate, item.value, key=item.key.decode())
                parts = BatchPartKey.under(large.staged.batch)
                while some := await self._keys(parts):
                    deleted += await self._delete(BatchPartKey, some)
            deleted += await self._delete(LargeUpdateKey, items)
        return deleted

    async def _adopt(self, stored: StoredSnapshots, kept: tuple[SnapshotRef, ...]) -> None:
        txn = Txn().expecting(KEY, stored.revision).put(KEY, SnapshotVersion(kept=kept))
        await self._committer.commit(txn)

    async def _items(self, keys: Range) -> Sequence[KeyValue]:
        get = Get(keys.start, keys.end, limit=DELETED_AT_ONCE)
        page = await self._kv.range(get, deadline_ms=self._deadline_ms)
        return page.items

    async def _keys(self, keys: Range, limit: int = DELETED_AT_ONCE) -> Sequence[KeyValue]:
        get = Get(keys.start, keys.end, limit=limit, keys_only=True)
        page = await self._kv.range(get, deadline_ms=self._deadline_ms)
        return page.items

    async def _delete(self, family: type[Key[Any]], items: Sequence[KeyValue]) -> int:
        txn = Txn()
        for item in items:
            key = family.parse(item.key)
            txn = txn.expecting(key, item.mod_revision).delete(key)
        if items:
            await self._committer.commit(txn)
        return len(items)


def with_newest(kept: tuple[SnapshotRef, ...], ref: SnapshotRef) -> tuple[SnapshotRef, ...]:
    """Adds *ref*. Beyond SNAPSHOTS_MAX the second oldest goes: reads as of a version between its
    neighbours then begin at the oldest, and the log stays as long as it was."""
    more = (*kept, ref)
    if len(more) <= SNAPSHOTS_MAX:
        return more
    floor, gone, heir, *rest = more
    log_bytes = gone.log_bytes + heir.log_bytes
    return (floor, heir.model_copy(update={"log_bytes": log_bytes}), *rest)


def _gaps(kept: Sequence[int]) -> Iterator[Range]:
    """Yields the ranges of parts before, between and behind those of the versions *kept*."""
    start = EVERY_PART.start
    for version in kept:
        own = SnapshotPartKey.under(version)
        yield Range(start, own.start)
        start = own.end
    yield Range(start, EVERY_PART.end)
