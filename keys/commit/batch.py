"""One batch of changes as one etcd transaction, and the meaning of its answer. Pure functions.

A batch is one flat transaction (P1). It compares the fence (the election key, at the revision at
which this leader won), the catalog's version and what every member read. It writes what every
member writes, one log entry for each that is metadata, and the version once. Once another server
has won, the fence does not match and nothing is written: that is why a deposed leader cannot
commit. `share` numbers a member, `seal` makes the transaction, `outcome_of` reads the answer: done,
fenced, or refused, and then by whose compares.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum

from keys.commit.txn import Stamp, Txn
from keys.model.log import (
    CatalogUpdate,
    CatalogUpdateKey,
    CatalogVersion,
    CatalogVersionKey,
    StagedRef,
    format_of,
)
from keys.model.origin import Origin
from keys.model.staging.parts import LargeUpdate, LargeUpdateKey
from keys.store.kv import Compare, Delete, Get, KeyValue, Put, Request, TxnAnswer
from keys.value import encode
from metasrv_base.values.frozen import frozen

VERSION_KEY = bytes(CatalogVersionKey())


@frozen
class LogHead:
    """The end of the catalog log, as the leader of this term knows it: what the next batch follows.

    `read_log_head` (log_head.py) makes the first of a term from the fence that the election won.
    """

    fence: Compare
    """The election key at the revision of the transaction that won it (P1.2). That revision is the
    term."""
    version: int
    version_revision: int
    """mod_revision of the CatalogVersion."""
    at_ms: int
    """No later commit bears this time or an earlier one."""
    submission: int
    """The last submission number given out."""

    @property
    def version_compare(self) -> Compare:
        return Compare(VERSION_KEY, self.version_revision)


@frozen
class PendingTxn:
    """One change, as it was given to the committer."""

    txn: Txn
    procedure: str | None
    origin: Origin | None = None
    """The request that it comes from, for the log."""
    closes_ms: int | None = None
    """No commit after this one is to bear that time, or an earlier one."""
    staged: StagedRef | None = None
    """The parts that hold the entries, of a change whose keys are written after it."""
    copies: int = 0
    """The number of those keys."""
    version: int | None = None
    """The version that it must be; None: the next one."""


@frozen
class StampedTxn:
    """The part of a batch that one member contributes, stamped for its position there."""

    stamp: Stamp
    compares: tuple[Compare, ...]
    writes: tuple[Put | Delete, ...]
    """Includes its log entry; the catalog version is written once, by the batch."""
    update: CatalogUpdate | None
    """The catalog's update; None if the member changes no metadata."""
    is_closing: bool = False

    @property
    def moves_head(self) -> bool:
        return self.update is not None or self.is_closing

    def witnesses(self) -> Iterator[bytes]:
        """Keys whose compare cannot hold any more once this has been done.

        To delete what was not there changes nothing, so such a key is no witness.
        """
        revisions = {
            compare.key: compare.mod_revision for compare in self.compares if not compare.end
        }
        for write in self.writes:
            if write.key in revisions and (isinstance(write, Put) or revisions[write.key]):
                yield write.key


def share(head: LogHead, member: PendingTxn, now_ms: int) -> tuple[StampedTxn, LogHead]:
    """Stamps *member* as the next one behind *head*; returns it and the head behind it."""
    txn = member.txn
    version = head.version + 1 if txn.entries else None
    stamp = Stamp(version, head.submission + 1, max(now_ms, head.at_ms + 1))
    at_ms = head.at_ms
    if member.closes_ms is not None:
        at_ms = max(member.closes_ms, head.at_ms + 1)
    made = {k: make(stamp) if callable(make) else make for k, make in txn.writes.items()}
    update = None
    if version is not None:
        update = CatalogUpdate(
            format=format_of(txn.entries),
            version=version,
            at_ms=stamp.at_ms,
            procedure=member.procedure,
            origin=member.origin,
            entries=txn.entries,
        )
        made.update(_logged(update, member))
        if member.staged is not None:  # as a follower has it, which reads the parts
            stored = update.without_entries(member.staged)
            update = stored.model_copy(update={"entries": txn.entries})
        at_ms = stamp.at_ms
    number = head.version if version is None else version
    after = LogHead(head.fence, number, head.version_revision, at_ms, stamp.submission)
    compares = [Compare(key, revision) for key, revision in txn.expect.items()]
    compares += [Compare(start, 0, end) for start, end in txn.empty]
    compares += [
        Compare(start, revision, end, or_older=True)
        for (start, end), revision in txn.unchanged.items()
    ]
    writes = tuple(Delete(k) if v is None else Put(k, v) for k, v in made.items())
    closing = member.closes_ms is not None
    return StampedTxn(stamp, tuple(compares), writes, update, closing), after


def _logged(update: CatalogUpdate, member: PendingTxn) -> Iterator[tuple[bytes, bytes]]:
    """Yields what the log gets: *update*, or where its entries are, and the keys that are left."""
    key, staged = bytes(CatalogUpdateKey(update.version)), member.staged
    if staged is None:
        yield key, encode(update)
        return
    yield key, encode(update.without_entries(staged))
    left = LargeUpdate(version=update.version, staged=staged, keys=member.copies, copied=0)
    yield bytes(LargeUpdateKey(update.version)), encode(left)


@frozen
class Batch:
    """One transaction as it is sent, again and again if need be."""

    request: Request
    shares: tuple[StampedTxn, ...]
    before: LogHead
    """The head as this leader believed it to be."""
    after: LogHead
    """But for `version_revision`, which only the commit tells."""

    @property
    def updates(self) -> tuple[CatalogUpdate, ...]:
        """The updates of the catalog, in order of their versions."""
        return tuple(each.update for each in self.shares if each.update is not None)

    def head_after(self, revision: int) -> LogHead:
        """The head once this batch has committed at *revision*."""
        moved = _has_moved(self.before, self.after)
        return replace(self.after, version_revision=revision) if moved else self.after


def _has_moved(before: LogHead, after: LogHead) -> bool:
    """Returns whether the log has moved, by an update or by a closed time."""
    return after.at_ms != before.at_ms


def seal(before: LogHead, after: LogHead, shares: Sequence[StampedTxn]) -> Batch:
    """The batch of *shares*, which took the head from *before* to *after*."""
    compares = {before.fence: None}
    writes = [write for each in shares for write in each.writes]
    if _has_moved(before, after):
        compares[before.version_compare] = None
        version = CatalogVersion(version=after.version, at_ms=after.at_ms)
        writes.append(Put(VERSION_KEY, encode(version)))
    compares.update(dict.fromkeys(compare for each in shares for compare in each.compares))
    witness = _witness(before, after, shares)
    reads = (_failing(compare, keys_only=compare.key != witness) for compare in compares)
    request = Request(tuple(compares), tuple(writes), on_refusal=tuple(reads))
    return Batch(request, tuple(shares), before, after)


def _failing(compare: Compare, *, keys_only: bool) -> Get:
    """Returns the read that tells whether *compare* failed, and by which key."""
    newer_than = compare.mod_revision if compare.or_older else 0
    return Get(compare.key, compare.end, limit=1, keys_only=keys_only, newer_than=newer_than)


def _witness(before: LogHead, after: LogHead, shares: Sequence[StampedTxn]) -> bytes:
    """A key that the batch compares and changes: of two copies at most one takes effect.

    One that is put is preferred: it tells *which* transaction wrote it. The same in every process.
    """
    if _has_moved(before, after):
        return VERSION_KEY
    put = {write.key for each in shares for write in each.writes if isinstance(write, Put)}
    candidates = sorted((key not in put, key) for each in shares for key in each.witnesses())
    assert candidates, "a transaction must change a key that it compares"
    return candidates[0][1]


class BatchVerdict(Enum):
    DONE = "done"
    REFUSED = "refused"
    """The batch was not applied, under an intact fence."""
    FENCED = "fenced"
    """The batch was not applied, now or later; another server leads."""


@frozen
class BatchOutcome:
    """The meaning of a batch's answer for the batch and for each of its members."""

    verdict: BatchVerdict
    revision: int = 0
    """Revision of the writes, if the verdict is done."""
    stale: Mapping[int, Mapping[str, object]] = field(default_factory=dict)
    """Place of a share -> key, expected and found of the first of its compares that failed."""
    has_version_moved: bool = False
    """The catalog's version is not the one that was compared."""


def outcome_of(batch: Batch, answer: TxnAnswer, *, in_doubt: bool) -> BatchOutcome:
    """Reads what *answer* means for the batch and for each of its members.

    *in_doubt*: these bytes were sent before and never answered. Only then can a refusal mean that
    they had taken effect: their witness stands in the store as we would have written it. Once the
    fence is lost that proves nothing: a successor may have run the same step to the same value.
    """
    if answer.succeeded:
        return BatchOutcome(BatchVerdict.DONE, answer.revision)
    items_by_compare = dict(zip(batch.request.compares, answer.ranges, strict=True))
    revisions = {
        compare: items[0].mod_revision if items else 0
        for compare, items in items_by_compare.items()
    }
    failed = {
        compare: revision
        for compare, revision in revisions.items()
        if not _holds(compare, revision)
    }
    assert failed, "refused, yet every compare holds"
    if batch.before.fence in failed:
        return BatchOutcome(BatchVerdict.FENCED)
    if in_doubt and (witness := _effect(batch.request, failed, items_by_compare)) is not None:
        return BatchOutcome(
            BatchVerdict.DONE, witness[0].mod_revision if witness else answer.revision
        )
    stale = {}
    for position, each in enumerate(batch.shares):
        first = next((compare for compare in each.compares if compare in failed), None)
        if first is not None:
            facts = {"expected": first.mod_revision, "found": failed[first]}
            stale[position] = {"key": first.key.decode(), **facts}
    moved = batch.before.version_compare in failed
    return BatchOutcome(BatchVerdict.REFUSED, stale=stale, has_version_moved=moved)


def _holds(compare: Compare, revision: int) -> bool:
    """Whether *compare* holds. *revision*: that of the key that `_failing` read; 0: none."""
    if compare.or_older:
        return revision <= compare.mod_revision
    return revision == compare.mod_revision


def _effect(
    request: Request,
    failed: Mapping[Compare, int],
    items_by_compare: Mapping[Compare, tuple[KeyValue, ...]],
) -> tuple[KeyValue, ...] | None:
    """The witness, if it has moved and stands as *request* leaves it: under one fence only we
    write. Empty: it is gone, as it should be. None: it does not tell of this request."""
    reads = zip(request.compares, request.on_refusal, strict=True)
    witness = next(compare for compare, get in reads if not get.keys_only)
    items = items_by_compare[witness]
    write = Put(witness.key, items[0].value) if items else Delete(witness.key)
    return items if witness in failed and write in request.writes else None
