"""MemoryKv: the store's whole contract in one process, for tests and simulations.

Deterministic: no call suspends, time is the Clock it is given, lease ids are counted. Faults are
injected around it (tests/keys/store/faulty.py), so that what runs here is always the sound store.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from keys.store.kv import (
    OUT_OF_SPACE,
    Delete,
    Get,
    KeyPage,
    KeyValue,
    LeaseId,
    Put,
    Request,
    TxnAnswer,
    Watched,
)
from keys.store.limits import check_limits
from keys.store.mvcc import Mvcc, in_range, shown
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, Unknown

QUOTA_BYTES = 2 << 30  # etcd's default
PUT_BYTES = 256  # what etcd counts for a put, beside key and value
LEASE_BYTES = 64


class Quota:
    """etcd's rule when its space runs out.

    A request that stores something is refused once it would pass the quota, and from then on every
    one is, whatever its size: an alarm stands until a person lifts it. Reads, deletions and
    renewals of leases go on. Compaction does not shrink the file; only defragmentation does (etcd
    3.4, etcdserver/quota.go and apply.go; op-guide/maintenance). `used_bytes` only grows, as the
    file does; `has_alarm` outlives the want of space.
    """

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


@dataclass(frozen=True, slots=True)
class _Lease:
    ttl_ms: int
    ends_at_ms: int


class MemoryKv:
    """Implements keys.store.kv.Kv. Leases end when a call or `tick` finds their time gone.

    Past *quota_bytes* it answers as etcd does without space, until `defragment` and `disarm`.
    """

    def __init__(self, clock: Clock, *, quota_bytes: int = QUOTA_BYTES) -> None:
        self._clock = clock
        self._store = Mvcc()
        self._quota = Quota(quota_bytes)
        self._leases: dict[LeaseId, _Lease] = {}
        self._last_lease = 0
        self._watchers: dict[asyncio.Future[None], None] = {}  # a dict, for its order

    @property
    def revision(self) -> int:
        """The newest one; for tests, which may look without a call."""
        return self._store.revision

    def tick(self) -> None:
        """Ends every lease whose time is over, oldest id first, each as a revision of its own."""
        now_ms = self._clock.mono_ms()
        for lease, held in sorted(self._leases.items()):
            if held.ends_at_ms <= now_ms:
                self._end_lease(lease)

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        check_limits(request)
        self.tick()
        cost_bytes = _cost_of(request)
        self._check_space("txn", cost_bytes)
        if not all(self._store.holds(compare) for compare in request.compares):
            refused = tuple(self._store.read(get) for get in request.on_refusal)
            return TxnAnswer(False, self._store.revision, refused)
        self._check_leases(request)
        self._write(request.writes)
        self._quota.spend(cost_bytes)
        ranges = tuple(self._store.read(get) for get in request.reads)
        return TxnAnswer(True, self._store.revision, ranges)

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        self.tick()
        read_revision = revision or self._store.revision
        self._store.check_readable(read_revision)
        items = list(self._store.scan(get.key, get.end, read_revision))
        if get.count_only:
            return KeyPage((), read_revision, more=False, count=len(items))
        newer = [item for item in items if item.mod_revision > get.newer_than]
        kept = newer[: get.limit] if get.limit else newer
        shown_items = tuple(shown(item, get) for item in kept)
        return KeyPage(shown_items, read_revision, len(kept) < len(newer), len(items))

    async def watch(
        self, key: bytes, end: bytes, *, start_revision: int
    ) -> AsyncGenerator[Watched, None]:
        assert start_revision > 0, "watch from a revision that was read"
        following = start_revision
        while True:
            self.tick()
            for entry in self._store.log_from(following):
                following = entry.revision + 1
                events = tuple(event for event in entry.events if in_range(event.key, key, end))
                if events:
                    yield replace(entry, events=events)
            if following > self._store.revision:
                await self._next_write()

    async def grant(self, ttl_ms: int, *, deadline_ms: int) -> LeaseId:
        self.tick()
        self._check_space("grant", LEASE_BYTES)
        self._quota.spend(LEASE_BYTES)
        self._last_lease += 1
        lease = LeaseId(self._last_lease)
        self._leases[lease] = _Lease(ttl_ms, self._clock.mono_ms() + ttl_ms)
        return lease

    async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
        self.tick()
        held = self._leases.get(lease)
        if held is None:
            return False
        self._leases[lease] = replace(held, ends_at_ms=self._clock.mono_ms() + held.ttl_ms)
        return True

    async def revoke(self, lease: LeaseId, *, deadline_ms: int) -> None:
        self.tick()
        self._end_lease(lease)

    async def compact(self, revision: int, *, deadline_ms: int) -> None:
        self.tick()
        self._store.compact(revision)

    async def close(self) -> None:
        """Does nothing: no resource is held open."""

    def defragment(self) -> None:
        """Gives back what deletions and compaction freed; the alarm stays."""
        kept = Request(writes=tuple(Put(item.key, item.value) for item in self._store.kept()))
        self._quota.used_bytes = _cost_of(kept) + LEASE_BYTES * len(self._leases)

    def disarm(self) -> None:
        """Lifts the alarm. Without space the next put raises it again."""
        self._quota.has_alarm = False

    def dump(self) -> tuple[KeyValue, ...]:
        """Returns all items stored now, in key order; for tests."""
        return tuple(self._store.scan(b"", b"\0"))

    def _check_space(self, call: str, cost_bytes: int) -> None:
        """Unknown, though here nothing was done: etcd may have done it, and does not say."""
        if not self._quota.admits(cost_bytes):
            raise Unknown(call=call, reason=OUT_OF_SPACE)

    def _check_leases(self, request: Request) -> None:
        for write in request.writes:
            if isinstance(write, Put) and write.lease and write.lease not in self._leases:
                raise Conflict(lease=write.lease, found="gone")

    def _write(self, writes: tuple[Put | Delete, ...]) -> None:
        before = self._store.revision
        self._store.write(writes)
        if self._store.revision != before:
            self._wake_watchers()

    def _end_lease(self, lease: LeaseId) -> None:
        if self._leases.pop(lease, None) is None:
            return
        attached = [item for item in self._store.scan(b"", b"\0") if item.lease == lease]
        self._write(tuple(Delete(item.key) for item in attached))

    def _wake_watchers(self) -> None:
        for waiting in self._watchers:
            if not waiting.done():
                waiting.set_result(None)

    async def _next_write(self) -> None:
        waiting = asyncio.get_running_loop().create_future()
        self._watchers[waiting] = None
        try:
            await waiting
        finally:
            self._watchers.pop(waiting)


def _cost_of(request: Request) -> int:
    """Returns the bytes that a transaction adds; 0 if it puts nothing, whatever it deletes."""
    puts = (write for write in request.writes if isinstance(write, Put))
    return sum(PUT_BYTES + len(put.key) + len(put.value) for put in puts)
