"""The queue of a leader's writes to the store: every fenced write goes through its committer.

Group commit (P1): one batch is in flight; when it is answered, the next is filled from the queue
(keys/commit/packing.py). When an outcome is unknown, *the same bytes* are sent until answered:
every batch compares a key that it changes, so of two copies at most one takes effect.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from keys.commit.batch import (
    Batch,
    BatchOutcome,
    BatchVerdict,
    LogHead,
    PendingTxn,
    outcome_of,
    seal,
)
from keys.commit.commit_queue import WAITING_MAX, CommitQueue
from keys.commit.copying import RESEND_MS, KeyCopier, KeysLeft
from keys.commit.handling import must_not_be_handling
from keys.commit.packing import pack
from keys.commit.settled import Settling, Torn
from keys.commit.staging import ENTRIES, PartsReference, StagingSizes, parts_of
from keys.commit.txn import Copies, Stamp, Txn
from keys.model.log import CatalogUpdate, CatalogVersion, CatalogVersionKey, StagedRef
from keys.model.origin import Origin
from keys.store.kv import OUT_OF_SPACE, TXN_OPS_MAX, Get, Kv, Request, TxnAnswer
from keys.value import StoredPart, decode
from metasrv_base.clock import Clock
from metasrv_base.errors import (
    Conflict,
    Corrupt,
    MetaError,
    NotLeader,
    Refused,
    Unavailable,
    Unknown,
)

RESEND_MS_MAX = 2_000  # between two copies of an unanswered batch; the first pause is RESEND_MS
COUNTED_S = 1.0
"""Limit of the time that a large change waits until the update before it counts."""


class StaleRead(Conflict):
    """A compare of this change did not hold: not done. Read again, then decide again."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The change is in the store, at `revision`, with the values its stamp filled in."""

    revision: int
    stamp: Stamp


@dataclass(frozen=True, slots=True, eq=False)
class _PendingCommit:
    member: PendingTxn
    answer: "asyncio.Future[Committed]"

    def succeed(self, committed: Committed) -> None:
        if not self.answer.done():
            self.answer.set_result(committed)

    def fail(self, error: MetaError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class VersionTaken(Conflict):
    """The change was to be a version that is not the next one of the log: not done."""


Applied = Callable[[CatalogUpdate, int], "asyncio.Future[None] | None"]
"""Hears of an update and its revision. None: it counts already; else what ends when it does."""


class Committer:
    """Lives as long as one term. `run` sends the batches; `commit` is what everybody else calls."""

    def __init__(self, kv: Kv, clock: Clock, head: LogHead, *, deadline_ms: int) -> None:
        self._kv = kv
        self._clock = clock
        self._head = head
        self._deadline_ms = deadline_ms
        self._queue = CommitQueue[_PendingCommit]()
        self._in_flight: Sequence[_PendingCommit] = ()
        self._members_max = TXN_OPS_MAX
        """Less where the store allows less than we think; it grows again with each success."""
        self._listeners: list[Applied] = []
        self._uncounted: asyncio.Future[None] | None = None
        """Ends when the newest update counts; None: it did."""
        self._unanswered = 0
        """Commits that are done, and are answered once their update counts."""
        self._ended = False
        self._is_out_of_space = False
        """Whether the store had no space for the last batch that it answered."""
        self._copier = KeyCopier(self._send, clock)
        self.sizes = StagingSizes()
        self._left: KeysLeft | None = None
        self._large = count(1)
        self.settling = Settling()
        """Asked by whoever reads keys of metadata under this leader (SettledReads)."""

    @property
    def term(self) -> int:
        return self._head.fence.mod_revision

    def on_update(self, listener: Applied) -> None:
        """Calls *listener* with every update; the update counts as applied before its commit is
        answered (P7)."""
        self._listeners.append(listener)

    def must_have_space(self) -> None:
        """Raises Unavailable("storage-full") while the batch in flight waits for space in the
        store, for those who would rather not wait behind it."""
        if self._is_out_of_space:
            raise Unavailable("storage-full")

    async def commit(
        self, txn: Txn, *, procedure: str | None = None, origin: Origin | None = None
    ) -> Committed:
        """Commits *txn* in the next batch. *origin*: the request that it comes from, for the log.

        Raises StaleRead, Refused, Unavailable or NotLeader: not done; Unknown: the term ended
        before an answer did.

        A caller that is cancelled while its change is on the way leaves it to `run` to settle.
        """
        member = PendingTxn(txn, procedure, origin)
        if txn.large is not None:
            batch = f"{procedure}.{self.term}.{next(self._large)}"
            member = replace(member, staged=await self.stage(batch, ENTRIES, txn.entries))
        return await self._ask(member)

    async def stage(self, batch: str, what: str, items: Iterable[StoredPart]) -> StagedRef:
        """Writes the parts of *items*, to which nothing refers yet. *batch*: a name that was never
        used. Raises as `commit`."""
        reference = PartsReference(batch)
        for key, raw in parts_of(batch, what, items, part_bytes=self.sizes.part_bytes):
            await self._ask(PendingTxn(Txn().expecting(key, 0).put_stored(key, raw), None))
            reference.add(raw)
        return reference.made()

    def finish(self, left: KeysLeft) -> None:
        """Call it before `run`: an earlier leader has left keys of the newest version to be
        written, and nothing is committed before they are."""
        self._left = left
        self.settling.begin()

    async def commit_as(
        self, version: int, txn: Txn, *, procedure: str | None, origin: Origin | None
    ) -> Committed:
        """Commits *txn* if it makes exactly *version*. Raises as `commit`, and VersionTaken: not
        done."""
        assert txn.entries, "only what the log tells makes a version"
        assert txn.large is None, "a version in parts takes the next number"
        return await self._ask(PendingTxn(txn, procedure, origin, version=version))

    async def close(self, until_ms: int) -> None:
        """Durable when it returns: no later commit, of this leader or the next, bears that time or
        an earlier one. Raises as `commit`."""
        if self._head.at_ms < until_ms:
            await self._ask(PendingTxn(Txn(), None, closes_ms=until_ms))

    async def _ask(self, member: PendingTxn) -> Committed:
        must_not_be_handling("commit")
        if self._ended:
            raise NotLeader(term=self.term)
        if self._unanswered >= WAITING_MAX:
            raise Unavailable("not-ready", what="the update handlers")
        answer: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        pending = _PendingCommit(member, answer)
        await self._queue.put(pending)
        if self._ended:  # while it waited for room
            pending.fail(NotLeader(term=self.term))
        return await answer

    async def run(self) -> None:
        """Sends batches until the fence is lost (raises NotLeader) or the term's task group
        ends."""
        try:
            if self._left is not None:
                self.settling.settle(Torn(0, await self._copy(self._left)))
            while True:
                await self._queue.fill()
                await self._commit_next()
        except Corrupt as error:
            while self._queue.waiting:
                self._queue.waiting.popleft().fail(error)
            raise
        finally:
            self._ended = True
            self.settling.end()
            for pending in self._in_flight:
                pending.fail(Unknown(term=self.term))
            for pending in self._queue.leave():
                pending.fail(NotLeader(term=self.term))

    async def _commit_next(self) -> None:
        """Sends one batch until it is answered, and tells its members the result."""
        if self._queue.waiting[0].member.txn.large is not None:
            await self._commit_large(self._queue.waiting.popleft())
            return
        members = [pending.member for pending in self._queue.waiting]
        first, next_version = members[0].version, self._head.version + 1
        if first is not None and first != next_version:
            self._queue.waiting.popleft().fail(VersionTaken(expected=first, found=next_version))
            return
        try:
            packed = pack(self._head, members, self._clock.wall_ms(), members_max=self._members_max)
        except Refused as error:
            self._queue.waiting.popleft().fail(error)
            return
        self._in_flight = self._queue.take(packed.taken)
        batch = seal(self._head, packed.after, packed.shares)
        try:
            answer, in_doubt = await self._send(batch)
        except (Unavailable, Refused) as error:
            self._not_sent(error)
        else:
            await self._tell(batch, outcome_of(batch, answer, in_doubt=in_doubt), in_doubt)

    async def _commit_large(self, pending: _PendingCommit) -> None:
        """One version by itself, and then its keys; all others wait until they are written."""
        self._in_flight = (pending,)
        self.settling.begin()
        await self._until_counted()
        try:
            copies = await _copies(pending.member, self._head)
            member = replace(pending.member, copies=len(copies))
            packed = pack(self._head, [member], self._clock.wall_ms(), members_max=1)
            batch = seal(self._head, packed.after, packed.shares)
            answer, in_doubt = await self._send(batch)
        except MetaError as error:
            self.settling.settle(None)
            self._not_sent(error)
            return
        outcome = outcome_of(batch, answer, in_doubt=in_doubt)
        if outcome.verdict is BatchVerdict.DONE:
            self._move(batch, outcome.revision)
            left = KeysLeft.of(batch.updates[0].version, member, copies, outcome.revision)
            self.settling.settle(Torn(outcome.revision, await self._copy(left)))
            self._answer(batch, outcome.revision)
        else:
            await self._tell(batch, outcome, in_doubt)
            self.settling.settle(None)

    async def _until_counted(self) -> None:
        """Waits until the newest update counts: a large change is planned on its catalog. Handlers
        that take longer than COUNTED_S hold nobody else back."""
        if self._uncounted is not None:
            await asyncio.wait([self._uncounted], timeout=COUNTED_S)

    async def _send(self, batch: Batch) -> tuple[TxnAnswer, bool]:
        """The answer, and whether a copy was sent before that never was answered.

        Once a copy may be on its way, no failure of a later copy says that nothing was done (P1.3).
        Raises Unavailable and Refused: nothing was.
        """
        in_doubt, pause_ms = False, RESEND_MS
        while True:
            try:
                answer = await self._kv.txn(batch.request, deadline_ms=self._deadline_ms)
            except (Unknown, Unavailable, Refused) as error:
                in_doubt = in_doubt or isinstance(error, Unknown)
                self._is_out_of_space = error.facts.get("reason") == OUT_OF_SPACE
                if not in_doubt:
                    raise
                await self._clock.sleep_ms(pause_ms)
                pause_ms = min(2 * pause_ms, RESEND_MS_MAX)
            else:
                self._is_out_of_space = False
                return answer, in_doubt

    async def _copy(self, left: KeysLeft) -> int:
        return await self._copier.copy(self._head, left, self.sizes.chunk_ops)

    def _not_sent(self, error: MetaError) -> None:
        """Halves the size of batches after `ddl-too-large` and queues the members again; fails a
        single member, and all members after any other error."""
        members, self._in_flight = self._in_flight, ()
        if error.code == "ddl-too-large" and len(members) > 1:
            self._members_max = len(members) // 2
            self._queue.waiting.extendleft(reversed(members))
            return
        for pending in members:
            pending.fail(error)

    async def _tell(self, batch: Batch, outcome: BatchOutcome, in_doubt: bool) -> None:
        match outcome.verdict:
            case BatchVerdict.DONE:
                self._move(batch, outcome.revision)
                self._answer(batch, outcome.revision)
            case BatchVerdict.FENCED:
                if not in_doubt:  # else Unknown: the successor may have built on what it found
                    self._queue.waiting.extendleft(reversed(self._in_flight))
                    self._in_flight = ()
                raise NotLeader(term=self.term)
            case BatchVerdict.REFUSED:
                self._refused(outcome)
                if outcome.has_version_moved:
                    await self._read_head_again()

    def _move(self, batch: Batch, revision: int) -> None:
        self._head = batch.head_after(revision)
        for update in batch.updates:
            for listener in self._listeners:
                self._uncounted = listener(update, revision) or self._uncounted

    def _answer(self, batch: Batch, revision: int) -> None:
        self._members_max = min(2 * self._members_max, TXN_OPS_MAX)
        if self._uncounted is not None and self._uncounted.done():
            self._uncounted = None
        members, self._in_flight = self._in_flight, ()
        for pending, share in zip(members, batch.shares, strict=True):
            committed = Committed(revision, share.stamp)
            if self._uncounted is None or not share.moves_head:
                pending.succeed(committed)
            else:
                self._unanswered += 1
                self._uncounted.add_done_callback(partial(self._answer_late, pending, committed))

    def _answer_late(
        self, pending: _PendingCommit, committed: Committed, _: "asyncio.Future[None]"
    ) -> None:
        self._unanswered -= 1
        pending.succeed(committed)

    def _refused(self, outcome: BatchOutcome) -> None:
        """Fails the members whose own compares failed; the others are queued first and numbered
        anew."""
        members, self._in_flight = self._in_flight, ()
        left = []
        for position, pending in enumerate(members):
            if position in outcome.stale:
                pending.fail(StaleRead(**outcome.stale[position]))
            else:
                left.append(pending)
        self._queue.waiting.extendleft(reversed(left))

    async def _read_head_again(self) -> None:
        """A version that moved under an intact fence is ours, or our data makes no sense."""
        key = CatalogVersionKey()
        request = Request(compares=(self._head.fence,), reads=(Get(bytes(key)),))
        while True:
            try:
                answer = await self._kv.txn(request, deadline_ms=self._deadline_ms)
                break
            except Unavailable:
                await self._clock.sleep_ms(RESEND_MS)
        if not answer.succeeded:
            raise NotLeader(term=self.term)
        (item,) = answer.ranges[0]
        value = decode(CatalogVersion, item.value, key=str(key))
        if value.version != self._head.version:
            raise Corrupt(key=str(key), expected=self._head.version, found=value.version)
        at_ms = max(self._head.at_ms, value.at_ms)
        self._head = replace(self._head, version_revision=item.mod_revision, at_ms=at_ms)


async def _copies(member: PendingTxn, head: LogHead) -> Copies:
    """The keys of a large change, by the catalog at *head*. Raises StaleRead."""
    assert member.txn.large is not None
    copies = await member.txn.large.copies(head.version)
    if copies is None:
        raise StaleRead(reason="the catalog has moved", version=head.version)
    return copies
