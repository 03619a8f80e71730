"""Snapshots of the catalog and the deletion of the log below them: a task of the leader.

A snapshot is made when the log above the last one is as large as it, or on request. What is older
than the history that is kept, and pinned by nobody, is deleted then, and etcd is told to forget
old revisions.
"""

from collections import deque
from contextlib import suppress

import structlog

from keys.catalog.follower import Follower
from keys.catalog.log.handlers import SnapshotEntry
from keys.catalog.log.revision_pins import compactable, revision_pins
from keys.catalog.snapshot_writing import SnapshotWriter
from keys.commit.batch import VERSION_KEY
from keys.store.kv import Get, Kv
from metasrv.leadership.log.log_pins import delete_expired, delete_unread, log_pins
from metasrv.leadership.log.log_policy import HistoryLimits, floor_for, is_due
from metasrv.leadership.snapshot_requests import Compacted, SnapshotRequest
from metasrv.leadership.term import Term
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, Corrupt, MetaError, NotLeader, Unavailable, Unknown

EVERY_MS = 10_000
STORE_HISTORY_MS = 15 * 60_000
"""The time for which etcd keeps old revisions: longer than a server takes to load, or a backup of
a million keys."""
STORE_EVERY_MS = 60_000

log = structlog.get_logger()


class LogCompaction:
    """The compaction of one term."""

    def __init__(self, term: Term, kv: Kv, follower: Follower, clock: Clock) -> None:
        self._term = term
        self._kv = kv
        self._follower = follower
        self._clock = clock
        self._deadline_ms = term.ports.deadline_ms
        self._writer = SnapshotWriter(kv, term.committer, deadline_ms=self._deadline_ms)
        self._is_tidy = False
        """Whether what earlier terms have left over is deleted."""
        self._revisions: deque[tuple[int, int]] = deque()
        """Monotonic time -> revision of the store then, oldest first."""

    async def run(self) -> None:
        """Runs until the term ends. Begins once every record has been read: a procedure may pin."""
        requests = self._term.snapshot_requests
        try:
            await self._term.ready.wait()
            while True:
                request = await requests.next(EVERY_MS)
                if request is not None or self._has_work():
                    await self._turn(request)
                with suppress(Unavailable, Unknown, Conflict):  # the next minute is soon enough
                    await self.compact_store()
        finally:
            requests.end(NotLeader(term=self._term.number))

    async def _turn(self, request: SnapshotRequest | None) -> None:
        try:
            compacted = await self.compact(request)
        except MetaError as error:
            if request is not None:
                request.fail(error)
            if isinstance(error, Corrupt):
                raise
            log.info("catalog_not_compacted", error=error.code)  # tried again in EVERY_MS
        else:
            if request is not None:
                request.succeed(compacted)

    def _has_work(self) -> bool:
        """Whether the store has to be asked: a server without changes reads nothing for this."""
        follower, snapshots = self._follower, self._follower.log.snapshots
        newest = 0 if snapshots is None else snapshots.newest.version
        if is_due(snapshots, follower.log.sizes.between(newest, follower.catalog.version)):
            return True
        has_history = snapshots is not None and len(snapshots.kept) > 1
        return has_history or not self._is_tidy

    async def compact(self, request: SnapshotRequest | None = None) -> Compacted:
        """Makes a snapshot if one is due, and deletes what is older than the history that is kept.

        Raises as reads and `Committer.commit`.
        """
        now_ms = self._clock.wall_ms()
        follower, catalog = self._follower, self._follower.catalog
        stored = await self._writer.read()
        log_bytes = follower.log.sizes.between(stored.newest, catalog.version)
        made = False
        if request is not None or is_due(stored.value, log_bytes):
            made = await follower.log.save_snapshot(
                SnapshotEntry(catalog), log_bytes=log_bytes, now_ms=now_ms
            )
        await delete_expired(self._term, now_ms)
        stored, raised = await self._writer.read(), False
        if stored.value is not None:
            pins = await log_pins(self._term, now_ms)
            floor = floor_for(stored.kept, self._limits(request), pins, now_ms)
            raised = await self._writer.raise_floor(floor)
        deleted = 0
        self._is_tidy = self._is_tidy and not raised
        if not self._is_tidy:
            deleted = await self._writer.collect()
            self._is_tidy = True
            stored = await self._writer.read()
        if made or deleted:
            log.info(
                "catalog_compacted",
                version=stored.newest,
                made=made,
                floor=stored.floor,
                deleted=deleted,
            )
        return Compacted(stored.newest, made, stored.floor, deleted)

    def _limits(self, request: SnapshotRequest | None) -> HistoryLimits:
        if request is not None and request.drops_history:
            return HistoryLimits(0, 0)
        values = self._term.settings.values
        return HistoryLimits(values.catalog_history_ms, values.catalog_history_bytes_max)

    async def compact_store(self) -> None:
        """Tells etcd to forget revisions that are older than STORE_HISTORY_MS and not pinned.

        A pin that is written after the pins were read pins a later revision than any compacted
        here, however late this server compacts, and whether it leads by then or not.
        """
        now_ms = self._clock.mono_ms()
        if self._revisions and now_ms - self._revisions[-1][0] < STORE_EVERY_MS:
            return
        page = await self._kv.range(Get(VERSION_KEY), deadline_ms=self._deadline_ms)
        self._revisions.append((now_ms, page.revision))
        old = None
        while self._revisions[0][0] <= now_ms - STORE_HISTORY_MS:
            _, old = self._revisions.popleft()
        if old is None:
            return
        wall_ms = self._clock.wall_ms()
        pins = await revision_pins(self._kv, deadline_ms=self._deadline_ms)  # after `old`
        await delete_unread(self._term, pins, wall_ms)
        bound = compactable(old, pins, wall_ms)
        if bound < old:
            by = next(pin.value.what for pin in pins if pin.revision == bound)
            log.info("store_compaction_limited", wanted=old, compacted=bound, by=by)
        await self._kv.compact(bound, deadline_ms=self._deadline_ms)
