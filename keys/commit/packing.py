"""Selection of the waiting changes that share a batch, in order of arrival; pure.

Two share one only if neither writes a key or a range that the other reads or writes: compares hold
for the state before the batch, so of a create and the drop of its schema both would succeed.
Nobody overtakes a change with which it clashes, and the first that waits is always taken: so each
waits for at most as many batches as there were changes before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from keys.commit.batch import VERSION_KEY, LogHead, PendingTxn, StampedTxn, share
from keys.commit.txn import Txn
from keys.key import Range
from keys.store.kv import TXN_BYTES_MAX, TXN_OPS_MAX, Compare, Put
from keys.store.mvcc import in_range
from metasrv_base.errors import Refused
from metasrv_base.values.frozen import frozen

VERSION_BYTES_MAX = 128  # of the catalog's version as a value


@dataclass(slots=True)
class Footprint:
    """Keys and ranges that the members of a batch read and write."""

    reads: dict[bytes, int] = field(default_factory=dict)
    """Key -> mod_revision as the first of them saw it."""
    ranges: set[Range] = field(default_factory=set)
    """Ranges that must be empty or unchanged."""
    written: set[bytes] = field(default_factory=set)

    def clashes(self, txn: Txn) -> bool:
        """Whether *txn* must not share a batch with all of these.

        Two that saw one key differently would only refuse the batch: one of them is stale.
        """
        return (
            any(self.reads.get(key, revision) != revision for key, revision in txn.expect.items())
            or not self.written.isdisjoint(txn.expect)
            or not self.written.isdisjoint(txn.writes)
            or not self.reads.keys().isdisjoint(txn.writes)
            or any(in_range(key, *keys) for keys in self.ranges for key in txn.writes)
            or any(in_range(key, *keys) for keys in txn.ranges for key in self.written)
        )

    def add(self, txn: Txn) -> None:
        for key, revision in txn.expect.items():
            self.reads.setdefault(key, revision)
        self.ranges |= txn.ranges
        self.written |= txn.writes.keys()


@dataclass(slots=True)
class BatchRoom:
    """The share of the store's limits that one transaction uses, each limit counted separately."""

    version: Compare
    """Compared, and written, only once some member changes metadata."""
    compares: set[Compare]
    """Compares; one that several members make is sent once."""
    writes: int
    size_bytes: int

    @classmethod
    def of(cls, head: LogHead) -> "BatchRoom":
        """Returns the room of a transaction that has the fence alone."""
        return cls(head.version_compare, {head.fence}, 0, _sent_bytes(head.fence))

    def has_operations_for(self, txn: Txn) -> bool:
        """Whether it may fit, told before it is stamped: most of those that do not, do not here."""
        return self.writes + len(txn.writes) + bool(txn.entries) <= TXN_OPS_MAX

    def takes(self, txn: StampedTxn) -> bool:
        """Whether there is room for *txn*; if so, it is taken."""
        new, writes, size_bytes = self.needs(txn)
        compares = len(self.compares) + len(new)
        if max(compares, writes) > TXN_OPS_MAX or size_bytes > TXN_BYTES_MAX:
            return False
        self.compares |= new
        self.writes, self.size_bytes = writes, size_bytes
        return True

    def needs(self, txn: StampedTxn) -> tuple[set[Compare], int, int]:
        """The compares that *txn* adds, and all writes and bytes once it is in."""
        new = {*txn.compares, *([self.version] if txn.moves_head else [])} - self.compares
        writes, size_bytes = self.writes + len(txn.writes), self.size_bytes
        size_bytes += sum(map(_sent_bytes, new))
        for write in txn.writes:
            size_bytes += len(write.key) + (len(write.value) if isinstance(write, Put) else 0)
        if self.version in new:
            writes, size_bytes = writes + 1, size_bytes + len(VERSION_KEY) + VERSION_BYTES_MAX
        return new, writes, size_bytes


def _sent_bytes(compare: Compare) -> int:
    """Returns the bytes of a compare and of the read that tells whether it failed."""
    return 2 * (len(compare.key) + len(compare.end or b""))


@frozen
class PackedBatch:
    """The members of one batch, each stamped for its place there."""

    shares: tuple[StampedTxn, ...]
    after: LogHead
    """The head of the log behind the last of them."""
    taken: tuple[int, ...]
    """Their places, in order, among those that wait."""


def pack(
    head: LogHead, waiting: Sequence[PendingTxn], now_ms: int, *, members_max: int
) -> PackedBatch:
    """The next batch: the first of *waiting*, and all behind it that may and can go with it.

    The version that the first must be, if any, is the next one. Raises Refused("ddl-too-large") if
    it does not fit even alone.
    """
    met, room, behind = Footprint(), BatchRoom.of(head), head
    shares: list[StampedTxn] = []
    taken: list[int] = []
    for position, member in enumerate(waiting):
        if len(taken) == members_max or (position and _goes_alone(member, waiting[0])):
            break
        clashes = met.clashes(member.txn)
        met.add(member.txn)
        if clashes or (taken and not room.has_operations_for(member.txn)):
            continue
        if member.version is not None and member.version != behind.version + 1:
            continue  # perhaps its place is in a later batch
        stamped, after = share(behind, member, now_ms)
        if room.takes(stamped):
            shares.append(stamped)
            taken.append(position)
            behind = after
        elif position == 0:
            raise _too_large(room, stamped)
    return PackedBatch(tuple(shares), behind, tuple(taken))


def _goes_alone(member: PendingTxn, first: PendingTxn) -> bool:
    """A change whose keys are written after it shares its transaction with nobody, and nobody who
    came later goes before it."""
    return member.txn.large is not None or first.txn.large is not None


def _too_large(empty: BatchRoom, txn: StampedTxn) -> Refused:
    new, writes, size_bytes = empty.needs(txn)
    return Refused(
        "ddl-too-large",
        compares=len(empty.compares) + len(new),
        operations=writes,
        operations_max=TXN_OPS_MAX,
        bytes=size_bytes,
        bytes_max=TXN_BYTES_MAX,
    )
