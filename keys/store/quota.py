"""etcd's rule when its space runs out, as a state of a few numbers. Pure.

A request that stores something is refused once it would pass the quota, and from then on every one
is, whatever its size: an alarm stands until a person lifts it. Reads, deletions and renewals of
leases go on. Compaction does not shrink the file; only defragmentation does (etcd 3.4,
etcdserver/quota.go and apply.go; op-guide/maintenance).
"""

from keys.store.kv import Put, Request

QUOTA_BYTES = 2 << 30  # etcd's default
PUT_BYTES = 256  # what etcd counts for a put, beside key and value
LEASE_BYTES = 64


class Quota:
    """`used_bytes` only grows, as the file does; `has_alarm` outlives the want of space."""

    def __init__(self, quota_bytes: int = QUOTA_BYTES) -> None:
        self.quota_bytes = quota_bytes
        self.used_bytes = 0
        self.has_alarm = False

    def admits(self, cost_bytes: int) -> bool:
        """Whether a request of this cost may be done; the first that may not raises the alarm."""
        if cost_bytes and self.used_bytes + cost_bytes >= self.quota_bytes:
            self.has_alarm = True
        return not (cost_bytes and self.has_alarm)

    def spend(self, cost_bytes: int) -> None:
        self.used_bytes += cost_bytes


def request_cost(request: Request) -> int:
    """Returns the bytes that a transaction adds; 0 if it puts nothing, whatever it deletes."""
    puts = (write for write in request.writes if isinstance(write, Put))
    return sum(PUT_BYTES + len(put.key) + len(put.value) for put in puts)
