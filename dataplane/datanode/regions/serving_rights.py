"""The right of this node to serve a region now: its lease, or promises where it has copies.

Source: docs/protocols.md P4.4 and P4.5. Asked before and behind each read and each group of writes.
"""

from dataplane.datanode.copies.led_region import LedRegion
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.region_owner import no_lease
from dataplane.datanode.regions.slot import Slot
from dataplane.region.copies.promises import NodePromises
from metasrv_base.clock import Clock
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.orders import CreateRegion


class ServingRights:
    def __init__(self, leases: RegionLeases, promises: NodePromises, clock: Clock) -> None:
        self._leases = leases
        self._promises = promises
        self._clock = clock

    def has_lease(self, region_id: int, epoch: int) -> bool:
        return self._leases.is_held(region_id, epoch, self._clock.mono_ms())

    def must_read(self, slot: Slot) -> None:
        """Raises Unavailable unless the region may be read now: under its lease, or at a leader
        with copies in its set under the promise of each. A leader needs both that may be alone in
        its set, while it requires another copy, or that knows of eligible copies: who names another
        leader waits for the lease (docs/protocols.md P4.5, P5.12)."""
        if slot.led is not None or slot.order.copies is not None:
            self._must_keep_no_promise(slot)
            if slot.led is not None:
                slot.led.must_be_readable()
                if not slot.led.is_alone:
                    self._must_be_promised(slot.led)
                if self._is_served_by_copies(slot) and not slot.led.view.members.eligible:
                    return
        if not self.has_lease(slot.region_id, slot.epoch):
            raise no_lease(slot.region_id)

    def must_order(self, slot: Slot) -> None:
        """Raises Unavailable unless the region may take a write now."""
        slot.must_have_minimum()
        if slot.led is not None or slot.order.copies is not None:
            self._must_keep_no_promise(slot)
            if slot.led is not None:
                slot.led.must_order()
                if self._is_served_by_copies(slot):
                    return
        if not self.has_lease(slot.region_id, slot.epoch):
            raise no_lease(slot.region_id)

    def may_write(self, slot: Slot) -> bool:
        """Whether a group may be ordered or acknowledged now. Copies stand in for the lease: none
        of them is promoted without being required before."""
        if slot.lacks_copies:
            return False
        if slot.led is not None or slot.order.copies is not None:
            if self._keeps_promise(slot):
                return False
            if slot.led is not None and self._is_served_by_copies(slot):
                return slot.led.ended is None
        return self.has_lease(slot.region_id, slot.epoch)

    def may_begin_to_write(self, slot: Slot) -> bool:
        """Whether a leader of copies has come so far in its epoch that it takes writes."""
        return slot.led is not None and slot.led.is_readable and not self._keeps_promise(slot)

    def may_begin_to_read(self, slot: Slot) -> bool:
        """The same of reads: it has had a promise of every copy that it requires."""
        if slot.led is None or not self.may_begin_to_write(slot):
            return False
        led, others = slot.led, slot.led.view.required - {slot.led.view.name}
        received = self._promises.received
        return not others or received.deadline_ms(led.region_id, led.epoch, others) is not None

    def _is_served_by_copies(self, slot: Slot) -> bool:
        """Whether other copies stand in for the lease: the route names some, and has said that the
        region is open, as a first lease shows. Until then the procedure that makes an empty
        region may make it again, empty, with other copies (docs/procedures/truncate_table.md)."""
        if slot.led is None or slot.led.view.may_be_alone:
            return False
        is_announced = self._leases.deadline_ms(slot.region_id, slot.epoch) is not None
        return is_announced or not isinstance(slot.order, CreateRegion)

    def _keeps_promise(self, slot: Slot) -> bool:
        """Whether a promise of its own keeps a promoted copy from serving. A region of epoch 1 has
        had no other leader; a former leader that follows reads under no promise any more."""
        if slot.order.copies is None or slot.epoch == 1:
            return False
        promises, now_ms = self._promises.given, self._clock.mono_ms()
        if promises.has_ended(slot.region_id, now_ms):
            return False
        following = () if slot.led is None else slot.led.view.following
        return not promises.has_ended(slot.region_id, now_ms, following)

    def _must_keep_no_promise(self, slot: Slot) -> None:
        if self._keeps_promise(slot):
            reason = "its promise to the leader before lasts"
            raise Unavailable("not-ready", what=f"region {slot.region_id}", reason=reason)

    def _must_be_promised(self, led: LedRegion) -> None:
        others, now_ms = led.view.required - {led.view.name}, self._clock.mono_ms()
        if not self._promises.received.are_valid(led.region_id, led.epoch, others, now_ms):
            reason = "a copy that it requires has made no promise"
            raise Unavailable("not-ready", what=f"region {led.region_id}", reason=reason)
