"""One server's catalog, moved forward by the log alone, and the versions of it that are kept."""

from collections import OrderedDict, deque
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain

from keys.catalog.catalog import ENTRIES_AT_ONCE, Catalog
from keys.catalog.log.handlers import DONE, LogEvent, Restartable, SnapshotEntry
from keys.catalog.log.revision_pins import RevisionPins
from keys.catalog.log.update_log import UpdateLog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.repacking import depth_of, repacked
from keys.catalog.tables.table_map import TableMap
from keys.model.log import (
    CatalogUpdate,
    DroppedRouteChanged,
    Entry,
    RouteChanged,
    TableAltered,
    TableCreated,
    TableDropped,
    TableRenamed,
    TablesExchanged,
    TableUndropped,
)
from keys.store.kv import Kv
from metasrv_base.clock import Clock
from metasrv_base.concurrency.turns import by_turns

VERSIONS_KEPT = 1_024  # older versions in memory, for pages bound to one; they share what is equal
HELD_MAX = 65_536  # versions kept for a reader of a snapshot: a quarter of an hour of many changes
UNPACKED_MAX = 65_536
"""Columns and regions of changed tables that are held decoded, some 1 KiB each: 64 MiB."""
KEPT_MAX = 4 * UNPACKED_MAX
"""The same of the versions that are kept, of which large batches are few."""


class Follower:
    """`catalog` is always a version that existed, and counts; versions never go back.

    It is the first handler of its log. Applying an update reads nothing from the store. One of many
    entries takes turns: until the last, readers have the version before, and later events wait.
    Where the next update was compacted away the log gives it the newest snapshot instead.
    """

    def __init__(
        self,
        kv: Kv,
        clock: Clock,
        *,
        deadline_ms: int,
        pins: RevisionPins | None = None,
        entries_at_once: int = ENTRIES_AT_ONCE,
    ) -> None:
        """Reads nothing yet. *pins* are those of `UpdateLog`; *entries_at_once* entries of an
        update are applied in a turn."""
        self.log = UpdateLog(kv, clock, deadline_ms=deadline_ms, counted=self._counted, pins=pins)
        self.log.register_update_handler("catalog", self._apply)
        self._entries_at_once = entries_at_once
        self._kept: OrderedDict[int, Catalog] = OrderedDict({0: Catalog()})
        self._updates: OrderedDict[int, CatalogUpdate] = OrderedDict()
        self._held: list[int] = []
        """Versions beyond which everything is kept."""
        self.catalog = Catalog()
        self._applied = self.catalog
        """The newest catalog that was made; it counts once every handler of its update has
        ended."""
        self._uncounted: deque[tuple[Catalog, LogEvent, int]] = deque()
        """The catalogs above `catalog`, up to `_applied`, and the weight of each."""
        self._unpacked = 0
        """Columns and regions of the tables that changed since they were last packed."""
        self._weights: dict[int, int] = {}
        """Version -> columns and regions of the tables that it changed, for each of `_updates`."""
        self._kept_weight = 0
        """The sum of those."""

    def _apply(self, event: LogEvent, at_ms: int, revision: int) -> Awaitable[None]:
        if isinstance(event, SnapshotEntry):
            self._take(event.catalog, event, 0)
        elif len(event.entries) > self._entries_at_once:
            return Restartable(partial(self._apply_by_turns, event, revision))
        else:
            after = self._applied.apply(event, revision)
            self._take(after, event, unpacked_by(event, after.tables))
        return DONE

    async def _apply_by_turns(self, update: CatalogUpdate, revision: int) -> None:
        while True:
            before = self._applied
            work = before.applying(update, revision, entries_at_once=self._entries_at_once)
            after = await by_turns(work)
            if before is self._applied:
                break  # else its tables were packed meanwhile
        self._take(after, update, unpacked_by(update, after.tables))

    def _take(self, catalog: Catalog, event: LogEvent, weight: int) -> None:
        self._applied = catalog
        self._unpacked += weight
        self._uncounted.append((catalog, event, weight))

    def _counted(self) -> None:
        """The oldest of `_uncounted` counts."""
        self.catalog, event, weight = self._uncounted.popleft()
        if isinstance(event, SnapshotEntry):
            self._kept = OrderedDict({self.catalog.version: self.catalog})
            self._updates.clear()
            self._weights, self._kept_weight = {}, 0
            return
        self._kept[self.catalog.version] = self.catalog
        self._updates[self.catalog.version] = event
        self._weights[self.catalog.version] = weight
        self._kept_weight += weight
        self._forget()

    async def keep_packed(self) -> None:
        """Runs for ever: packs the tables that changed, as often as they are many. Raises
        Corrupt."""
        while True:
            version = self.log.version
            if self._unpacked >= UNPACKED_MAX:
                await self.pack()
            else:
                await self.log.moved(version)

    async def pack(self) -> None:
        """Packs the tables that changed up to now. Versions that come meanwhile hold theirs
        decoded; versions that are kept hold what they held."""
        catalog, self._unpacked = self._applied, 0
        before = catalog.tables
        packed = await by_turns(repacked(before, catalog.version, depth_of(before)))
        newest = self._applied
        if not newest.tables.is_above(before):  # the log has given it a snapshot
            return
        newest = replace(newest, tables=newest.tables.rebased(before, packed.layers, packed.packs))
        if self._uncounted:
            _, event, weight = self._uncounted.pop()
            self._uncounted.append((newest, event, weight))
        else:
            self.catalog = newest
            if newest.version in self._kept:
                self._kept[newest.version] = newest
        self._applied = newest

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
        """Versions that are neither among the newest nor held, or those before many large ones;
        each update goes with its own."""
        newest = self.catalog.version
        before = min([newest - VERSIONS_KEPT, *self._held])
        oldest = max(before, newest - HELD_MAX)
        spare = min([newest - 1, *self._held])
        while (first := next(iter(self._kept))) <= oldest or (
            self._kept_weight > KEPT_MAX and first < spare
        ):
            version, _ = self._kept.popitem(last=False)
            self._updates.pop(version, None)
            self._kept_weight -= self._weights.pop(version, 0)


def unpacked_by(update: CatalogUpdate, after: TableMap) -> int:
    """Returns the number of columns and regions of the tables that *update* changed, which left
    *after*, and one for each entry."""
    weight = len(update.entries)
    for table_id in chain.from_iterable(map(_tables_of, update.entries)):
        table = after.changes.get(table_id)
        if isinstance(table, CatalogTable):
            weight += len(table.info.columns) + len(table.route.region_routes)
    return weight


def _tables_of(entry: Entry) -> tuple[int, ...]:
    match entry:
        case TableCreated() | TableAltered() | TableRenamed() | TableUndropped():
            return (entry.info.table_id,)
        case TablesExchanged():
            return entry.first.table_id, entry.second.table_id
        case RouteChanged() | DroppedRouteChanged() | TableDropped():
            return (entry.table_id,)
        case _:
            return ()
