"""Opens a region to lead its copies: the log with which it opens its epoch is not readable, and in
no file, before every copy that is required has all of it.

P4.5, P5.9 and P5.11 of docs/protocols.md. Until then a promotion of another copy may still cut it.
A leader that has started again opens no epoch that it has opened before: it may have asked that a
copy joins its set, and the order by which it opens may be older than that (P5.10).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.region.copies.leader_view import OwnLog
from dataplane.region.engine.opening import create_or_open
from dataplane.region.engine.region import Region
from dataplane.region.following.copy_opening import find_own_source, open_copy, read_copy
from dataplane.region.following.pending import PendingRecords
from dataplane.region.format.columns import RegionSpec
from dataplane.region.format.schema import RegionSchema
from dataplane.region.log.logged_change import PositionedChange
from dataplane.region.manifests.manifest import read_current_manifest
from dataplane.region.place import OpenOrder, RegionPlace
from metasrv_base.errors import NotFound, Unavailable

NO_SCHEMA = RegionSchema()
NEEDS_EPOCH = "its leader has started again, and needs a new epoch"


@dataclass(slots=True)
class LedOpening:
    """Calls one at a time, each in a thread."""

    region: Region
    log: OwnLog
    """The log with which the epoch was opened."""
    schema: RegionSchema = NO_SCHEMA
    """The schema that the order to lead brings."""
    declares: bool = False
    """Whether the log may lack what the manifest has, so that copies must be told of all of it."""
    _pending: PendingRecords | None = None

    def count(self) -> None:
        """Every required copy has all that the epoch was opened with: it becomes readable, and may
        be flushed. Before that nothing is written. Done once; again it changes nothing."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        now_ms = self.region.place.clock.wall_ms()
        for entry in pending.upto(self.log.end):
            if isinstance(entry, PositionedChange):
                self.region.changes.settle(entry)
            else:
                self.region.writer.add_logged(entry, now_ms)
        pending.give_up()

    def close(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.give_up()
        self.region.close()


def lead_new(
    region_place: RegionPlace, spec: RegionSpec, epoch: int, replaces: Sequence[str] = ()
) -> LedOpening:
    """Makes a region without rows. Raises as `create_or_open`, and Unavailable `not-ready` for one
    that has been written to since: it needs a new epoch."""
    made = _was_made(region_place, spec.region_id)
    if made and read_copy(region_place, spec.region_id).history.end:
        raise needs_another_epoch(spec.region_id, epoch)
    region = Region(region_place, create_or_open(region_place, spec, epoch, replaces))
    return LedOpening(region, OwnLog(0, 0))


def lead(region_place: RegionPlace, order: OpenOrder) -> LedOpening:
    """Opens the epoch of the order with what the copy in this root has.

    Raises Unavailable `not-ready` for an epoch that was opened here before, `region-lost` where
    storage is gone, Conflict `stale-epoch` behind a higher fence, Corrupt for damage. What the
    order says of the schema is not told to the region, but is `LedOpening.schema`.
    """
    manifest = find_own_source(region_place, order.region_id).manifest
    if manifest.epoch == order.epoch:
        raise needs_another_epoch(order.region_id, order.epoch)
    opened = open_copy(region_place, OpenOrder(order.region_id, order.epoch), None)
    history = opened.opened.history
    pending = PendingRecords(region_place, opened.sealed)
    own = OwnLog(history.end, history.base.sequence)
    declares = not manifest.change_sequence
    return LedOpening(Region(region_place, opened.opened), own, order.schema, declares, pending)


def lead_alone(region_place: RegionPlace, order: OpenOrder) -> LedOpening:
    """Opens a region of whose set nobody else is left, over roots that it borrows: it has all that
    counts, so nothing is cut any more. Raises as `lead` and `Region.open`."""
    made = _was_made(region_place, order.region_id)
    if made and find_own_source(region_place, order.region_id).manifest.epoch == order.epoch:
        raise needs_another_epoch(order.region_id, order.epoch)
    region = Region.open(region_place, order)
    return led_from_now(region)


def led_from_now(region: Region) -> LedOpening:
    """A region that had no copies, or of whose set nobody else is left: all that it has counts."""
    end = region.log_history.end
    return LedOpening(region, OwnLog(end, end), declares=True)


def _was_made(region_place: RegionPlace, region_id: int) -> bool:
    try:
        return read_current_manifest(region_place.disk, region_place.root, region_id) is not None
    except NotFound:
        return False


def needs_another_epoch(region_id: int, epoch: int) -> Unavailable:
    """The error of a region that a process opens at no epoch up to this one."""
    what = f"region {region_id}"
    return Unavailable("not-ready", what=what, reason=NEEDS_EPOCH, epoch=epoch)
