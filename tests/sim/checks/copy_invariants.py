"""Conditions on the routes of regions with copies, judged at every revision from outside.

Only a copy of the set leads next, a copy joins the set or leaves it one at a time at one epoch, and
no root is given twice (docs/protocols.md P5.8, P5.10, P5.11).
"""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

from keys.model.removed import RemovedTableRoute, RemovedTableRouteKey
from keys.model.tables import RegionRoute, TableRoute, TableRouteKey
from keys.store.kv import Watched
from keys.value import decode

JOINED = "a copy that joined a set"
LEFT = "a copy that left a set"
PROMOTED = "a copy that was promoted"
ADDED = "a copy that was added to a region"
REMOVED = "a copy that was removed from a region"

RISE_MAX = 2
"""Versions of the copies by which one transaction may rise: it may change a copy, or end marks of
eligible ones, and the minimum, by an alter or since it is reached."""


@dataclass
class CopyGhost:
    """`written` is called with every revision (StoreGhost.listeners)."""

    sometimes: Counter[str]
    wrong: Callable[[str], None]
    _known: dict[str, RegionRoute] = field(default_factory=dict)
    """Region -> its route as it was written last."""
    _roots: dict[str, str] = field(default_factory=dict)
    """Root -> the region and node that it was given to."""

    def written(self, entry: Watched) -> None:
        for event in entry.events:
            for region in _regions_in(event.key, event.value):
                if region.copies_version:
                    self._judge_roots(region)
                    before = self._known.get(region.region_id)
                    if before is not None and before != region:
                        self._judge(before, region)
                self._known[region.region_id] = region

    def _judge_roots(self, region: RegionRoute) -> None:
        for node, root in zip(region.nodes, region.roots, strict=True):
            place = f"{region.region_id} at {node}"
            if self._roots.setdefault(root, place) != place:
                self.wrong(f"copies: {root} was of {self._roots[root]}, now of {place}")
        if len(set(region.nodes)) < len(region.nodes):
            self.wrong(f"copies: a node has two of {region}")

    def _judge(self, before: RegionRoute, now: RegionRoute) -> None:
        self._count(before, now)
        about = f"{now.region_id} at epoch {now.epoch}, version {now.copies_version}"
        if now.epoch < before.epoch or now.copies_version < before.copies_version:
            self.wrong(f"copies: {about} was at {before.epoch}, {before.copies_version}")
        rise = now.copies_version - before.copies_version
        if now.copies != before.copies and not 1 <= rise <= RISE_MAX:
            self.wrong(f"copies: {about} has others than at version {before.copies_version}")
        is_made = not before.announced or not set(now.roots) & set(before.roots)
        if now.leader != before.leader:
            if now.epoch == before.epoch:
                self.wrong(f"copies: {about} has another leader at the same epoch")
            if now.leader not in before.in_sync and len(before.in_sync) > 1:
                self.wrong(f"copies: {now.leader} leads {about}, the set was {before.in_sync}")
        changed = members_of(before) ^ members_of(now)
        if now.epoch == before.epoch and len(changed) > 1 and not is_made:
            self.wrong(f"copies: {about} has a set that changed by {sorted(changed)}")

    def _count(self, before: RegionRoute, now: RegionRoute) -> None:
        self.sometimes[PROMOTED] += now.leader != before.leader
        self.sometimes[ADDED] += len(set(now.roots) - set(before.roots))
        self.sometimes[REMOVED] += len(set(before.roots) - set(now.roots))
        if now.epoch == before.epoch:
            self.sometimes[JOINED] += len(members_of(now) - members_of(before))
            self.sometimes[LEFT] += len(members_of(before) - members_of(now))


def _regions_in(key: bytes, value: bytes | None) -> Sequence[RegionRoute]:
    """The regions of a route that is written; of a dropped table too, whose regions may move."""
    start, end = TableRouteKey.under()
    if value is not None and start <= key < end:
        return decode(TableRoute, value, key=key.decode()).region_routes
    start, end = RemovedTableRouteKey.under()
    if value is not None and start <= key < end:
        return decode(RemovedTableRoute, value, key=key.decode()).route.region_routes
    return ()


def members_of(region: RegionRoute) -> Set[tuple[str, str]]:
    """Node and root of each copy of the set."""
    places = zip(region.nodes, region.roots, strict=True)
    return {(node, root) for node, root in places if node in region.in_sync}
