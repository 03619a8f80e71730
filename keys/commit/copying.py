"""The keys of a version that is too large for one transaction, written after it has happened.

The version happens in one transaction, which names its entries in the log; its keys are derived
from them and written in bounded transactions, in the order of their names. Until the last is
written the leader commits nothing else, and who reads keys takes those that are left from here.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from keys.commit.batch import (
    Batch,
    BatchOutcome,
    BatchVerdict,
    LogHead,
    PendingTxn,
    StampedTxn,
    outcome_of,
    seal,
)
from keys.commit.txn import Copies, Stamp
from keys.key import Range
from keys.model.staging.parts import LargeUpdate, LargeUpdateKey
from keys.store.kv import (
    Compare,
    Delete,
    Get,
    KeyValue,
    Put,
    ReadableStore,
    Request,
    TxnAnswer,
)
from keys.store.mvcc import in_range
from keys.value import decode, encode
from metasrv_base.clock import Clock
from metasrv_base.errors import Corrupt, NotLeader, Refused, Unavailable

RESEND_MS = 50  # the first pause before an unanswered batch is sent again; it doubles
CHUNK_BYTES = 600_000
"""Bytes of the keys of one transaction. A larger key goes by itself."""


@dataclass(frozen=True, slots=True)
class KeysLeft:
    """The keys of a large version, and how many are written."""

    key: LargeUpdateKey
    value: LargeUpdate
    revision: int
    """The revision of the key which says how many keys are written."""
    copies: Copies
    """All keys of the version."""

    @classmethod
    def of(cls, version: int, member: PendingTxn, copies: Copies, revision: int) -> Self:
        """The keys of a version that has just happened, at *revision*."""
        assert member.staged is not None
        value = LargeUpdate(version=version, staged=member.staged, keys=len(copies), copied=0)
        return cls(LargeUpdateKey(version), value, revision, copies)

    @property
    def left(self) -> Copies:
        return self.copies[self.value.copied :]

    @property
    def compare(self) -> Compare:
        return Compare(bytes(self.key), self.revision)

    def chunk(self, ops_max: int) -> Copies:
        """The next keys, as many as one transaction takes."""
        size = 0
        for number, write in enumerate(self.left[:ops_max]):
            size += len(write.key) + (len(write.value) if isinstance(write, Put) else 0)
            if number and size > CHUNK_BYTES:
                return self.left[:number]
        return self.left[:ops_max]

    def after(self, count: int) -> LargeUpdate:
        """The value once *count* more are written."""
        return self.value.model_copy(update={"copied": self.value.copied + count})


@dataclass(frozen=True, slots=True)
class StoredLarge:
    """A large version whose keys are not all written, as the store has it."""

    key: LargeUpdateKey
    value: LargeUpdate
    revision: int

    def with_copies(self, copies: Copies) -> KeysLeft:
        """Returns the keys that are left. Raises Corrupt unless as many were to be written."""
        if len(copies) != self.value.keys:
            raise Corrupt(key=str(self.key), expected=self.value.keys, found=len(copies))
        return KeysLeft(self.key, self.value, self.revision, copies)


async def read_uncopied(
    kv: ReadableStore, fence: Compare, *, deadline_ms: int
) -> StoredLarge | None:
    """The large version that an earlier leader has left with keys to be written; read under the
    fence. Raises NotLeader."""
    request = Request(compares=(fence,), reads=(Get(*LargeUpdateKey.under()),))
    answer = await kv.txn(request, deadline_ms=deadline_ms)
    if not answer.succeeded:
        raise NotLeader(term=fence.mod_revision)
    return uncopied_of(answer.ranges[0])


def uncopied_of(items: Iterable[KeyValue]) -> StoredLarge | None:
    """Finds the version whose keys are not all copied. *items*: the keys of the family. Raises
    Corrupt if several are not."""
    uncopied: list[StoredLarge] = []
    for item in items:
        key = LargeUpdateKey.parse(item.key)
        value = decode(LargeUpdate, item.value, key=str(key))
        if not value.is_copied:
            uncopied.append(StoredLarge(key, value, item.mod_revision))
    if len(uncopied) > 1:
        keys = [str(large.key) for large in uncopied]
        raise Corrupt(log="several versions are not copied", found=keys)
    return uncopied[0] if uncopied else None


def overlaid(
    items: Sequence[KeyValue],
    left: Iterable[Put | Delete],
    revision: int,
    keys: Range | None = None,
) -> tuple[KeyValue, ...]:
    """*items* as they are once *left* is written. *revision*: that at which the version happened;
    *keys*: the range that was read, None: everything."""
    written: Mapping[bytes, Put | Delete] = {
        write.key: write for write in left if keys is None or in_range(write.key, *keys)
    }
    new = {item.key: item for item in items if item.key not in written}
    before = {item.key: item for item in items}
    for key, write in written.items():
        if isinstance(write, Put):
            created = before[key].create_revision if key in before else revision
            new[key] = KeyValue(key, write.value, created, revision)
    return tuple(new[key] for key in sorted(new))


Send = Callable[[Batch], Awaitable[tuple[TxnAnswer, bool]]]
"""Sends a batch until it is answered. Returns the answer, and whether an earlier copy was not."""


class KeyCopier:
    """Writes what is left of a large version, before its leader commits anything else."""

    def __init__(self, send: Send, clock: Clock) -> None:
        self._send = send
        self._clock = clock

    async def copy(self, head: LogHead, left: KeysLeft, ops_max: int) -> int:
        """Returns the revision at which all keys are written. *ops_max*: keys of one transaction.
        Raises NotLeader."""
        while not left.value.is_copied:
            chunk = left.chunk(ops_max)
            batch = _chunk_batch(head, left, chunk)
            try:
                answer, in_doubt = await self._send(batch)
            except Unavailable:
                await self._clock.sleep_ms(RESEND_MS)
                continue
            except Refused:  # the store takes less than we think
                if ops_max == 1:
                    raise
                ops_max //= 2
                continue
            left = _after(left, chunk, outcome_of(batch, answer, in_doubt=in_doubt), head)
        return left.revision


def _chunk_batch(head: LogHead, left: KeysLeft, chunk: Copies) -> Batch:
    """One transaction: it compares and moves the count of written keys, so it happens once."""
    count = Put(bytes(left.key), encode(left.after(len(chunk))))
    stamp = Stamp(catalog_version=None, submission=head.submission, at_ms=head.at_ms)
    return seal(head, head, [StampedTxn(stamp, (left.compare,), (*chunk, count), None)])


def _after(left: KeysLeft, chunk: Copies, outcome: BatchOutcome, head: LogHead) -> KeysLeft:
    match outcome.verdict:
        case BatchVerdict.DONE:
            value = left.after(len(chunk))
            return KeysLeft(left.key, value, outcome.revision, left.copies)
        case BatchVerdict.FENCED:
            raise NotLeader(term=head.fence.mod_revision)
        case BatchVerdict.REFUSED:
            raise Corrupt(key=str(left.key), reason="written by somebody else")
