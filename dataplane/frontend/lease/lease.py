"""A schema lease as its holder counts it: by its own clock, from before each request was sent.

Source: P4 and P6. Pure: `now_ms` is an argument, in milliseconds of CLOCK_BOOTTIME. The
lease bounds how long others wait for this process; what keeps rows right is the floor of regions.
"""

from metasrv_base.lease import usable_ms


class SchemaLease:
    """The schema lease of one process, over its incarnations. One task owns it.

    Invariant: the deadline is never later than when a request was sent that was answered with a
    lease, plus the usable part of that lease.
    """

    def __init__(self) -> None:
        self.deadline_ms: int | None = None
        """The end of the lease; None if none was ever granted."""
        self.lease_ms = 0
        """The length of the last grant."""

    def granted(self, sent_ms: int, lease_ms: int, now_ms: int) -> None:
        """Takes the lease in the answer to a request sent at *sent_ms*. A deadline never moves
        back. A lease that has ended stays ended: this process may have given false answers."""
        if self.has_ended(now_ms):
            return
        until_ms = sent_ms + usable_ms(lease_ms)
        self.deadline_ms = max(until_ms, self.deadline_ms or until_ms)
        self.lease_ms = lease_ms

    def is_held(self, now_ms: int) -> bool:
        """Whether the lease is held. At its deadline it has ended."""
        return self.deadline_ms is not None and now_ms < self.deadline_ms

    def has_ended(self, now_ms: int) -> bool:
        """Whether it was held, and is no more."""
        return self.deadline_ms is not None and now_ms >= self.deadline_ms

    def fresh_ms(self, now_ms: int) -> int:
        """The time until a third of the lease is left: then it is time to renew it."""
        assert self.deadline_ms is not None, "none was ever granted"
        return self.deadline_ms - self.lease_ms // 3 - now_ms
