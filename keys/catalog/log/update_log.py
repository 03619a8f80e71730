"""The log of catalog updates with its four calls: append, save a snapshot, register a handler, and
start, which replays. What was appended comes back through the handlers alone."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from keys.catalog.log.collection import uncollected
from keys.catalog.log.handlers import (
    BEHIND_MAX,
    HandlerQueue,
    LogEvent,
    RunningHandler,
    SnapshotEntry,
    UpdateHandler,
)
from keys.catalog.log.loading import PAUSE_MS, HeadReader, LogEnd, Retries
from keys.catalog.log.revision_pins import RevisionPins
from keys.catalog.log.watched import (
    WATCHED,
    LogNews,
    logged_bytes,
    newest_in,
    news_of,
    updates_in,
)
from keys.catalog.log_sizes import LogSizes
from keys.catalog.snapshot_loading import load_snapshot, read_snapshots
from keys.catalog.snapshot_writing import SnapshotWriter
from keys.commit.batch import VERSION_KEY
from keys.commit.committer import Committer, VersionTaken
from keys.commit.handling import must_not_be_handling
from keys.commit.staged_parts import whole_update
from keys.commit.txn import Txn
from keys.key import Range
from keys.model.log import CatalogUpdate, CatalogUpdateKey
from keys.model.origin import Origin
from keys.model.snapshot.snapshots import SnapshotVersion
from keys.store.kv import PAGE_KEYS_MAX, Get, Kv
from keys.store.scan import pages
from keys.value import decode
from metasrv_base.clock import Clock
from metasrv_base.errors import Corrupt, MetaError, NotLeader, Refused, Unavailable

APPLIED_AT_ONCE = 128  # updates between two yields of the event loop: some 10 ms of small tables


@dataclass(frozen=True, slots=True)
class VersionedUpdate:
    """A change of metadata with the version that it is to be: one more than the newest."""

    version: int
    txn: Txn
    """Its log entries, the keys that follow from them, and what was read (`change`)."""
    procedure: str | None = None
    origin: Origin | None = None


class UpdateLog:
    """One server's view of the log. `version` is the newest that counts: its handlers have ended.

    The leader's committer hands its own updates over (`offer`); everything else comes by watch.
    """

    def __init__(
        self,
        kv: Kv,
        clock: Clock,
        *,
        deadline_ms: int,
        counted: Callable[[], None] | None = None,
        pins: RevisionPins | None = None,
    ) -> None:
        """*counted* is called with each event as it counts, before anybody who waits for it.
        *pins*: keep what is loaded from being compacted; None: nothing does."""
        self._kv = kv
        self._clock = clock
        self._deadline_ms = deadline_ms
        self._tell_counted = counted
        self._heads = HeadReader(kv, deadline_ms, pins)
        self.retries = Retries(clock)
        self._queue = HandlerQueue(clock, self._counted)
        self._committer: Committer | None = None
        self._begin_draining: Callable[[], object] | None = None
        """Starts a task of `follow`, while that runs."""
        self._is_started = False
        self._moved = asyncio.Event()
        self._counting: dict[int, asyncio.Future[None]] = {}
        """Versions that were offered and do not count yet."""
        self._closing: dict[int, int] = {}
        """Version -> wall clock that is closed once it counts."""
        self._closed_ms = 0
        self._newest_revision = 0
        """Revision of the newest catalog version seen in the store."""
        self.version = 0
        self.revision = 0
        self.at_ms = 0
        self.taken = 0
        """The newest version that handlers were given."""
        self.sizes = LogSizes()
        """Sizes of the updates above the newest snapshot."""
        self.snapshots: SnapshotVersion | None = None
        """The snapshots that are kept, as far as the watch has told; None: the log has all."""
        self.loaded = asyncio.Event()
        """Set once everything that stood in the log at the start counts."""
        self.heard_at_ms: int | None = None
        """Monotonic time before the last read that the store answered; None: never."""

    # The four calls ------------------------------------------------------------------------------

    async def append(self, update: VersionedUpdate) -> bool:
        """Appends *update*; it counts here when this returns True. False: its version exists, or
        is not the next one; nothing was done.

        Raises as `Committer.commit`; NotLeader also if this server never led.
        """
        if self._committer is None:
            raise NotLeader(term=0)
        try:
            await self._committer.commit_as(
                update.version, update.txn, procedure=update.procedure, origin=update.origin
            )
        except VersionTaken:
            return False
        return True

    async def save_snapshot(self, entry: SnapshotEntry, *, log_bytes: int, now_ms: int) -> bool:
        """Writes and adopts a snapshot of *entry*; False: an equal or newer one exists. Updates
        below it stay for as long as their history is kept. Raises as `SnapshotWriter.save`."""
        if self._committer is None:
            raise NotLeader(term=0)
        writer = SnapshotWriter(self._kv, self._committer, deadline_ms=self._deadline_ms)
        return await writer.save(entry.catalog, log_bytes=log_bytes, now_ms=now_ms)

    def register_update_handler(self, name: str, handler: UpdateHandler) -> None:
        """*handler* is called with each event of the log from the start on. Only before `start`."""
        assert not self._is_started, "handlers are registered before the log starts"
        self._queue.register(name, handler)

    async def start(self) -> int:
        """Replays the log: the newest snapshot, then each update above it. Returns the revision up
        to which everything counts. Waits for a silent store. Raises Corrupt."""
        assert not self._is_started, "the log is started once"
        assert not self._queue.is_empty, "a log without a handler cannot be started"
        self._is_started = True
        return await self.retries.until_done(self.load)

    # Handlers ------------------------------------------------------------------------------------

    @property
    def running(self) -> RunningHandler | None:
        """The handler that has not ended."""
        return self._queue.running

    def on_slow(self, tell: Callable[[RunningHandler], None]) -> None:
        """*tell* hears of each handler that takes longer than SLOW_MS, while it runs."""
        self._queue.on_slow.append(tell)

    def lead(self, committer: Committer) -> None:
        """Appends go through *committer* from now on, and its updates come here first."""
        self._committer = committer
        committer.on_update(self.offer)

    def offer(self, update: CatalogUpdate, revision: int) -> asyncio.Future[None] | None:
        """Hands *update* to the handlers if it is the next one; a repeat is ignored. None: it
        counts; else what ends when it does. Raises Corrupt for a gap."""
        if update.version > self.taken:
            if update.version != self.taken + 1:
                raise Corrupt(log="gap", expected=self.taken + 1, found=update.version)
            self._put(update, revision)
        if update.version <= self.version:
            return None
        if update.version not in self._counting:
            self._counting[update.version] = asyncio.get_running_loop().create_future()
        return self._counting[update.version]

    def _put(self, event: LogEvent, revision: int) -> None:
        assert not self._queue.is_empty, "a log without a handler cannot be read"
        self._queue.put(event, revision)
        self.taken = event.version
        if self._queue.needs_draining and self._begin_draining is not None:
            self._begin_draining()

    def _counted(self, event: LogEvent, revision: int) -> None:
        if self._tell_counted is not None:
            self._tell_counted()
        self.version, self.revision, self.at_ms = event.version, revision, event.at_ms
        if self._closing:
            self.close(self._closing.pop(self.version, 0))
        if self._counting:
            ended = self._counting.pop(self.version, None)
            if ended is not None and not ended.done():
                ended.set_result(None)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def _settle(self, left: int = 0) -> None:
        """Waits until at most *left* events wait for handlers."""
        if len(self._queue) <= left:
            return
        if self._queue.needs_draining:
            await self._queue.drain()
        while len(self._queue) > left:
            await self._moved.wait()

    # Waiting -------------------------------------------------------------------------------------

    async def wait_for(self, version: int, *, deadline_ms: int) -> None:
        """Waits until *version* counts. Raises Unavailable("stale") if it takes too long."""
        if self.version >= version:
            return
        must_not_be_handling("wait for a version")
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                while self.version < version:
                    await self._moved.wait()
        except TimeoutError as error:
            raise Unavailable("stale", version=self.version, wanted=version) from error

    async def moved(self, after: int) -> None:
        """Waits until a version newer than *after* counts."""
        must_not_be_handling("wait for a version")
        while self.version <= after:
            await self._moved.wait()

    @property
    def floor(self) -> int:
        """The oldest version that the store still tells; the log has each update above it."""
        return 0 if self.snapshots is None else self.snapshots.floor

    @property
    def lag_revisions(self) -> int:
        """Revisions by which this server is behind the store, as of the last look at the store."""
        return max(0, self._newest_revision - self.revision)

    @property
    def closed_ms(self) -> int:
        """Every version that bears this time or an earlier one counts, and there will never be
        another."""
        return max(self.at_ms, self._closed_ms)

    def close(self, until_ms: int) -> None:
        """Notes that every update with a commit time up to *until_ms*, wall clock, counts here."""
        self._closed_ms = max(self._closed_ms, until_ms)

    # Reading the store ---------------------------------------------------------------------------

    async def load(self) -> int:
        """Takes what the store holds beyond this log; returns the revision it was read at, once
        all of it counts.

        Part by part: whoever else is to run has a turn in between. The parts are cut by number, for
        of a range that has many pages etcd counts all that is left for each of them.
        """
        before = self._clock.mono_ms()
        async with self._heads.head(self.taken) as head:
            with uncollected():
                await self._jump(head)
                counted = min(self.taken, self.sizes.newest)  # a leader's own are not counted
                for first in range(counted + 1, head.newest + 1, PAGE_KEYS_MAX):
                    await self._load_part(first, head)
        if self.taken < head.newest:
            raise Corrupt(log="gap", expected=head.newest, found=self.taken)
        await self._settle()
        self.heard_at_ms = before
        self.loaded.set()
        return head.revision

    async def _jump(self, head: LogEnd) -> None:
        """Takes the newest snapshot where nothing was taken yet, or the log does not reach back to
        what was."""
        snapshots = head.snapshots
        self._note(snapshots)
        if snapshots is None or (self.taken and self.taken >= snapshots.floor):
            return
        catalog = await load_snapshot(
            self._kv,
            snapshots.newest,
            deadline_ms=self._deadline_ms,
            revision=head.revision,
            page_read=partial(self._heads.renew, head),
        )
        if catalog.version > self.taken:
            self._put(SnapshotEntry(catalog), catalog.revision)

    def _note(self, snapshots: SnapshotVersion | None) -> None:
        self.snapshots = snapshots
        if snapshots is not None:
            self.sizes.forget(snapshots.newest.version)

    async def _load_part(self, first: int, head: LogEnd) -> None:
        behind, revision = CatalogUpdateKey(first + PAGE_KEYS_MAX), head.revision
        part = Range(bytes(CatalogUpdateKey(first)), bytes(behind))
        async for page in pages(self._kv, part, deadline_ms=self._deadline_ms, revision=revision):
            for number, item in enumerate(page.items, start=1):
                update = decode(CatalogUpdate, item.value, key=item.key.decode())
                self.sizes.note(update.version, logged_bytes(item.value))
                if update.version > self.taken:
                    update = await whole_update(
                        self._kv, update, deadline_ms=self._deadline_ms, revision=revision
                    )
                    self.offer(update, item.mod_revision)
                    await self._settle(_left_beside([update]))
                if number % APPLIED_AT_ONCE == 0:
                    await asyncio.sleep(0)
                    await self._settle(BEHIND_MAX)
                    await self._heads.renew(head)

    async def follow(self) -> None:
        """Starts, then follows for ever. Raises Corrupt if the log contradicts itself, what a
        handler raises, and as `Retries.until_done`."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._begin_draining = lambda: tasks.create_task(self._queue.drain())
                await self._follow()
        except ExceptionGroup as group:
            raise group.exceptions[0] from group
        finally:
            self._begin_draining = None

    async def _follow(self) -> None:
        load = self.retries.until_done
        revision = await (load(self.load) if self._is_started else self.start())
        while True:
            try:
                watch = self._kv.watch(*WATCHED, start_revision=revision + 1)
                async for watched in watch:
                    await self._learn_floor(log_news := news_of(watched))
                    updates = await updates_in(
                        self._kv, log_news, after=self.taken, deadline_ms=self._deadline_ms
                    )
                    self._take(log_news, updates)
                    await self._settle(_left_beside(updates))
            except Corrupt:
                raise
            except MetaError as error:  # silent, or compacted under us
                self.retries.watch_ended(error)
                await self._clock.sleep_ms(PAUSE_MS)
            revision = await load(self.load)

    async def listen(self) -> None:
        """Runs for ever: checks at intervals that this log is not older than the store."""
        while True:
            await self._clock.sleep_ms(self._deadline_ms // 2)
            with suppress(Unavailable, Refused):
                await self.look()

    async def look(self) -> None:
        """Checks once that what counts here is as new as the store. Raises Unavailable if the store
        is silent or this log is older."""
        before = self._clock.mono_ms()
        page = await self._kv.range(Get(VERSION_KEY), deadline_ms=self._deadline_ms)
        if page.items:
            (item,) = page.items
            self._newest_revision = item.mod_revision
            stored = newest_in(item.value)
            await self.wait_for(stored.version, deadline_ms=self._deadline_ms)
            self.close(stored.at_ms)
        self.heard_at_ms = before

    async def _learn_floor(self, log_news: LogNews) -> None:
        """Reads the floor where an update above it was deleted: a watch of etcd 3.4 may have lost
        the event that raised it."""
        if log_news.snapshots is not None:
            self._note(log_news.snapshots)
        if log_news.newest_deleted > self.floor:
            self._note(await read_snapshots(self._kv, deadline_ms=self._deadline_ms))
        if log_news.newest_deleted > self.floor:
            raise Corrupt(log="deleted", key=str(CatalogUpdateKey(log_news.newest_deleted)))

    def _take(self, log_news: LogNews, updates: Sequence[CatalogUpdate]) -> None:
        """The updates of one revision, up to the version that the same revision declares."""
        if log_news.stored is None:
            if log_news.added:
                raise Corrupt(log="update without version", revision=log_news.revision)
            return
        for version, raw in log_news.added:
            self.sizes.note(version, logged_bytes(raw))
        if (
            log_news.stored.version > self.taken
        ):  # else a leader's own: its committer handed it over
            newest = log_news.added[-1][0] if log_news.added else log_news.stored.version
            if newest != log_news.stored.version:
                raise Corrupt(log="version", declared=log_news.stored.version, found=newest)
            for update in updates:
                self.offer(update, log_news.revision)
        if log_news.stored.version <= self.version:
            self.close(log_news.stored.at_ms)
        else:
            self._closing[log_news.stored.version] = log_news.stored.at_ms


def _left_beside(updates: Iterable[CatalogUpdate]) -> int:
    """Events that may wait for handlers beside *updates*, before more is read: none beside one in
    parts, which has thousands of entries."""
    return 0 if any(update.staged is not None for update in updates) else BEHIND_MAX
