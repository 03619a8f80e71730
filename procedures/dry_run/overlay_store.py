"""The store as it would be after the steps rehearsed so far; nothing of it is ever sent."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from keys.catalog.catalog import Catalog
from keys.commit.committer import Committed
from keys.commit.txn import Stamp, Txn
from keys.model.log import CatalogUpdate, Entry
from keys.model.origin import Origin
from keys.model.removed import RemovedTableRouteKey
from keys.model.tables import TableInfo, TableInfoKey, TableRoute, TableRouteKey
from keys.store.kv import Get, KeyPage, KeyValue, Put, ReadableStore, Request, TxnAnswer
from keys.value import decode
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError
from procedures.elements.shifts import Edit, edits

# Above every revision of a store: what is drafted is newer than what is there.
DRAFTED_REVISION = 1 << 62


@dataclass(frozen=True, slots=True)
class Drafted:
    """The writes of one drafted commit."""

    writes: Mapping[bytes, bytes | None]
    at_ms: int
    entries: tuple[Entry, ...]
    """Entries for the catalog's log."""
    edits: tuple[Edit, ...]
    """Changes of tables that stay."""


@dataclass
class OverlayStore:
    """Implements Readable and Commits: reads pass through, writes stay here."""

    kv: ReadableStore
    clock: Clock
    written: dict[bytes, bytes | None] = field(default_factory=dict)
    commits: list["Drafted"] = field(default_factory=list)
    tables: dict[bytes, bytes] = field(default_factory=dict)
    """Routes and information of tables as the store has them, of those that were read."""
    silence: MetaError | None = None
    """The error because of which the store could not be read."""

    def must_be_readable(self) -> None:
        """Raises what a read of the store raised: of that no plan can be made."""
        if self.silence is not None:
            raise self.silence

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        assert not request.writes, "a step returns its writes"
        try:
            answer = await self.kv.txn(request, deadline_ms=deadline_ms)
        except MetaError as error:
            self.silence = error
            raise
        ranges = [
            self._seen(get, items) for get, items in zip(request.reads, answer.ranges, strict=True)
        ]
        return replace(answer, ranges=tuple(ranges))

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        """More are asked of the store than of us, so that a page is not empty for what has been
        deleted here."""
        wider = get._replace(limit=get.limit and get.limit + len(self.written))
        try:
            page = await self.kv.range(
                wider, deadline_ms=deadline_ms, revision=revision, serializable=serializable
            )
        except MetaError as error:
            self.silence = error
            raise
        end = page.items[-1].key + b"\0" if page.more else get.end
        items = self._seen(get._replace(end=end), page.items)
        limit = get.limit or len(items)
        return KeyPage(items[:limit], page.revision, page.more or len(items) > limit)

    async def commit(
        self, txn: Txn, *, procedure: str | None = None, origin: Origin | None = None
    ) -> Committed:
        """Compares are not judged: a step has read what it compares a moment ago."""
        stamp = Stamp(catalog_version=None, submission=0, at_ms=self.clock.wall_ms())
        writes = {
            key: value(stamp) if callable(value) else value for key, value in txn.writes.items()
        }
        if txn.large is not None:
            copies = await txn.large.copies(None)
            assert copies is not None, "nobody else commits in a draft"
            writes |= {copy.key: copy.value if isinstance(copy, Put) else None for copy in copies}
        edited = tuple(self._edits(writes))
        self.written.update(writes)
        self.commits.append(Drafted(writes, stamp.at_ms, txn.entries, edited))
        return Committed(DRAFTED_REVISION + len(self.commits), stamp)

    def applied_to(self, catalog: Catalog) -> Catalog:
        """*catalog* with what was committed here."""
        for commit in self.commits:
            if commit.entries:
                update = CatalogUpdate(
                    version=catalog.version + 1,
                    at_ms=commit.at_ms,
                    procedure=None,
                    entries=commit.entries,
                )
                catalog = catalog.apply(update, DRAFTED_REVISION)
        return catalog

    def held(self) -> Counter[str]:
        """Regions of which each node has a copy here beyond those that it has in the store."""
        start, end = TableRouteKey.under()
        changed = {key: value for key, value in self.written.items() if start <= key < end}
        gained = Counter[str]()
        for key, value in changed.items():
            gained.update(_nodes(key, value))
            gained.subtract(_nodes(key, self.tables.get(key)))
        return gained

    def _edits(self, writes: Mapping[bytes, bytes | None]) -> Iterator[Edit]:
        start, end = TableInfoKey.under()
        for key, value in writes.items():
            before = self.written.get(key, self.tables.get(key)) if start <= key < end else None
            if before is not None and value is not None:
                yield from edits(_info(key, before), _info(key, value))

    def _seen(self, get: Get, items_read: Iterable[KeyValue]) -> tuple[KeyValue, ...]:
        items_read = tuple(items_read)
        families = (TableRouteKey, RemovedTableRouteKey, TableInfoKey)
        for start, end in (family.under() for family in families):
            self.tables.update(
                (item.key, item.value) for item in items_read if start <= item.key < end
            )
        items = [item for item in items_read if item.key not in self.written]
        for key, value in self.written.items():
            is_asked = key == get.key if get.end is None else get.key <= key < get.end
            if value is None or not is_asked:
                continue
            item = KeyValue(key, value, DRAFTED_REVISION, DRAFTED_REVISION)
            items.insert(bisect_left([item.key for item in items], key), item)
        return tuple(items)


def _info(key: bytes, value: bytes) -> TableInfo:
    return decode(TableInfo, value, key=key.decode())


def _nodes(key: bytes, route: bytes | None) -> list[str]:
    if route is None:
        return []
    regions = decode(TableRoute, route, key=key.decode()).region_routes
    return [node for region in regions for node in region.nodes]
