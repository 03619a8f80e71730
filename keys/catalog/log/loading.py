"""The end of the log that a server loads up to, kept from being compacted while it reads."""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from keys.catalog.log.revision_pins import (
    PINNED_BYTES,
    RESTARTS_MAX,
    HeldPin,
    RevisionPins,
    is_compacted,
)
from keys.catalog.log.watched import SNAPSHOTS_KEY, newest_in
from keys.catalog.snapshot_loading import snapshots_in
from keys.commit.batch import VERSION_KEY
from keys.model.cluster import ClusterKey
from keys.model.snapshot.snapshots import SnapshotVersion
from keys.store.kv import PAGE_KEYS_MAX, Get, KeyValue, Kv
from metasrv_base.clock import Clock
from metasrv_base.errors import Corrupt, MetaError, Unavailable

PAUSE_MS = 200  # between attempts to reach a silent store
HEAD = (Get(VERSION_KEY), Get(SNAPSHOTS_KEY))

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of the log, and its snapshots, at one revision of the store."""

    revision: int
    newest: int
    """The newest version; 0: there is none."""
    snapshots: SnapshotVersion | None
    pin: HeldPin | None = None
    """Keeps the revision from being compacted, as long as it is renewed."""

    def takes_long(self, own_version: int) -> bool:
        """Whether a server that has version *own_version* reads for more than some seconds."""
        base = own_version
        if self.snapshots is not None and (not own_version or own_version < self.snapshots.floor):
            if self.snapshots.newest.size_bytes >= PINNED_BYTES:
                return True
            base = self.snapshots.newest.version
        return self.newest - base > PAGE_KEYS_MAX


@dataclass(frozen=True, slots=True)
class HeadReader:
    """Reads where the log ends, and pins that revision for whoever has much to read."""

    kv: Kv
    deadline_ms: int
    pins: RevisionPins | None = None

    @asynccontextmanager
    async def head(self, own_version: int) -> AsyncGenerator[LogEnd]:
        """The end of the log for a server at version *own_version*. A pin ends with the block.

        Nothing is written where there is no cluster: an empty prefix stays empty, and so does one
        that a restore fills. Raises as reads.
        """
        page = await self.kv.range(HEAD[0], deadline_ms=self.deadline_ms)
        stored = await self.kv.range(HEAD[1], deadline_ms=self.deadline_ms, revision=page.revision)
        head = _head(page.revision, page.items, stored.items)
        if self.pins is None or not head.takes_long(own_version) or not await self._has_cluster():
            yield head
            return
        pinned = await self.pins.take("a server that loads", HEAD)
        if pinned.held is not None:
            version, snapshots = pinned.ranges
            head = _head(pinned.revision, version, snapshots, pinned.held)
        try:
            yield head
        finally:
            await self.pins.release(pinned.held)

    async def renew(self, head: LogEnd) -> None:
        """Call it between two pages."""
        if self.pins is not None:
            await self.pins.renew(head.pin)

    async def _has_cluster(self) -> bool:
        page = await self.kv.range(Get(bytes(ClusterKey())), deadline_ms=self.deadline_ms)
        return bool(page.items)


def _head(
    revision: int,
    version: tuple[KeyValue, ...],
    snapshots: tuple[KeyValue, ...],
    pin: HeldPin | None = None,
) -> LogEnd:
    newest = newest_in(version[0].value).version if version else 0
    kept = snapshots_in(snapshots[0].value) if snapshots else None
    return LogEnd(revision, newest, kept, pin)


@dataclass(slots=True)
class Retries:
    """Repeats a load until it is done. A silent store is waited for; a store that is compacted
    under the reader again and again is not."""

    clock: Clock
    restarts: Counter[str] = field(default_factory=Counter)
    """Times that a read began again because etcd was compacted: of a `load`, of a `watch`."""

    async def until_done(self, load: Callable[[], Awaitable[int]]) -> int:
        """Raises Corrupt; Unavailable("not-ready") where etcd was compacted under more than
        RESTARTS_MAX loads one after the other."""
        compacted, last = 0, ""
        while True:
            try:
                return await load()
            except Corrupt:
                raise
            except MetaError as error:
                if is_compacted(error):
                    compacted += 1
                    self._begins_again(error, compacted)
                elif error.code != last:
                    log.info("catalog_load_deferred", reason=error.code)
                last = error.code
                await self.clock.sleep_ms(PAUSE_MS)

    def watch_ended(self, error: MetaError) -> None:
        """Notes that a watch has ended by *error*; what was missed is read by a load."""
        if is_compacted(error):
            self.restarts["watch"] += 1
            log.info("catalog_watch_restarted", reason=str(error))

    def _begins_again(self, error: MetaError, compacted: int) -> None:
        if compacted > RESTARTS_MAX:
            log.error("catalog_load_failed", reason=str(error), restarts=RESTARTS_MAX)
            raise Unavailable(
                "not-ready", what="the catalog", reason="etcd is compacted while it is read"
            ) from error
        self.restarts["load"] += 1
        log.warning("catalog_load_restarted", reason=str(error), attempt=compacted)
