"""One line to the store: every fenced write of a leader goes through its committer, in order.

PROTOCOLS P1. The committer numbers what is metadata, adds the fence and the catalog log, and sends
one transaction at a time. When the outcome is unknown it sends *the same bytes* again until it is
answered: every transaction compares a key that it also writes, so of two copies at most one takes
effect. Members travel one by one for now; a batch of many is `_next_batch` with more than one.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from base.clock import Clock
from base.errors import Conflict, Corrupt, NotLeader, Refused, Unavailable, Unknown
from keys.batch import Batch, Line, Verdict, judge, seal
from keys.kv import Get, Kv, Request
from keys.log import CatalogUpdate, CatalogVersion, CatalogVersionKey
from keys.txn import Stamp, Txn
from keys.value import decode

WAITING_MAX = 4_096  # members in the queue: more than every running procedure can hold at once
RESEND_MS = 50  # first pause before an unanswered batch is sent again; doubles up to RESEND_MS_MAX
RESEND_MS_MAX = 2_000


class StaleRead(Conflict):
    """A compare of this change did not hold: not done. Read again, then decide again."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The change is in the store, at `revision`, with the values its stamp filled in."""

    revision: int
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class _Member:
    txn: Txn
    procedure: str | None
    answer: "asyncio.Future[Committed]"


Applied = Callable[[CatalogUpdate, int], None]


class Committer:
    """Lives as long as one term. `run` owns the line; `commit` is what everybody else calls."""

    def __init__(self, kv: Kv, clock: Clock, line: Line, *, deadline_ms: int) -> None:
        self._kv = kv
        self._clock = clock
        self._line = line
        self._deadline_ms = deadline_ms
        self._waiting: asyncio.Queue[_Member] = asyncio.Queue(WAITING_MAX)
        self._listeners: list[Applied] = []
        self._ended = False

    @property
    def term(self) -> int:
        return self._line.fence.mod_revision

    def on_update(self, listener: Applied) -> None:
        """*listener* hears of every update before its commit is answered (P7)."""
        self._listeners.append(listener)

    async def commit(self, txn: Txn, *, procedure: str | None = None) -> Committed:
        """Raises StaleRead, Refused, Unavailable or NotLeader: not done; Unknown: the term ended
        before an answer did.

        A caller that is cancelled while its change is on the way leaves it to the line to settle.
        """
        if self._ended:
            raise NotLeader(term=self.term)
        answer: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        await self._waiting.put(_Member(txn, procedure, answer))
        if self._ended:  # while it waited for room
            _fail(answer, NotLeader(term=self.term))
        return await answer

    async def run(self) -> None:
        """Until the fence is lost (raises NotLeader) or the term's task group ends."""
        try:
            while True:
                member = await self._waiting.get()
                if not member.answer.cancelled():
                    await self._settle(member)
        finally:
            self._ended = True
            while not self._waiting.empty():
                _fail(self._waiting.get_nowait().answer, NotLeader(term=self.term))

    async def _settle(self, member: _Member) -> None:
        """Answers *member*, however often its bytes must be sent."""
        try:
            committed = await self._commit_one(member)
        except (Refused, StaleRead, Unavailable) as error:
            _fail(member.answer, error)
        except (NotLeader, Corrupt) as error:
            _fail(member.answer, error)
            raise
        else:
            if not member.answer.done():
                member.answer.set_result(committed)
        finally:
            _fail(member.answer, Unknown(term=self.term))

    async def _commit_one(self, member: _Member) -> Committed:
        while True:
            batch = seal(self._line, member.txn, member.procedure, self._clock.wall_ms())
            verdict, revision = await self._send(batch, member)
            if verdict is Verdict.DONE:
                self._line = batch.line_after(revision)
                for update in batch.updates:
                    for listener in self._listeners:
                        listener(update, revision)
                return Committed(revision, batch.stamp)
            await self._read_line_again()

    async def _send(self, batch: Batch, member: _Member) -> tuple[Verdict, int]:
        """The verdict on *batch*: DONE, or RENUMBER where only the version's compare failed.

        Once a copy may be on its way, no failure of a later copy says that nothing was done.
        """
        unsettled, pause_ms = False, RESEND_MS
        while True:
            try:
                answer = await self._kv.txn(batch.request, deadline_ms=self._deadline_ms)
            except (Unknown, Unavailable, Refused) as error:
                unsettled = unsettled or isinstance(error, Unknown)
                if not unsettled:
                    raise
                await self._clock.sleep_ms(pause_ms)
                pause_ms = min(2 * pause_ms, RESEND_MS_MAX)
                continue
            verdict, facts = judge(batch, answer, unsettled=unsettled)
            match verdict:
                case Verdict.DONE | Verdict.RENUMBER:
                    return verdict, batch.committed_at(answer)
                case Verdict.FENCED:
                    if unsettled:  # the successor may have built on what it found of us
                        _fail(member.answer, Unknown(term=self.term))
                    raise NotLeader(term=self.term, **facts)
                case Verdict.STALE:
                    raise StaleRead(**facts)

    async def _read_line_again(self) -> None:
        """A version that moved under an intact fence is ours, or our data makes no sense."""
        key = CatalogVersionKey()
        request = Request(compares=(self._line.fence,), reads=(Get(bytes(key)),))
        while True:
            try:
                answer = await self._kv.txn(request, deadline_ms=self._deadline_ms)
                break
            except Unavailable:
                await self._clock.sleep_ms(RESEND_MS)
        if not answer.succeeded:
            raise NotLeader(term=self.term)
        (found,) = answer.ranges[0]
        value = decode(CatalogVersion, found.value, key=str(key))
        if value.version != self._line.version:
            raise Corrupt(key=str(key), expected=self._line.version, found=value.version)
        self._line = replace(self._line, version_revision=found.mod_revision)


def _fail(answer: "asyncio.Future[Committed]", error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)
