"""One server's catalog: loaded from a snapshot and the log, then moved forward by the log alone."""

import asyncio
import gc
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from keys.catalog.catalog import Catalog
from keys.catalog.log_sizes import LogSizes
from keys.catalog.snapshot_loading import load_snapshot, read_snapshots, snapshots_in
from keys.commit.batch import VERSION_KEY
from keys.commit.staging import MissingParts, is_staged, whole_update
from keys.key import Range
from keys.model.log import CatalogUpdate, CatalogUpdateKey, CatalogVersion
from keys.model.snapshot.snapshots import SnapshotVersion, SnapshotVersionKey
from keys.store.kv import PAGE_KEYS_MAX, Event, Get, Kv, Watched
from keys.store.scan import pages
from keys.value import decode
from metasrv_base.clock import Clock
from metasrv_base.errors import Corrupt, MetaError, Refused, Unavailable

VERSIONS_KEPT = 1_024  # older versions in memory, for pages bound to one; they share what is equal
HELD_MAX = 65_536  # versions kept for a reader of a snapshot: a quarter of an hour of many changes
PAUSE_MS = 200  # between attempts to reach a silent store
NEW_OBJECTS_MAX = 8_000  # left to the collector after a load, as many as SURVIVORS_MAX of a server
APPLIED_AT_ONCE = 128  # updates between two yields of the event loop: some 10 ms of small tables
SNAPSHOTS_KEY = bytes(SnapshotVersionKey())
WATCHED = Range(SNAPSHOTS_KEY, VERSION_KEY + b"\0")
"""The key that names the snapshots, the updates and the version, in this order; parts of snapshots
sort before them."""


class Follower:
    """`catalog` is always a version that existed; versions never go back.

    Applying an update reads nothing from the store. The leader's committer hands its own updates
    over directly (`offer`); everything else comes by watch. A follower whose next update was
    compacted away takes the newest snapshot instead, and goes on above it.
    """

    def __init__(self, kv: Kv, clock: Clock, *, deadline_ms: int) -> None:
        self._kv = kv
        self._clock = clock
        self._deadline_ms = deadline_ms
        self._kept: OrderedDict[int, Catalog] = OrderedDict({0: Catalog()})
        self._updates: OrderedDict[int, CatalogUpdate] = OrderedDict()
        self._held: list[int] = []
        """Versions beyond which everything is kept."""
        self._moved = asyncio.Event()
        self.sizes = LogSizes()
        """Sizes of the updates above the newest snapshot."""
        self.snapshots: SnapshotVersion | None = None
        """The snapshots that are kept, as far as the watch has told; None: the log has all."""
        self.loaded = asyncio.Event()
        """Set once everything that stood in the log at the start has been applied."""
        self.catalog = Catalog()
        self.heard_at_ms: int | None = None
        """Monotonic time before the last read that the store answered; None: never."""
        self._closed_ms = 0
        self._newest_revision = 0
        """Revision of the newest catalog version seen in the store."""

    @property
    def lag_revisions(self) -> int:
        """Revisions by which this catalog is behind the store, as of the last look at the store."""
        return max(0, self._newest_revision - self.catalog.revision)

    @property
    def closed_ms(self) -> int:
        """The commit of every version that bears this time or an earlier one has been applied, and
        there will never be another."""
        return max(self.catalog.at_ms, self._closed_ms)

    def close(self, until_ms: int) -> None:
        """Notes that every update with a commit time up to *until_ms*, wall clock, is applied
        here."""
        self._closed_ms = max(self._closed_ms, until_ms)

    async def wait_for(self, version: int, *, deadline_ms: int) -> Catalog:
        """The catalog at *version* or newer. Raises Unavailable("stale") if it takes too long."""
        if self.catalog.version >= version:
            return self.catalog
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                while self.catalog.version < version:
                    await self._moved.wait()
        except TimeoutError as error:
            raise Unavailable("stale", version=self.catalog.version, wanted=version) from error
        return self.catalog

    async def changed(self, after: int) -> Catalog:
        """The catalog as soon as it is newer than version *after*."""
        while self.catalog.version <= after:
            await self._moved.wait()
        return self.catalog

    @property
    def floor(self) -> int:
        """The oldest version that the store still tells; the log has each update above it."""
        return 0 if self.snapshots is None else self.snapshots.floor

    def at(self, version: int) -> Catalog | None:
        """Returns the catalog at exactly that version; None: it is not kept any more."""
        return self._kept.get(version)

    @property
    def oldest_version(self) -> int:
        """The oldest version that is kept; updates are kept of those above it."""
        return next(iter(self._kept), self.catalog.version)

    def update(self, version: int) -> CatalogUpdate | None:
        """The update that made that version, if it is still kept; so is then the version itself."""
        return self._updates.get(version)

    def offer(self, update: CatalogUpdate, revision: int) -> None:
        """Applies *update* if it is the next one; a repeat is ignored. Raises Corrupt for a gap."""
        if update.version <= self.catalog.version:
            return
        self.catalog = self.catalog.apply(update, revision)
        self._kept[self.catalog.version] = self.catalog
        self._updates[self.catalog.version] = update
        self._forget()
        self._wake()

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    @contextmanager
    def hold(self, version: int) -> Iterator[None]:
        """Keeps what follows *version*, as far as HELD_MAX versions hold it."""
        self._held.append(version)
        try:
            yield
        finally:
            self._held.remove(version)

    def _forget(self) -> None:
        """Versions that are neither among the newest nor held; each update goes with its own."""
        newest = self.catalog.version
        before = min([newest - VERSIONS_KEPT, *self._held])
        oldest = max(before, newest - HELD_MAX)
        while next(iter(self._kept)) <= oldest:
            version, _ = self._kept.popitem(last=False)
            self._updates.pop(version, None)

    async def load(self) -> int:
        """Applies what the store holds beyond this catalog; the revision it was read at.

        Part by part: whoever else is to run has a turn in between. The parts are cut by number, for
        of a range that has many pages etcd counts all that is left for each of them.
        """
        before = self._clock.mono_ms()
        head = await self._kv.range(Get(VERSION_KEY), deadline_ms=self._deadline_ms)
        newest = _version_in(head.items[0].value).version if head.items else 0
        with _uncollected():
            await self._jump(head.revision)
            counted = min(self.catalog.version, self.sizes.newest)  # a leader's own are not counted
            for first in range(counted + 1, newest + 1, PAGE_KEYS_MAX):
                await self._load_part(first, head.revision)
        if self.catalog.version < newest:
            raise Corrupt(log="gap", expected=newest, found=self.catalog.version)
        self.heard_at_ms = before
        self.loaded.set()
        return head.revision

    async def _jump(self, revision: int) -> None:
        """Takes the newest snapshot where this catalog is empty, or the log does not reach back to
        it."""
        snapshots = await read_snapshots(self._kv, deadline_ms=self._deadline_ms, revision=revision)
        self._note(snapshots)
        version = self.catalog.version
        if snapshots is None or (version and version >= snapshots.floor):
            return
        catalog = await load_snapshot(
            self._kv, snapshots.newest, deadline_ms=self._deadline_ms, revision=revision
        )
        if catalog.version <= self.catalog.version:
            return
        self.catalog = catalog
        self._kept = OrderedDict({catalog.version: catalog})
        self._updates.clear()
        self._wake()

    def _note(self, snapshots: SnapshotVersion | None) -> None:
        self.snapshots = snapshots
        if snapshots is not None:
            self.sizes.forget(snapshots.newest.version)

    async def _load_part(self, first: int, revision: int) -> None:
        behind = CatalogUpdateKey(first + PAGE_KEYS_MAX)
        part = Range(bytes(CatalogUpdateKey(first)), bytes(behind))
        async for page in pages(self._kv, part, deadline_ms=self._deadline_ms, revision=revision):
            for number, item in enumerate(page.items, start=1):
                update = decode(CatalogUpdate, item.value, key=item.key.decode())
                self._note_size(update, len(item.value))
                if update.version > self.catalog.version:
                    self.offer(await self._whole(update, revision), item.mod_revision)
                if number % APPLIED_AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def follow(self) -> None:
        """Loads, then follows for ever. Raises Corrupt if the log contradicts itself."""
        while True:
            try:
                revision = await self.load()
                watch = self._kv.watch(*WATCHED, start_revision=revision + 1)
                async for watched in watch:
                    await self._learn_floor(watched)
                    self._take(watched, await self._updates_in(watched))
            except Corrupt:
                raise
            except MetaError:  # silent, or compacted under us, or it refuses us for a moment
                await self._clock.sleep_ms(PAUSE_MS)

    async def listen(self) -> None:
        """Runs for ever: checks at intervals that this catalog is not older than the store."""
        while True:
            await self._clock.sleep_ms(self._deadline_ms // 2)
            with suppress(Unavailable, Refused):
                await self.look()

    async def look(self) -> None:
        """Checks once that this catalog is as new as the store. Raises Unavailable if the store
        is silent or this catalog is older."""
        before = self._clock.mono_ms()
        page = await self._kv.range(Get(VERSION_KEY), deadline_ms=self._deadline_ms)
        if page.items:
            (item,) = page.items
            self._newest_revision = item.mod_revision
            stored = _version_in(item.value)
            await self.wait_for(stored.version, deadline_ms=self._deadline_ms)
            self.close(stored.at_ms)
        self.heard_at_ms = before

    async def _updates_in(self, watched: Watched) -> tuple[CatalogUpdate, ...]:
        """The updates of one revision that are not applied yet, whole, in order. Raises Unavailable
        where parts of one have gone since: the log begins above it."""
        new: list[CatalogUpdate] = []
        for event in watched.events:
            if event.value is None or event.key in (VERSION_KEY, SNAPSHOTS_KEY):
                continue
            version = self._version(event)
            if version > self.catalog.version or is_staged(event.value):
                update = _update_in(event)
                self._note_size(update, len(event.value))
                new.append(update)
            else:  # a leader's own: its committer handed it over
                self.sizes.note(version, len(event.value))
        new = [update for update in new if update.version > self.catalog.version]
        try:
            whole = [await self._whole(update, 0) for update in new]
        except MissingParts as error:
            raise Unavailable(what="an update", reason="its parts were deleted") from error
        return tuple(sorted(whole, key=lambda update: update.version))

    async def _whole(self, update: CatalogUpdate, revision: int) -> CatalogUpdate:
        return await whole_update(
            self._kv, update, deadline_ms=self._deadline_ms, revision=revision
        )

    def _note_size(self, update: CatalogUpdate, size_bytes: int) -> None:
        parts = 0 if update.staged is None else update.staged.size_bytes
        self.sizes.note(update.version, size_bytes + parts)

    def _take(self, watched: Watched, updates: Sequence[CatalogUpdate]) -> None:
        """The updates of one revision, up to the version that the same revision declares."""
        declared = [e for e in watched.events if e.key == VERSION_KEY]
        for event in watched.events:
            if event.key == SNAPSHOTS_KEY and event.value is not None:
                self._note(snapshots_in(event.value))
        logged = [e for e in watched.events if e.key not in (VERSION_KEY, SNAPSHOTS_KEY)]
        added = [event for event in logged if not self._is_compacted(event)]
        if not declared and not added:
            return
        if not declared or declared[-1].value is None:
            raise Corrupt(log="update without version", revision=watched.revision)
        stored = _version_in(declared[-1].value)
        if stored.version <= self.catalog.version:  # a leader's own: its committer handed it over
            self.close(stored.at_ms)
            return
        newest = max((self._version(event) for event in added), default=stored.version)
        if newest != stored.version:
            raise Corrupt(log="version", declared=stored.version, found=newest)
        for update in updates:
            self.offer(update, watched.revision)
        self.close(stored.at_ms)

    async def _learn_floor(self, watched: Watched) -> None:
        """Reads the floor where an update above it was deleted: a watch of etcd 3.4 may have lost
        the event that raised it."""
        gone = [event for event in watched.events if event.value is None]
        deleted = (self._version(event) for event in gone if self._is_deleted(event))
        if gone and max(deleted, default=0) > self.floor:
            self._note(await read_snapshots(self._kv, deadline_ms=self._deadline_ms))

    def _is_compacted(self, event: Event) -> bool:
        """Whether the event is the deletion of an update that a snapshot holds."""
        if event.value is not None or not self._is_deleted(event):
            return False
        if self._version(event) > self.floor:
            raise Corrupt(log="deleted", key=event.key.decode())
        return True

    @staticmethod
    def _is_deleted(event: Event) -> bool:
        """Whether the event is the deletion of an update."""
        return event.value is None and event.key not in (VERSION_KEY, SNAPSHOTS_KEY)

    @staticmethod
    def _version(event: Event) -> int:
        return CatalogUpdateKey.parse(event.key).version


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disables garbage collection: nothing that is loaded is garbage, and repeated collections
    would take as long as the loading itself. After a large load all objects are set aside, for
    the next collection would look through them in one piece: 600 ms for 50,000 tables."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_count()[0] > NEW_OBJECTS_MAX:
                gc.freeze()
            gc.enable()


def _version_in(raw: bytes) -> CatalogVersion:
    return decode(CatalogVersion, raw, key=VERSION_KEY.decode())


def _update_in(event: Event) -> CatalogUpdate:
    assert event.value is not None
    return decode(CatalogUpdate, event.value, key=event.key.decode())
