"""Conditions that hold while a table changes: rows and entries of every region, and versions in
use.

G24 and G26: no entry without its row, none missing of an index that is read, nothing of what is
gone, two versions in use at most.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from dataplane.datanode.regions.slot import Slot
from dataplane.region.engines.engine import ServedRegion
from keys.model.tables import Index, TableInfo, TableInfoKey, TableRoute, TableRouteKey
from keys.store.memory import MemoryKv
from keys.value import decode
from metasrv_base.elements.states import ElementState
from metasrv_base.schema.entrycodec import encode_entries
from metasrv_base.schema.types import parse_type
from tests.sim.cluster.frontends import Frontend
from tests.sim.cluster.nodes import Datanode

LAST_WORDS_S = 3.0


@dataclass
class ShapeGhost:
    kv: MemoryKv
    sometimes: Counter[str]
    wrong: Callable[[str], None]
    is_judged: bool
    """False: two leaders of one region may be alive, and only one of them is right."""
    _seen: dict[int, object] = field(default_factory=dict)
    """Region -> as it was when it was looked at last."""
    _infos: tuple[int, dict[int, TableInfo]] = (-1, {})
    _over_s: dict[str, float] = field(default_factory=dict)
    """Process of a frontend -> since when it has run on without a lease."""

    def look(self, nodes: Iterable[Datanode], frontends: Iterable[Frontend]) -> None:
        infos = self._tables()
        for frontend in frontends:
            for text in _in_use(frontend, infos):
                self.wrong(f"two versions: {frontend.name} {text}")
            self._look_at_lease(frontend)
        for node in nodes:
            for slot in _leading(node) if self.is_judged else ():
                info = infos.get(slot.region_id >> 32)
                if info is not None and slot.owner is not None:
                    self._look_at(slot, slot.owner.region, info)

    def _look_at_lease(self, frontend: Frontend) -> None:
        """Checks that a frontend without a lease ends soon, unless it stands still."""
        service, node, now = frontend.service, frontend.node, frontend.loop.time()
        is_over = (
            frontend.is_up
            and service is not None
            and not frontend.loop.is_paused(node)
            and service.statements.holder.lease.deadline_ms is not None
            and frontend.clock.mono_ms() >= service.statements.holder.lease.deadline_ms
        )
        if not is_over:
            self._over_s.pop(node, None)
        elif now - self._over_s.setdefault(node, now) > LAST_WORDS_S:
            self.wrong(f"lease: {frontend.name} goes on without one")

    def _is_replaced(self, slot: Slot) -> bool:
        """Whether another copy leads by now. Until its promises end the former leader answers reads
        of the time before: it acknowledges nothing, so nobody raises its floor."""
        if slot.led is None:
            return False
        key = TableRouteKey(slot.region_id >> 32)
        item = self.kv._store.get(bytes(key))
        if item is None:
            return False
        routes = decode(TableRoute, item.value, key=str(key)).region_routes
        known = {route.region_id: route.epoch for route in routes}
        return known.get(str(slot.region_id), slot.epoch) > slot.epoch

    def _look_at(self, slot: Slot, region: ServedRegion, info: TableInfo) -> None:
        now = (slot.epoch, region.opening, region.stats().version, info.version)
        if self._seen.get(slot.region_id) == now:
            return
        self._seen[slot.region_id] = now
        if self._is_replaced(slot):
            return
        if region.schema.floor < info.schema_version - 1:
            self.wrong(f"floor: {region.schema.floor} of {slot.region_id} at {info.schema_version}")
        if info.indexes:
            self.sometimes["a region with an index was looked at"] += 1
            for text in index_faults(region, info):
                self.wrong(f"index: region {slot.region_id}: {text}")

    def end(self, nodes: Iterable[Datanode]) -> None:
        """When all is quiet: nothing is left of what is gone."""
        infos = self._tables()
        for node in nodes:
            for slot in _leading(node):
                info = infos.get(slot.region_id >> 32)
                if info is None or slot.owner is None:
                    continue
                known = {index.id for index in info.indexes}
                left = slot.owner.region.schema.indexes - known
                if left:
                    self.wrong(f"index: region {slot.region_id} has {sorted(left)} of no index")
                moving = [one.name for one in info.columns if one.state is not ElementState.PUBLIC]
                moving += [one.name for one in info.indexes if one.state is not ElementState.PUBLIC]
                if moving:
                    self.wrong(f"table {info.table_id}: {moving} stand half way")

    def _tables(self) -> dict[int, TableInfo]:
        if self._infos[0] != self.kv.revision:
            start, end = TableInfoKey.under()
            found = self.kv._store.scan(start, end)
            infos = [decode(TableInfo, item.value, key=item.key.decode()) for item in found]
            self._infos = (self.kv.revision, {info.table_id: info for info in infos})
        return self._infos[1]


def index_faults(region: ServedRegion, info: TableInfo) -> Iterator[str]:
    """Yields the faults of every index that the region has heard of, at this moment."""
    parts = list(region.reader.scan())
    rows = pa.Table.from_batches(parts) if parts else None
    for index in info.indexes:
        if index.id not in region.schema.indexes:
            continue
        found = {
            (entry, row)
            for batch in region.reader.scan_entries(index.id)
            for entry, row in zip(
                batch.column("_entry").to_pylist(), batch.column("_key").to_pylist(), strict=True
            )
        }
        right = set(_entries(rows, index, info))
        for entry, row in sorted(found - right):
            yield f"{index.name} ({index.state}) has {entry.hex()} of {row.hex()}, which it is not"
        missing = sorted(right - found) if index.state is ElementState.PUBLIC else ()
        for entry, row in missing:
            yield f"{index.name} ({index.state}) lacks {entry.hex()} of {row.hex()}"


def _entries(rows: pa.Table | None, index: Index, info: TableInfo) -> Iterator[tuple[bytes, bytes]]:
    """Yields the entries that the rows should have."""
    if rows is None:
        return
    types = {column.id: parse_type(column.type) for column in info.columns}
    keys = rows.column("_key").combine_chunks()
    arrays = [rows.column(f"c{id}").combine_chunks() for id in index.columns]
    kinds = [types[id] for id in index.columns]
    entries = encode_entries(kinds, arrays, keys, unique=index.unique)
    yield from zip(entries.to_pylist(), keys.to_pylist(), strict=True)


def _leading(node: Datanode) -> Iterator[Slot]:
    if node.is_up and node.service is not None:
        for slot in node.service.regions:
            if slot.owner is None or slot.owner.stopped_by is not None:
                continue
            if slot.owner.region.stopped is not None:
                continue
            if slot.led is not None and not slot.led.is_readable:
                continue  # nothing is read or written before its copies have its log
            if node.service.regions.has_lease(slot.region_id, slot.epoch):
                yield slot


def _in_use(frontend: Frontend, infos: dict[int, TableInfo]) -> Iterator[str]:
    """G24: faults of a frontend that holds a lease, by its own clock."""
    service, transactions = frontend.service, frontend.transactions
    if not frontend.is_up or service is None or transactions is None:
        return
    if not service.statements.holder.lease.is_held(frontend.clock.mono_ms()):
        return
    for table_id, version in transactions.in_use():
        info = infos.get(table_id)
        if info is not None and version < info.schema_version - 1:
            yield f"uses {version} of {info.name} at {info.schema_version}"
