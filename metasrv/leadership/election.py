"""Elects a leader: one key under one etcd lease; the revision of the transaction that won is the
fence.

Safety rests on that revision, which every write compares, never on the lease. The lease only says
when to try. A leader steps down before its lease can end, by its own clock, counted from before the
renewal was sent (G19).
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import structlog
from pydantic import ConfigDict

from keys.model.cluster import Candidate, CandidateKey, LeaderKey, LeaderRecord
from keys.store.kv import Compare, Get, KeyValue, Kv, LeaseId, Put, Request, TxnAnswer
from keys.value import NewerFormat, decode, encode
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, Unavailable, Unknown

DRIFT = 0.05  # our clock's rate against etcd's
MARGIN_MS = 200  # what a step takes between looking at the clock and being seen
RENEW_AGAIN_MS = 100  # after a renewal that was not answered
LOOK_MS = 500  # between looks of a follower at the seat

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    server: str
    url: str
    version: str


@dataclass(frozen=True, slots=True)
class ElectionTiming:
    ttl_ms: int
    keep_alive_ms: int
    deadline_ms: int


@dataclass(slots=True)
class ElectionSession:
    """A lease of this server, and until when it surely lives."""

    lease: LeaseId
    valid_until_ms: int


class SessionLost(Conflict):
    """The lease has ended, or may have: whatever was held under it is not held any more."""

    default_code = "not-leader"


class Election:
    """Campaigns for one server. `on_leader` hears who leads, whenever that changes."""

    def __init__(self, kv: Kv, clock: Clock, me: ServerIdentity, timing: ElectionTiming) -> None:
        self._kv = kv
        self._clock = clock
        self._me = me
        self._timing = timing
        self._session: ElectionSession | None = None

    def is_valid(self) -> bool:
        """Whether our lease surely lives: nothing is granted in its name once it may not."""
        session = self._session
        return session is not None and self._clock.mono_ms() < session.valid_until_ms

    async def open_session(self) -> ElectionSession:
        """A new lease, with our candidate key under it. Raises Unknown or Unavailable."""
        before = self._clock.mono_ms()
        deadline_ms = self._timing.deadline_ms
        lease = await self._kv.grant(self._timing.ttl_ms, deadline_ms=deadline_ms)
        self._session = ElectionSession(lease, self._end_of(before))
        key = CandidateKey(self._me.server)
        value = Candidate(server=self._me.server, url=self._me.url, version=self._me.version)
        put = Request(writes=(Put(bytes(key), encode(value), lease),))
        await self._kv.txn(put, deadline_ms=deadline_ms)
        return self._session

    async def keep_alive(self, session: ElectionSession) -> None:
        """Renews for ever. Raises SessionLost before the lease can have ended.

        No try takes more than two thirds of the time that is left, and after one without an answer
        the next comes soon: it goes to another member of the store, and one that froze must not
        cost the seat.
        """
        pause_ms = self._timing.keep_alive_ms
        while True:
            left = session.valid_until_ms - self._clock.mono_ms()
            if left <= 0:
                raise SessionLost(lease=session.lease)
            await self._clock.sleep_ms(min(pause_ms, left))
            before = self._clock.mono_ms()
            most_of_it_ms = max(1, (session.valid_until_ms - before) * 2 // 3)
            try:
                deadline_ms = min(self._timing.deadline_ms, most_of_it_ms)
                alive = await self._kv.keep_alive(session.lease, deadline_ms=deadline_ms)
            except (Unknown, Unavailable):
                pause_ms = RENEW_AGAIN_MS
                continue
            if not alive:
                raise SessionLost(lease=session.lease)
            session.valid_until_ms = self._end_of(before)
            pause_ms = self._timing.keep_alive_ms

    async def look(self) -> LeaderRecord | None:
        """Returns the leader that is stored now; None: nobody leads. Raises Unavailable."""
        key = LeaderKey()
        page = await self._kv.range(Get(bytes(key)), deadline_ms=self._timing.deadline_ms)
        return _seated(page.items[0]) if page.items else None

    async def campaign(self, session: ElectionSession) -> Compare | None:
        """Returns the fence if this server won; None if another one leads.

        An unknown outcome is settled by sending the same bytes again: a server that finds its own
        lease in the record has won, at the revision found there.
        """
        key = bytes(LeaderKey())
        mine = LeaderRecord(server=self._me.server, url=self._me.url, lease=str(session.lease))
        request = Request(
            compares=(Compare(key, 0),),
            writes=(Put(key, encode(mine), session.lease),),
            on_refusal=(Get(key),),
        )
        while self.is_valid():
            try:
                answer = await self._kv.txn(request, deadline_ms=self._timing.deadline_ms)
            except Unknown:
                await self._clock.sleep_ms(LOOK_MS // 10)
                continue
            return _fence(answer, mine)
        return None

    async def resign(self, session: ElectionSession) -> None:
        """Ends the lease, and with it the seat: the next leader need not wait for it."""
        self._session = None
        try:
            await self._kv.revoke(session.lease, deadline_ms=self._timing.deadline_ms)
        except (Unknown, Unavailable):
            log.warning("lease_not_revoked", server=self._me.server)

    def _end_of(self, sent_ms: int) -> int:
        return sent_ms + int(self._timing.ttl_ms * (1 - DRIFT)) - MARGIN_MS


class _NewerLeader(LeaderRecord):
    """A leader that is a newer version of this program: it leads all the same."""

    newest_format: ClassVar[int] = sys.maxsize

    model_config = ConfigDict(extra="ignore")


def _seated(item: KeyValue) -> LeaderRecord:
    key = str(LeaderKey())
    try:
        return decode(LeaderRecord, item.value, key=key)
    except NewerFormat:
        return decode(_NewerLeader, item.value, key=key)


def _fence(answer: TxnAnswer, mine: LeaderRecord) -> Compare | None:
    key = LeaderKey()
    if answer.succeeded:
        return Compare(bytes(key), answer.revision)
    items = answer.ranges[0]
    if items and _seated(items[0]) == mine:
        return Compare(bytes(key), items[0].mod_revision)
    return None


Hear = Callable[[LeaderRecord | None], None]


async def win(election: Election, session: ElectionSession, clock: Clock, hear: Hear) -> Compare:
    """The fence, once the seat was free and we took it; *hear* is told who sits there meanwhile.

    Run it beside `keep_alive` of the same session, so that the end of the session ends it.
    """
    while True:
        try:
            leader = await election.look()
        except Unavailable:
            await clock.sleep_ms(LOOK_MS)
            continue
        hear(leader)
        fence = await election.campaign(session) if leader is None else None
        if fence is not None:
            return fence
        await clock.sleep_ms(LOOK_MS)
