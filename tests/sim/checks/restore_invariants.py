"""A restored cluster against the one that was lost: ids, and places of regions."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from keys.model.cluster import Sequence, SequenceKey
from keys.model.removed import RemovedTableInfoKey
from keys.model.tables import (
    RegionRoute,
    RegionState,
    TableInfo,
    TableInfoKey,
    TableRoute,
    TableRouteKey,
)
from keys.store.kv import Watched
from keys.store.memory import MemoryKv
from keys.value import decode
from metasrv.restore.backup_facts import BackupItems
from metasrv.restore.comparison import BackupComparison
from metasrv.restore.found_regions import FoundRegions


@dataclass
class Tables:
    """Definitions and routes of a cluster, by table id."""

    infos: dict[int, TableInfo] = field(default_factory=dict)
    routes: dict[int, TableRoute] = field(default_factory=dict)

    @classmethod
    def of_backup(cls, backup: bytes) -> "Tables":
        tables = cls()
        for item in BackupItems([backup]):
            if isinstance(item.key, TableInfoKey) and isinstance(item.value, TableInfo):
                tables.infos[item.value.table_id] = item.value
            elif isinstance(item.value, TableRoute) and isinstance(item.key, TableRouteKey):
                tables.routes[item.value.table_id] = item.value
        return tables

    @classmethod
    def of_store(cls, kv: MemoryKv) -> "Tables":
        tables = cls()
        for item in kv._store.scan(*TableInfoKey.under()):
            info = decode(TableInfo, item.value, key=item.key.decode())
            tables.infos[info.table_id] = info
        for item in kv._store.scan(*TableRouteKey.under()):
            route = decode(TableRoute, item.value, key=item.key.decode())
            tables.routes[route.table_id] = route
        return tables

    def regions(self) -> Iterator[tuple[int, RegionRoute]]:
        for table_id, route in self.routes.items():
            for region in route.region_routes:
                yield table_id, region


@dataclass
class LastKnown(Tables):
    """The last definition and route that a cluster has written of each table, also of one that was
    dropped or purged since (StoreGhost.listeners)."""

    purged: set[int] = field(default_factory=set)

    def written(self, entry: Watched) -> None:
        for event in entry.events:
            key = event.key.decode()
            if event.value is None:
                if _under(RemovedTableInfoKey.under(), event.key):
                    self.purged.add(RemovedTableInfoKey.parse(event.key).table_id)
            elif _under(TableInfoKey.under(), event.key):
                info = decode(TableInfo, event.value, key=key)
                self.infos[info.table_id] = info
                self.purged.discard(info.table_id)  # it was undropped
            elif _under(TableRouteKey.under(), event.key):
                route = decode(TableRoute, event.value, key=key)
                self.routes[route.table_id] = route


@dataclass(frozen=True)
class RestoreGhost:
    backup: Tables
    old: LastKnown
    held: FoundRegions
    old_kv: MemoryKv
    wrong: Callable[[str], None]
    opened: dict[str, RegionRoute] = field(default_factory=dict)
    """Each region of the new cluster, as it was when it was no longer lost for the first time."""

    def judge_plan(self, told: BackupComparison) -> None:
        """Each region that moved or went after the backup is listed before anything is written, and
        no other one. One that was purged is kept where its node was dead, and not told. A plan does
        not know which of several copies leads next."""
        listed = {one.region_id: one.fate for one in told.findings if one.region_id is not None}
        for table_id, region in self.backup.regions():
            last = self._last(table_id, region.region_id)
            fate = listed.get(region.region_id, "kept")
            if last is None:
                if fate not in ("dropped", "missing") and self._is_gone(region):
                    self.wrong(f"restore: {region.region_id} was purged, and is said to be {fate}")
            elif last.announced and last.state is not RegionState.LOST:
                right = "kept" if last.root == region.root else "moved"
                if fate != right and not (last.copies and fate in ("kept", "moved")):
                    self.wrong(f"restore: {region.region_id} is said to be {fate}, right: {right}")

    def begun(self, kv: MemoryKv) -> None:
        """Looks at the routes that the restore has written, before any server starts."""
        for _, region in Tables.of_store(kv).regions():
            self._look(region)

    def written(self, entry: Watched) -> None:
        """Looks at a write of a server (StoreGhost.listeners): an adopted region may fail over at
        once, while the adoption goes on or is repeated."""
        for event in entry.events:
            if event.value is not None and _under(TableRouteKey.under(), event.key):
                route = decode(TableRoute, event.value, key=event.key.decode())
                for region in route.region_routes:
                    self._look(region)

    def _look(self, region: RegionRoute) -> None:
        if region.state is not RegionState.LOST:
            self.opened.setdefault(region.region_id, region)

    def judge_places(self, *, is_over: bool) -> None:
        """No region was opened at older files than its last ones, or in an empty folder. *is_over*:
        all nodes are adopted; before, none was opened."""
        for table_id, backed in self.backup.regions():
            region = self.opened.get(backed.region_id)
            if region is None or table_id not in self.backup.infos:
                continue
            last = self._last(table_id, region.region_id)
            if not is_over:
                self.wrong(f"restore: {region.region_id} is open while a node is awaited")
            elif last is None:
                if self._is_gone(region):
                    self.wrong(f"restore: {region.region_id} was dropped, and is open")
            elif region.state is not RegionState.OPEN:
                self.wrong(f"restore: {region.region_id} is {region.state} before it was open")
            elif region.root not in {*last.roots, *([] if last.announced else last.borrows)}:
                self.wrong(f"restore: {region.region_id} is open in {region.root}, not {last.root}")
            elif region.epoch <= last.epoch:
                self.wrong(f"restore: {region.region_id} is open at {region.epoch}, was at {last}")

    def judge_ids(self, kv: MemoryKv) -> None:
        """Whatever the new cluster has made has numbers that the old one never gave out."""
        given = self._next_table()
        for table_id, info in Tables.of_store(kv).infos.items():
            before = self.backup.infos.get(table_id)
            if before is None:
                if table_id < max(given, max(self.held.tables, default=0) + 1):
                    self.wrong(f"restore: table id {table_id} is given again, below {given}")
                continue
            last, numbers = self.old.infos[table_id], self.held.numbers(table_id)
            floors = {
                "columns": max(last.next_column_id, numbers.column + 1),
                "indexes": max(last.next_index_id, numbers.index + 1),
                "constraints": last.next_constraint_id,
            }
            for what, floor in floors.items():
                again = _ids(getattr(info, what)) - _ids(getattr(before, what))
                reserved = _next_ids(before)[what]  # by procedures that the backup has, for theirs
                wrong = {number for number in again if reserved <= number < floor}
                if wrong:
                    self.wrong(f"restore: {what} {wrong} of {table_id} are given again")

    def _last(self, table_id: int, region_id: str) -> RegionRoute | None:
        """None: it was purged."""
        if table_id in self.old.purged:
            return None
        routes = self.old.routes[table_id].region_routes
        return next(one for one in routes if one.region_id == region_id)

    def _is_gone(self, region: RegionRoute) -> bool:
        """Whether a node was ordered to drop it."""
        return bool(self.held._dropped.get(region.region_id))

    def _next_table(self) -> int:
        item = self.old_kv._store.get(bytes(SequenceKey("table_id")))
        return 0 if item is None else decode(Sequence, item.value, key="sequence").next


def _next_ids(info: TableInfo) -> dict[str, int]:
    return {
        "columns": info.next_column_id,
        "indexes": info.next_index_id,
        "constraints": info.next_constraint_id,
    }


def _ids(elements: Iterable[object]) -> set[int]:
    return {int(getattr(one, "id")) for one in elements}  # noqa: B009 - of three classes


def _under(family: tuple[bytes, bytes], key: bytes) -> bool:
    return family[0] <= key < family[1]
