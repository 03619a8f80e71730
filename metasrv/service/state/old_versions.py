"""Catalogs of versions that are no longer in memory, rebuilt from the log when somebody asks.

A rebuild goes on when the client that caused it no longer waits: it asks again and finds it done.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from keys.catalog.catalog import Catalog
from keys.catalog.follower import Follower
from keys.catalog.log.revision_pins import (
    PINNED_BYTES,
    RESTARTS_MAX,
    HeldPin,
    RevisionPins,
    is_compacted,
)
from keys.catalog.old_log import MissingUpdate, OldLog
from keys.catalog.rebuild import TABLE_BYTES, Rebuild
from keys.catalog.snapshot_loading import load_snapshot, snapshots_in
from keys.model.snapshot.snapshots import SnapshotRef, SnapshotVersion, SnapshotVersionKey
from keys.store.kv import Get, Kv
from metasrv_base.errors import Conflict, MetaError, Refused, Unavailable

REBUILDS_MAX = 2  # at once: each is a thread, and there are two cores
REBUILT_BYTES = 256 << 20
"""Memory of all that is being rebuilt or kept, as far as it is not shared with the newest
catalog."""
TIMES_MAX = 1_024  # of which the version is known
WAIT_MS = 4_000
"""The time that a request waits for a rebuild: less than the 5 s for which a client lets one server
be silent. It is told to ask again then."""

log = structlog.get_logger()


class Bases(Protocol):
    """Catalogs that a rebuild can begin from."""

    async def oldest(self) -> tuple[int, int]:
        """The version of the oldest of them, and its commit time."""
        ...

    async def find(self, version: int) -> int:
        """The newest of them at or below *version*, with all updates above it in the log. Raises
        Refused("history-expired")."""
        ...

    async def load(self, version: int) -> Catalog:
        """The one that `find` named."""
        ...


@dataclass(frozen=True, slots=True)
class StoredBases:
    """The snapshots of the store; without any, the empty catalog before the first version."""

    kv: Kv
    deadline_ms: int
    pins: RevisionPins | None = None
    """Keep what is read from being compacted; None: nothing does."""

    async def oldest(self) -> tuple[int, int]:
        snapshots, _ = await self._snapshots()
        return (0, 0) if snapshots is None else (snapshots.floor, snapshots.kept[0].at_ms)

    async def find(self, version: int) -> int:
        snapshots, _ = await self._snapshots()
        if snapshots is None:
            return 0
        nearest = snapshots.nearest(version)
        if nearest is None:
            raise Refused("history-expired", version=version, oldest=snapshots.floor)
        return nearest.version

    async def load(self, version: int) -> Catalog:
        """Begins again where the revision that it reads is compacted, RESTARTS_MAX times.

        Raises Refused("history-expired") where the snapshot was deleted meanwhile;
        Unavailable("not-ready") where etcd was compacted once more.
        """
        for attempt in range(RESTARTS_MAX + 1):
            try:
                return await self._load(version)
            except Conflict as error:
                if not is_compacted(error):
                    raise
                self._note(version, attempt, error)
        raise Unavailable("not-ready", what=f"the catalog of version {version}")

    def _note(self, version: int, attempt: int, error: Conflict) -> None:
        if self.pins is not None:
            self.pins.restarts["rebuild"] += 1
        log.info("rebuild_restarted", version=version, attempt=attempt + 1, reason=str(error))

    async def _load(self, version: int) -> Catalog:
        ref, revision = await self._ref(version)
        if ref is None:
            return Catalog()
        if self.pins is None or ref.size_bytes < PINNED_BYTES:
            return await self._read(ref, revision)
        async with self.pins.pinned(f"a rebuild from version {version}") as pinned:
            ref, revision = await self._ref(version, pinned.revision)
            if ref is None:
                return Catalog()
            return await self._read(ref, revision, pinned.held)

    async def _read(self, ref: SnapshotRef, revision: int, held: HeldPin | None = None) -> Catalog:
        async def renew() -> None:
            if self.pins is not None:
                await self.pins.renew(held)

        return await load_snapshot(
            self.kv, ref, deadline_ms=self.deadline_ms, revision=revision, page_read=renew
        )

    async def _ref(self, version: int, revision: int = 0) -> tuple[SnapshotRef | None, int]:
        """The snapshot of *version*, and the revision at which it is there. None: there is none of
        any version."""
        snapshots, read_at = await self._snapshots(revision)
        if snapshots is None:
            return None, read_at
        ref = snapshots.nearest(version)
        if ref is None or ref.version != version:
            raise Refused("history-expired", version=version, oldest=snapshots.floor)
        return ref, read_at

    async def _snapshots(self, revision: int = 0) -> tuple[SnapshotVersion | None, int]:
        """The snapshots that are kept, and the revision at which they were: *revision*, or the
        newest (0)."""
        get = Get(bytes(SnapshotVersionKey()))
        page = await self.kv.range(get, deadline_ms=self.deadline_ms, revision=revision)
        return snapshots_in(page.items[0].value) if page.items else None, page.revision


class OldVersions:
    """`run` makes them; `at` is what requests ask."""

    def __init__(
        self, kv: Kv, follower: Follower, deadline_ms: int, pins: RevisionPins | None = None
    ) -> None:
        self.bases: Bases = StoredBases(kv, deadline_ms, pins)
        self._follower = follower
        self._log = OldLog(kv, deadline_ms)
        self._asked: asyncio.Queue[int] = asyncio.Queue(REBUILDS_MAX)
        self._under_way: dict[int, asyncio.Future[Catalog]] = {}
        self._kept: OrderedDict[int, tuple[Catalog, int]] = OrderedDict()
        """Versions with the bytes that count for each; the one that was read last is the last."""
        self._folds: dict[int, Rebuild] = {}
        """Rebuilds that hold tables, by their version."""
        self._times: OrderedDict[int, int] = OrderedDict()
        """Version as of a time in ms."""

    async def run(self) -> None:
        """Rebuilds what is asked for, for ever."""
        async with asyncio.TaskGroup() as rebuilding:
            while True:
                version = await self._asked.get()
                rebuilding.create_task(self._rebuild(version))

    async def at(self, version: int) -> Catalog:
        """The catalog of a version that was, however long ago. Requests for one version share its
        rebuild.

        Raises Refused("history-expired") below the log, Refused("unsupported") where the version
        needs more than REBUILT_BYTES; Unavailable("not-ready") while others are rebuilt, as many or
        as large as may be at once, or where it takes longer than WAIT_MS.
        """
        kept = self._kept.get(version)
        if kept is not None:
            self._kept.move_to_end(version)
            return kept[0]
        rebuilt = self._under_way.get(version)
        if rebuilt is None:
            if len(self._under_way) == REBUILDS_MAX:
                raise Unavailable("not-ready", what=f"the catalog of version {version}")
            rebuilt = self._under_way[version] = asyncio.get_running_loop().create_future()
            self._asked.put_nowait(version)
        try:
            async with asyncio.timeout(WAIT_MS / 1000):
                return await asyncio.shield(rebuilt)
        except TimeoutError as error:
            raise Unavailable("not-ready", what=f"the catalog of version {version}") from error

    async def version_at(self, at_ms: int) -> int:
        """The last version that was committed at or before *at_ms*, which is closed and before what
        memory holds; 0: none was. Raises Refused("history-expired")."""
        version = self._times.get(at_ms)
        if version is not None:
            return version
        oldest, oldest_ms = await self.bases.oldest()
        if oldest and at_ms < oldest_ms:
            raise Refused("history-expired", oldest=oldest)
        try:
            high = max(oldest, self._follower.oldest_version)
            version = await self._log.version_at(at_ms, oldest, high)
        except MissingUpdate as error:
            raise await self.explained(error) from error
        self._times[at_ms] = version
        if len(self._times) > TIMES_MAX:
            self._times.popitem(last=False)
        return version

    async def _rebuild(self, version: int) -> None:
        rebuilt = self._under_way[version]
        try:
            rebuilt.set_result(await self._rebuilt(version))
        except MetaError as error:
            rebuilt.set_exception(error)
        except Exception as error:
            log.exception("rebuild_failed", version=version)
            rebuilt.set_exception(error)
        finally:
            del self._under_way[version]
            if not rebuilt.done():  # this server ends
                rebuilt.set_exception(Unavailable("not-ready", what="this server"))
            rebuilt.exception()  # nobody may be waiting for it

    async def _rebuilt(self, version: int) -> Catalog:
        stored = await self.bases.find(version)
        nearest = max((kept for kept in self._kept if kept <= version), default=-1)
        base = self._kept[nearest][0] if nearest >= stored else await self.bases.load(stored)
        fold = Rebuild(base, self._follower.catalog, version)
        self._folds[version] = fold
        try:
            catalog = await self._log.rebuilt(fold, partial(self._must_fit, fold))
        except MissingUpdate as error:
            raise await self.explained(error) from error
        finally:
            del self._folds[version]
        self._keep(version, catalog, fold.held_bytes + TABLE_BYTES * len(catalog.tables))
        return catalog

    def _must_fit(self, fold: Rebuild) -> None:
        """Forgets what is kept for the sake of what is rebuilt. Raises Refused("unsupported") where
        *fold* alone is too large, Unavailable("not-ready") where another one leaves no room."""
        what = f"a read of version {fold.to}, of which {fold.held_bytes} bytes"
        if fold.held_bytes > REBUILT_BYTES:
            raise Refused("unsupported", what=f"{what} differ from later ones,")
        under_way = sum(other.held_bytes for other in self._folds.values())
        if under_way > REBUILT_BYTES:
            raise Unavailable("not-ready", what=f"the catalog of version {fold.to}")
        self._forget(REBUILT_BYTES - under_way, left=0)

    def _keep(self, version: int, catalog: Catalog, size_bytes: int) -> None:
        """Keeps it, and forgets those that nobody has read for longest; never itself."""
        self._kept[version] = catalog, size_bytes
        under_way = sum(fold.held_bytes for fold in self._folds.values())
        self._forget(REBUILT_BYTES - under_way, left=1)

    def _forget(self, bytes_max: int, *, left: int) -> None:
        """Forgets those that nobody has read for longest, until *bytes_max* have room for the rest,
        or *left* of them are left."""
        total = sum(size for _, size in self._kept.values())
        while total > bytes_max and len(self._kept) > left:
            _, (_, size) = self._kept.popitem(last=False)
            total -= size

    async def explained(self, error: MissingUpdate) -> MetaError:
        """The error to raise for an update that is missing: history-expired, if a snapshot was made
        meanwhile and the log begins above it now."""
        missing = error.facts["version"]
        assert isinstance(missing, int)
        try:
            await self.bases.find(missing - 1)
        except Refused as expired:
            return expired
        return error
