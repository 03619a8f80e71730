"""Region leases as a node counts them: from before it sent the heartbeat that renewed them.

Source: P4 and the lease arithmetic of docs/guarantees.md. Pure: `now_ms` and send times are
arguments, in milliseconds of CLOCK_BOOTTIME. A lease protects reads and bounds overlap; rows are
protected by the fence (P5), so nothing here decides whether a row may be acknowledged for good.
"""

from collections import OrderedDict
from collections.abc import Iterable

from metasrv_base.lease import usable_ms
from metasrv_base.wire.node.orders import LeaseGrant

HEARTBEATS_REMEMBERED_MAX = 256
"""Send times kept; an answer to an older heartbeat grants nothing. 512 s at the default pace."""


class RegionLeases:
    """The leases granted to this incarnation of the node. One task of the node owns it.

    Invariant: a deadline is never later than the send time of a heartbeat that this incarnation
    sent, plus the usable part of the lease that was granted for it.
    """

    def __init__(self, incarnation: str) -> None:
        self.incarnation = incarnation
        self._sent_ms: OrderedDict[int, int] = OrderedDict()
        self._deadlines_ms: dict[tuple[int, int], int] = {}

    def sent(self, sequence: int, now_ms: int) -> None:
        """Note the time *before* heartbeat `sequence` goes out. Sequences rise."""
        assert not self._sent_ms or sequence > next(reversed(self._sent_ms))
        self._sent_ms[sequence] = now_ms
        while len(self._sent_ms) > HEARTBEATS_REMEMBERED_MAX:
            self._sent_ms.popitem(last=False)

    def granted(self, sequence: int, lease_ms: int, grants: Iterable[tuple[int, int]]) -> None:
        """Grants (region id, epoch) in the answer to heartbeat `sequence`.

        An unknown sequence grants nothing. A deadline never moves back: answers may overtake
        each other, and each of them was a promise.
        """
        sent_ms = self._sent_ms.get(sequence)
        if sent_ms is None:
            return
        until_ms = sent_ms + usable_ms(lease_ms)
        for held in grants:
            self._deadlines_ms[held] = max(until_ms, self._deadlines_ms.get(held, until_ms))

    def granted_by_order(self, region: int, epoch: int, lease: LeaseGrant | None) -> None:
        """A lease that came with an order, as if it had stood in the answer it names."""
        if lease is not None and lease.incarnation == self.incarnation:
            self.granted(lease.heartbeat, lease.lease_ms, [(region, epoch)])

    def deadline_ms(self, region: int, epoch: int) -> int | None:
        """Returns the deadline of a lease; None if it was never granted at this epoch."""
        return self._deadlines_ms.get((region, epoch))

    def is_held(self, region: int, epoch: int, now_ms: int) -> bool:
        """Whether the lease is held. At its deadline it has ended."""
        until_ms = self._deadlines_ms.get((region, epoch))
        return until_ms is not None and now_ms < until_ms

    def forget(self, region: int, epoch: int) -> None:
        """The region is closed here; its lease at this epoch is not used again."""
        self._deadlines_ms.pop((region, epoch), None)
