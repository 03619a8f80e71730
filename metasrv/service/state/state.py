"""The state of one server: its catalog, the leader, and its term while it leads."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol, Self

from keys.catalog.follower import Follower
from keys.catalog.log.revision_pins import RevisionPins
from keys.catalog.old_log import OldLog
from keys.commit.txn import snapshot
from keys.model.cluster import ClusterKey, ClusterRecord, LeaderRecord
from keys.store.kv import Kv
from metasrv.leadership.term import Term
from metasrv.program.version import VERSION
from metasrv.service.events.event_lines import EventLines
from metasrv.service.state.addresses import Addresses
from metasrv.service.state.closed_times import ClosedTimes
from metasrv.service.state.feed_lines import FeedLines
from metasrv.service.state.old_versions import OldVersions
from metasrv.service.state.old_windows import OldWindows
from metasrv.service.state.stream_places import (
    CATCHING_UP_MAX,
    STREAMS_MAX,
    VIEW_STREAMS_MAX,
    WATCHERS_MAX,
    StreamPlaces,
)
from metasrv.service.state.table_json_cache import TableTexts
from metasrv_base.clock import Clock
from metasrv_base.errors import NotLeader, Unavailable
from metasrv_base.ids import Ids

READY_MS_MAX = 5_000  # a new leader reads its records within this, or the client asks again


class Config(Protocol):
    """The settings that answers depend on; a part of ServerConfig."""

    @property
    def server_id(self) -> str: ...
    @property
    def leader_ttl_ms(self) -> int: ...
    @property
    def store_deadline_ms(self) -> int: ...


class StateDeps(Protocol):
    """The part of metasrv.leadership.leadership.ServerDeps that the service uses."""

    @property
    def config(self) -> Config: ...
    @property
    def kv(self) -> Kv: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def ids(self) -> Ids: ...
    @property
    def follower(self) -> Follower: ...


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Facts that never change while the process runs."""

    server: str
    url: str
    version: str
    lease_ms: int
    """A catalog that has not been heard of for longer is stale (docs/protocols.md P7)."""
    store_deadline_ms: int


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, eq=False)
class _Ending:
    """Something under way that ends before its time, as soon as `is_due`.

    Nothing in it leads back to it: else each request would leave garbage that only the collector
    finds, its task included.
    """

    is_due: Callable[[], bool]
    limit: asyncio.Timeout


@dataclass(slots=True)
class ServerState:
    """Written by the program's election task; read by every request."""

    facts: ServerFacts
    kv: Kv
    follower: Follower
    clock: Clock
    ids: Ids
    addresses: Addresses
    pins: RevisionPins
    """Pins of revisions of the store, of all readers of this server."""
    old: OldVersions = field(init=False)
    windows: OldWindows = field(init=False)
    closing: ClosedTimes = field(default_factory=ClosedTimes)
    texts: TableTexts = field(default_factory=TableTexts)
    feed: FeedLines = field(default_factory=FeedLines)
    cluster_id: str | None = None
    term: Term | None = None
    """The term, while this server leads."""
    leader: LeaderRecord | None = None
    """The leader at the last look; None: nobody."""
    is_valid: Callable[[], bool] = field(default=_never)
    """Whether our own lease surely lives: beyond it we no longer act as the leader."""
    streams: StreamPlaces = field(default_factory=lambda: StreamPlaces(STREAMS_MAX))
    """Streams of procedures and of the catalog's feed."""
    watchers: StreamPlaces = field(default_factory=lambda: StreamPlaces(WATCHERS_MAX))
    """Streams of events of the catalog."""
    views: StreamPlaces = field(default_factory=lambda: StreamPlaces(VIEW_STREAMS_MAX, "view"))
    """Views of the information schema that are being sent whole."""
    catching_up: StreamPlaces = field(default_factory=lambda: StreamPlaces(CATCHING_UP_MAX))
    """Watchers that are told versions from the log."""
    events: EventLines = field(default_factory=EventLines)
    backups: int = 0
    """Backups that are being made."""
    is_stopping: bool = False
    """Whether this server was told to end: requests wait no longer then."""
    on_term: list[Callable[[Term], None]] = field(default_factory=list)
    """Called with each term of this server as it begins."""
    _watching: dict[_Ending, None] = field(default_factory=dict)
    """Looked at whenever we hear who leads, or that we end; in order, so that a simulation of it
    can be repeated."""

    def __post_init__(self) -> None:
        deadline_ms = self.facts.store_deadline_ms
        self.old = OldVersions(self.kv, self.follower, deadline_ms, self.pins)
        log = OldLog(self.kv, deadline_ms)
        self.windows = OldWindows(log, self.follower, self.old)

    @classmethod
    def of(cls, world: StateDeps, url: str, pins: RevisionPins | None = None) -> Self:
        """Puts the state of a server together. *pins* are those of a follower that pins what it
        loads; None: it pins nothing."""
        config = world.config
        deadline_ms = config.store_deadline_ms
        if pins is None:
            server = config.server_id
            pins = RevisionPins(world.kv, world.clock, world.ids, server, deadline_ms)
        facts = ServerFacts(
            server=config.server_id,
            url=url,
            version=VERSION,
            lease_ms=config.leader_ttl_ms,
            store_deadline_ms=deadline_ms,
        )
        return cls(
            facts=facts,
            kv=world.kv,
            follower=world.follower,
            clock=world.clock,
            ids=world.ids,
            addresses=Addresses(world.kv, world.clock, deadline_ms),
            pins=pins,
        )

    # Told by the election ----------------------------------------------------------------------

    def heard(self, leader: LeaderRecord | None) -> None:
        self.leader = leader
        self._look_around()

    def begin(self, term: Term | None) -> None:
        """A term of this server has begun, or (None) has ended."""
        self.term = term
        if term is None:
            self.leader = None
            return
        self.cluster_id = term.cluster_id
        for tell in self.on_term:
            tell(term)
        self.leader = LeaderRecord(server=self.facts.server, url=self.facts.url, lease="")
        self._look_around()

    def stop(self) -> None:
        """Ends streams and long polls, so that what is left are answers under way."""
        self.is_stopping = True
        self._look_around()

    def _look_around(self) -> None:
        for ending in tuple(self._watching):
            self._look_at(ending)

    def _look_at(self, ending: _Ending) -> None:
        if ending.is_due():
            self._watching.pop(ending, None)
            ending.limit.reschedule(asyncio.get_running_loop().time())

    # Asked by requests -------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        return self.term is not None and self.is_valid()

    @property
    def other_leader(self) -> LeaderRecord | None:
        """Another server that leads, as far as this one knows."""
        leader = self.leader
        return leader if leader is not None and leader.server != self.facts.server else None

    def as_long_as(self, leader: LeaderRecord) -> AbstractAsyncContextManager[None]:
        """Ends what is inside, by TimeoutError, once we hear that another than *leader* leads."""
        return self._until(lambda: self.leader not in (None, leader))

    def while_serving(self, deadline_ms: int | None = None) -> AbstractAsyncContextManager[None]:
        """Ends what is inside, by TimeoutError, once this server is told to end, or *deadline_ms*
        have passed."""
        return self._until(lambda: self.is_stopping, deadline_ms)

    @asynccontextmanager
    async def _until(
        self, is_due: Callable[[], bool], deadline_ms: int | None = None
    ) -> AsyncIterator[None]:
        limit_s = None if deadline_ms is None else deadline_ms / 1000
        async with asyncio.timeout(limit_s) as limit:
            ending = _Ending(is_due, limit)
            self._watching[ending] = None
            self._look_at(ending)
            try:
                yield
            finally:
                self._watching.pop(ending, None)

    def led(self) -> Term:
        """Our term, perhaps before it has read its records: for what nodes say, which cannot wait.

        Raises NotLeader with the leader's URL if another leads, Unavailable("no-leader") if nobody
        is known to.
        """
        term = self.term
        if term is not None and self.is_valid():
            return term
        other = self.other_leader
        if other is not None:
            raise NotLeader("not-leader", leader_url=other.url)
        raise Unavailable("no-leader")

    async def leading(self) -> Term:
        """Our term, once it is ready. Raises as `led`, and Unavailable("not-ready")."""
        term = self.led()
        if term.ready.is_set():
            return term
        try:
            async with asyncio.timeout(READY_MS_MAX / 1000):
                await term.ready.wait()
        except TimeoutError as error:
            raise Unavailable("not-ready", what="the leader") from error
        return term

    def must_be_loaded(self) -> None:
        """Raises Unavailable("not-ready"): what this server knows so far is no version of today."""
        if not self.follower.log.loaded.is_set():
            raise Unavailable("not-ready", what="the catalog")

    async def newer(self, position: int, wait_ms: int) -> None:
        """Waits until the catalog is newer than *position*, *wait_ms* have passed, or this server
        ends."""
        with suppress(TimeoutError):
            async with self.while_serving(wait_ms):
                await self.follower.changed(position)

    async def rest(self, wait_ms: int) -> None:
        """Waits until *wait_ms* have passed, or this server ends; others run in any case."""
        if wait_ms <= 0 or self.is_stopping:
            await asyncio.sleep(0)
            return
        with suppress(TimeoutError):
            async with self.while_serving(wait_ms):
                await asyncio.get_running_loop().create_future()

    @property
    def is_stale(self) -> bool:
        """Whether the store has been silent for longer than a lease, or was never heard."""
        heard = self.follower.log.heard_at_ms
        return heard is None or self.clock.mono_ms() - heard > self.facts.lease_ms

    @property
    def handling_ms(self) -> int:
        """Time for which a handler of the catalog log has not ended; 0: none runs."""
        running = self.follower.log.running
        return 0 if running is None else self.clock.mono_ms() - running.since_ms

    async def cluster(self) -> str | None:
        """The cluster's id; None until the first leader has made it. Raises Unavailable."""
        if self.cluster_id is None:
            key = ClusterKey()
            reading = await snapshot(self.kv, key, deadline_ms=self.facts.store_deadline_ms)
            stored: ClusterRecord | None = reading.get(key)
            self.cluster_id = stored.cluster_id if stored else None
        return self.cluster_id
