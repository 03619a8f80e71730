"""One server's catalog, moved forward by the log alone, and the versions of it that are kept."""

from collections import OrderedDict, deque
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

from keys.catalog.catalog import Catalog
from keys.catalog.log.handlers import DONE, LogEvent, SnapshotEntry
from keys.catalog.log.revision_pins import RevisionPins
from keys.catalog.log.update_log import UpdateLog
from keys.model.log import CatalogUpdate
from keys.store.kv import Kv
from metasrv_base.clock import Clock

VERSIONS_KEPT = 1_024  # older versions in memory, for pages bound to one; they share what is equal
HELD_MAX = 65_536  # versions kept for a reader of a snapshot: a quarter of an hour of many changes


class Follower:
    """`catalog` is always a version that existed, and counts; versions never go back.

    It is the first handler of its log. Applying an update reads nothing from the store. Where the
    next update was compacted away the log gives it the newest snapshot instead.
    """

    def __init__(
        self, kv: Kv, clock: Clock, *, deadline_ms: int, pins: RevisionPins | None = None
    ) -> None:
        """*pins*: as of `UpdateLog`."""
        self.log = UpdateLog(kv, clock, deadline_ms=deadline_ms, counted=self._counted, pins=pins)
        self.log.register_update_handler("catalog", self._apply)
        self._kept: OrderedDict[int, Catalog] = OrderedDict({0: Catalog()})
        self._updates: OrderedDict[int, CatalogUpdate] = OrderedDict()
        self._held: list[int] = []
        """Versions beyond which everything is kept."""
        self.catalog = Catalog()
        self._applied = self.catalog
        """The newest catalog that was made; it counts once every handler of its update has
        ended."""
        self._uncounted: deque[tuple[Catalog, LogEvent]] = deque()
        """The catalogs above `catalog`, up to `_applied`."""

    def _apply(self, event: LogEvent, at_ms: int, revision: int) -> Awaitable[None]:
        if isinstance(event, SnapshotEntry):
            self._applied = event.catalog
        else:
            self._applied = self._applied.apply(event, revision)
        self._uncounted.append((self._applied, event))
        return DONE

    def _counted(self) -> None:
        """The oldest of `_uncounted` counts."""
        self.catalog, event = self._uncounted.popleft()
        if isinstance(event, SnapshotEntry):
            self._kept = OrderedDict({self.catalog.version: self.catalog})
            self._updates.clear()
            return
        self._kept[self.catalog.version] = self.catalog
        self._updates[self.catalog.version] = event
        self._forget()

    async def wait_for(self, version: int, *, deadline_ms: int) -> Catalog:
        """The catalog at *version* or newer. Raises Unavailable("stale") if it takes too long."""
        await self.log.wait_for(version, deadline_ms=deadline_ms)
        return self.catalog

    async def changed(self, after: int) -> Catalog:
        """The catalog as soon as it is newer than version *after*."""
        await self.log.moved(after)
        return self.catalog

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
