"""The waits of a rehearsal: a copy that it has added joins the set of its region at once.

A leader asks for that, and not a procedure: so the draft is changed beside the steps.
"""

from keys.commit.change import change, dropped_route_changed, route_changed
from keys.commit.txn import snapshot
from keys.key import Range
from keys.model.removed import RemovedTableRoute, RemovedTableRouteKey
from keys.model.tables import CopyRole, RegionRoute, TableRoute, TableRouteKey
from keys.value import decode
from metasrv_base.errors import Unavailable
from procedures.context import Live
from procedures.dry_run.dry_run_ports import AheadClock
from procedures.dry_run.notes import Notes
from procedures.dry_run.overlay_store import OverlayStore
from procedures.dry_run.plan import Blocker, Obstacle


class LiveAhead(Live):
    """A first attempt may take what it compares from the catalog, which has no drafts: this is a
    later one."""

    def __init__(
        self, notes: Notes, draft: OverlayStore, clock: AheadClock, deadline_ms: int
    ) -> None:
        super().__init__(attempt=2)
        self.notes, self.draft, self.clock = notes, draft, clock
        self.deadline_ms = deadline_ms

    async def rest(self, ms: int) -> None:
        """Lets time pass at once. Ends a wait for a copy, which it notes. Raises Unavailable where
        the copy is not one that the rehearsal has added, and for a wait for dropped tables: nothing
        changes meanwhile."""
        if any(wait.expires_in_ms is not None for wait in self.waiting):
            await self.clock.sleep_ms(ms)
            return
        for wait in self.waiting:
            if wait.kind == "dropped_table":
                self.notes.waits.append(Blocker(Obstacle.DROPPED_TABLE, wait.holder))
                raise Unavailable(what="dropped table", name=wait.holder)
        copies = [wait.holder for wait in self.waiting if wait.kind == "copy"]
        for copy in copies:
            self.notes.waits.append(Blocker(Obstacle.COPY, copy))
        if not copies:
            await super().rest(ms)
        elif not await join_added(self.draft, self.deadline_ms):
            raise Unavailable(what="copy", name=copies[0])


async def join_added(draft: OverlayStore, deadline_ms: int) -> bool:
    """Takes the learners that were added in *draft* into the sets of their regions. Returns whether
    there were any."""
    has_joined = False
    for raw in _written(draft, TableRouteKey.under()):
        key = TableRouteKey.parse(raw)
        read = await snapshot(draft, key, deadline_ms=deadline_ms)
        stored = draft.tables.get(raw)
        before = None if stored is None else decode(TableRoute, stored, key=raw.decode())
        if changed := _joining(read.must(key), before):
            await draft.commit(change(read, route_changed(read.must(key), changed)))
            has_joined = True
    for raw in _written(draft, RemovedTableRouteKey.under()):
        gone = RemovedTableRouteKey.parse(raw)
        read = await snapshot(draft, gone, deadline_ms=deadline_ms)
        route, stored = read.must(gone).route, draft.tables.get(raw)
        left = None if stored is None else decode(RemovedTableRoute, stored, key=raw.decode())
        if changed := _joining(route, None if left is None else left.route):
            await draft.commit(change(read, dropped_route_changed(route, changed)))
            has_joined = True
    return has_joined


def _written(draft: OverlayStore, keys: Range) -> list[bytes]:
    return [key for key, value in draft.written.items() if value and keys.start <= key < keys.end]


def _joining(route: TableRoute, before: TableRoute | None) -> tuple[RegionRoute, ...]:
    """The regions whose learners join, if there are any. *before*: the route without the draft."""
    regions = () if before is None else before.region_routes
    roots = {root for region in regions for root in region.roots}
    changed = tuple(_joined(region, roots) for region in route.region_routes)
    return changed if changed != route.region_routes else ()


def _joined(region: RegionRoute, before: set[str]) -> RegionRoute:
    """The region with its learners in sync that have none of the roots *before*."""
    copies = tuple(
        copy if copy.root in before else copy.model_copy(update={"role": CopyRole.IN_SYNC})
        for copy in region.copies
    )
    return region.with_copies(copies)
