"""Conditions on folders of regions, judged from outside (docs/decisions/0400 and 0402).

No folder that a route names, or that a region reads, comes into quarantine or is deleted there, and
no route names one that did. Those that nobody needs are gone in the end.
"""

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from dataplane.datanode.folders.quarantine import QUARANTINE, REGIONS, parsed
from dataplane.region.disk.memory_disk import MemoryDisk
from dataplane.region.format.names import fences
from dataplane.region.manifests.fence import read_fence
from keys.model.cluster import DATANODE, NodeKey, NodeRecord
from keys.model.removed import RemovedTableRoute, RemovedTableRouteKey
from keys.model.tables import RegionRoute, RegionState, TableRoute, TableRouteKey
from keys.store.kv import Event, Watched
from keys.value import decode
from metasrv.sdk.control.operations import Settings
from metasrv_base.errors import NotFound
from metasrv_base.wire.node.nodes import SettingBody
from procedures.steps.orphans.judging import RegionFolder
from tests.sim.clients.client import Session, pursued
from tests.sim.cluster.disks import Disks
from tests.sim.cluster.nodes import Datanode

QUARANTINED = "a folder that came into quarantine"
DELETED = "a folder that was deleted in quarantine"
PUT_BACK = "a folder that was put back from quarantine"
GRACE_MS = 3_000
RETENTION_MS = 8_000
SETTINGS: Mapping[str, int] = {"orphan_grace_ms": GRACE_MS, "orphan_retention_ms": RETENTION_MS}


async def keep_tidy(session: Session) -> None:
    """Has folders that nobody needs removed within seconds of a life, instead of days."""
    for name, value in SETTINGS.items():
        await pursued(session, partial(_put, Settings(session.service), name, value))


async def _put(settings: Settings, name: str, value: int, _: str) -> SettingBody:
    return await settings.put(name, value)


@dataclass
class OrphanGhost:
    """`written` is called with every revision (StoreGhost.listeners), the others by the disks."""

    nodes: Callable[[], Iterable[Datanode]]
    sometimes: Counter[str]
    wrong: Callable[[str], None]
    _routes: dict[bytes, TableRoute] = field(default_factory=dict)
    """Routes of living and of dropped tables, by key."""
    _away: dict[str, str] = field(default_factory=dict)
    """Root -> what became of it."""
    _unreleased: set[str] = field(default_factory=set)
    """Nodes that were removed and have returned: an operator decides what becomes of them."""

    def written(self, entry: Watched) -> None:
        named: set[str] = set()
        for event in entry.events:
            self._note_node(event)
            if not _is_of_route(event.key):
                continue
            self._routes.pop(event.key, None)
            if event.value is not None:
                route = self._routes[event.key] = _route_of(event.key, event.value)
                named |= {root for region in route.region_routes for root in _named_by(region)}
        for root in sorted(named & self._away.keys()):
            self.wrong(f"orphans: {root} was {self._away[root]}, and a route names it again")

    def _note_node(self, event: Event) -> None:
        start, end = NodeKey.under(DATANODE)
        if not start <= event.key < end:
            return
        node_id = NodeKey.parse(event.key).node
        self._unreleased.discard(node_id)
        if event.value is not None:
            record = decode(NodeRecord, event.value, key=event.key.decode())
            if record.returned is not None:
                self._unreleased.add(node_id)

    # ---- called by the disks

    def moved(self, source: str, target: str) -> None:
        """Judges a folder that came into quarantine, or out of it."""
        if (root := _root_in_quarantine(target)) is not None:
            self.sometimes[QUARANTINED] += 1
            self._away[root] = "put into quarantine"
            self._judge(root)
        elif (root := _root_in_quarantine(source)) is not None:
            self.sometimes[PUT_BACK] += 1
            self._away.pop(root, None)

    def removed(self, path: str) -> None:
        """Judges a folder that was deleted, if that was in quarantine."""
        if (root := _root_in_quarantine(path)) is not None:
            self.sometimes[DELETED] += 1
            self._away[root] = "deleted"
            self._judge(root)

    def lost(self, machine: str) -> None:
        """All that was on the machine is gone, for another reason."""
        for root in [root for root in self._away if root.startswith(f"/{machine}/")]:
            del self._away[root]

    def _judge(self, root: str) -> None:
        for region in self._regions():
            if root in _named_by(region):
                self.wrong(f"orphans: {root} was {self._away[root]}, and is named by {region}")
        for node, region_id in self._readers_of(root):
            text = f"orphans: {root} was {self._away[root]}, and {node} reads it for {region_id}"
            self.wrong(text)

    def _regions(self) -> Iterator[RegionRoute]:
        for route in self._routes.values():
            yield from route.region_routes

    def _readers_of(self, root: str) -> Iterator[tuple[str, str]]:
        """Yields nodes and regions that are served at the epoch of their route and read *root*."""
        epochs = {region.region_id: (region.epoch, region.leader) for region in self._regions()}
        for node in self.nodes():
            for slot in node.service.regions if node.is_up and node.service is not None else ():
                region_id = slot.order.region_id
                serves = epochs.get(region_id) == (slot.epoch, node.name)
                if serves and slot.owner is not None and root in slot.owner.region.borrowed_roots:
                    yield node.name, region_id

    # ---- in the end

    def left(self, disks: Disks, now_ms: int) -> list[str]:
        """Returns the folders that are to go, and have not yet. Those without a fence that can be
        read wait for a person, as those of a node that is not released, and those with a fence of
        later than *now_ms*, by a clock that was set, for its time."""
        return [
            path
            for machine, store in sorted(disks.stores.items())
            if machine not in self._unreleased
            for path in self._left_at(MemoryDisk(store), f"/{machine}/data", now_ms)
        ]

    def _left_at(self, disk: MemoryDisk, node_root: str, now_ms: int) -> Iterator[str]:
        named = {root for region in self._regions() for root in _named_by(region)}
        for root in _below(disk, posixpath.join(node_root, REGIONS)):
            raised = fences(disk.list(root))
            highest = read_fence(disk, root, raised[-1]) if raised else None
            is_due = highest is not None and highest.created_ms <= now_ms - GRACE_MS
            if is_due and root not in named and not self._is_lost(root):
                yield root
        yield from _below(disk, posixpath.join(node_root, QUARANTINE))

    def _is_lost(self, root: str) -> bool:
        """Whether the folder is of a region that is lost: it may hold the last rows there are."""
        region_id = str(RegionFolder.named(root).region_id)
        regions = (region for region in self._regions() if region.region_id == region_id)
        return any(region.state is RegionState.LOST for region in regions)


def _is_of_route(key: bytes) -> bool:
    bounds = TableRouteKey.under(), RemovedTableRouteKey.under()
    return any(start <= key < end for start, end in bounds)


def _route_of(key: bytes, value: bytes) -> TableRoute:
    start, end = TableRouteKey.under()
    if start <= key < end:
        return decode(TableRoute, value, key=key.decode())
    return decode(RemovedTableRoute, value, key=key.decode()).route


def _named_by(region: RegionRoute) -> frozenset[str]:
    return frozenset((*region.roots, *region.borrows))


def _root_in_quarantine(path: str) -> str | None:
    """Returns the root that a folder in quarantine was; None for any other path."""
    folder, name = posixpath.split(path)
    if posixpath.basename(folder) != QUARANTINE or (held := parsed(name)) is None:
        return None
    return posixpath.join(posixpath.dirname(folder), REGIONS, held.name)


def _below(disk: MemoryDisk, folder: str) -> list[str]:
    try:
        return [posixpath.join(folder, name) for name in disk.list(folder)]
    except NotFound:
        return []
