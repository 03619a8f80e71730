"""Holds a frontend's schema lease: registers, and acknowledges the versions in use (P6).

It acknowledges when a table has changed or an old version was let go, for a change may be waiting
for that word, and otherwise several times in a lease. Near the end of its lease it reads the
catalog anew and registers as a new incarnation; past it, it must not answer any more (`is_over`).
"""

import asyncio
import math
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from dataplane.frontend.catalog.catalog import LiveCatalog
from dataplane.frontend.lease.latency import Latency
from dataplane.frontend.lease.lease import SchemaLease
from dataplane.frontend.lease.transactions import Transactions
from metasrv_base.clock import Clock
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable
from metasrv_base.wire.frontend.holders import (
    AcknowledgeAnswer,
    AcknowledgeRequest,
    HolderRegisterAnswer,
    HolderRegisterRequest,
    Pin,
)

VERSION = "0.1.0"
BACKOFF = Backoff(first_ms=50, max_ms=1_000)
RETRY_MS = 100
"""The pause after a failed call, in ms."""

log = structlog.get_logger()


class HolderLeader(Protocol):
    """metasrv as a holder sees it. Raises the five errors."""

    async def register(
        self, request: HolderRegisterRequest, deadline_ms: int
    ) -> HolderRegisterAnswer: ...

    async def acknowledge(
        self, request: AcknowledgeRequest, deadline_ms: int
    ) -> AcknowledgeAnswer: ...

    async def sign_off(self, holder_id: str, incarnation: str) -> None: ...


@dataclass(frozen=True, slots=True)
class HolderPorts:
    """The parts of a process that its holder uses."""

    leader: HolderLeader
    clock: Clock
    reload: Callable[[], None]
    """Reads the catalog anew, from another server."""
    learn: Callable[[list[str]], None]
    """Takes the addresses of all servers."""


@dataclass(slots=True)
class Registration:
    """The registration of one incarnation."""

    incarnation: str
    cluster_id: str
    catalog_version: int
    """The version that must be applied before anything is served."""
    acknowledge_ms: int
    sequence: int = 0
    """The number of the last acknowledgement sent."""
    must_have: int = 0
    """The catalog version that the leader had at its last answer."""
    stalled: tuple[int, float] | None = None
    """The catalog version at which the feed stands still below `must_have`, and the time in ms at
    which the catalog is read anew; None: it does not stand still."""


@dataclass
class HolderLoop:
    """One process as a holder. Its tasks are `run` and `until_over`."""

    holder_id: str
    address: str
    catalog: LiveCatalog
    transactions: Transactions
    latency: Latency
    world: HolderPorts
    lease: SchemaLease = field(default_factory=SchemaLease)
    now: Registration | None = None
    """The registration in effect; None if it must register, for the first time or anew."""
    cluster_id: str | None = None
    _perhaps: tuple[str, ...] = ()
    """Incarnations that the leader may have registered, the newest first."""
    _due: asyncio.Event = field(default_factory=asyncio.Event)
    _snapshots: int = 1
    """The number of catalog snapshots that must have been read before it registers, the last one
    anew: reading the first may take longer than a lease."""
    _begun: int = 0
    """The number of acknowledgements begun."""
    _answered: int = 0
    """The number of the last acknowledgement that was answered."""
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the next answer."""
    _refused_by: str | None = None

    def tell(self) -> None:
        """Wakes the loop: the leader may be waiting for an acknowledgement."""
        self._due.set()

    def freed(self, table_id: int, schema_version: int) -> None:
        """A transaction is bound to it no more; of a version that is not the newest, tell."""
        if not self._is_newest(table_id, schema_version):
            self.tell()

    def check(self) -> None:
        """Raises Unavailable unless statements may begin, or be answered, at this moment.

        None begins while it registers: the leader is told of those before, and waits for no other.
        """
        self.check_lease()
        if self.now is None or (self.catalog.version or 0) < self.now.catalog_version:
            raise Unavailable("not-ready", what="the frontend", reason="it still reads the catalog")

    def check_lease(self) -> None:
        """Raises Unavailable: what was computed may not be true any more."""
        if not self.lease.is_held(self.world.clock.mono_ms()):
            raise Unavailable("not-ready", what="the frontend", reason="it holds no schema lease")

    @property
    def is_over(self) -> bool:
        """Whether the lease has ended: this process must stop."""
        return self.lease.has_ended(self.world.clock.mono_ms())

    async def newest(self) -> None:
        """Returns when the catalog has all that the leader had at some moment after the call."""
        begun = self._begun
        self.tell()
        while self._answered <= begun or self.now is None:
            await self._heard.wait()
        await self.catalog.reached(self.now.must_have)

    async def until_over(self) -> None:
        """Returns when the lease has ended."""
        while not self.is_over:
            now_ms = self.world.clock.mono_ms()
            left_ms = (
                RETRY_MS if self.lease.deadline_ms is None else self.lease.deadline_ms - now_ms
            )
            await self.world.clock.sleep_ms(max(1, left_ms))

    async def run(self) -> None:
        """Holds the lease until it has ended. Raises Conflict `wrong-cluster` or
        `stale-incarnation` (another process has our id): this process must never serve."""
        while not self.is_over:
            if self.now is None:
                await self._register()
                continue
            self._due.clear()
            answered = await self._acknowledge(self.now)
            fresh_ms = self.lease.fresh_ms(self.world.clock.mono_ms())
            if fresh_ms <= 0:
                self._begin_anew("the lease is near its end")
            elif self.now is not None:
                pause_ms = self.now.acknowledge_ms if answered else RETRY_MS
                await self._pause(min(pause_ms, fresh_ms), answered)

    async def sign_off(self) -> None:
        """Ends the registration as far as it can: the rest of the lease ends by itself. Also after
        it has ended here, so that nobody waits until it has ended by the clock of the leader."""
        for incarnation in self._perhaps:
            try:
                await self.world.leader.sign_off(self.holder_id, incarnation)
            except NotFound:
                return  # the leader has ended it already
            except Conflict as error:
                log.info("sign_off_refused", code=error.code, incarnation=incarnation)
            except MetaError as error:
                log.warning("sign_off_failed", code=error.code)
                return
            else:
                return

    # -- inside

    async def _pause(self, ms: int, answered: bool) -> None:
        """Waits until there is something to tell, or for so long. After a call without an answer it
        waits the whole time."""
        if not answered:
            await self.world.clock.sleep_ms(ms)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(ms / 1000):
                await self._due.wait()

    async def _register(self) -> None:
        """Registers, until it is answered; the lease may end meanwhile."""
        incarnation, attempt = str(uuid.uuid4()), 0
        while self.now is None and not self.is_over:
            if self.catalog.snapshots < self._snapshots:
                await self.world.clock.sleep_ms(RETRY_MS)
                continue
            request = HolderRegisterRequest(
                cluster_id=self.cluster_id,
                holder_id=self.holder_id,
                incarnation=incarnation,
                address=self.address,
                version=VERSION,
                pinned=self.transactions.pins(self.world.clock.mono_ms()),
            )
            sent_ms = self.world.clock.mono_ms()
            self._perhaps = tuple(dict.fromkeys((incarnation, *self._perhaps)))
            try:
                answer = await self.world.leader.register(request, self._patience_ms())
            except MetaError as error:
                self._refuse(error)
                attempt += 1
                await self.world.clock.sleep_ms(BACKOFF.delay_ms(attempt, 0))
            else:
                self.registered(incarnation, sent_ms, answer)

    def registered(self, incarnation: str, sent_ms: int, answer: HolderRegisterAnswer) -> None:
        """Raises Conflict `wrong-cluster`."""
        if self.cluster_id not in (None, answer.cluster_id):
            raise Conflict("wrong-cluster", expected=self.cluster_id, found=answer.cluster_id)
        self.cluster_id = answer.cluster_id
        self._perhaps = (incarnation,)
        self.now = Registration(
            incarnation=incarnation,
            cluster_id=answer.cluster_id,
            catalog_version=answer.catalog_version,
            acknowledge_ms=answer.acknowledge_ms,
            must_have=answer.catalog_version,
        )
        self.lease.granted(sent_ms, answer.lease_ms, self.world.clock.mono_ms())
        self.transactions.age_max_ms = answer.transaction_age_max_ms
        self._refused_by = None
        self.world.learn(answer.metasrvs)
        log.info("frontend_registered", incarnation=incarnation, version=answer.catalog_version)

    async def _acknowledge(self, me: Registration) -> bool:
        """Whether it was answered. A catalog that stands still renews nothing: others would wait
        for us for ever."""
        version = self.catalog.version
        if version is None:
            return False
        me.sequence += 1
        self._begun += 1
        number = self._begun
        sent_ms = self.world.clock.mono_ms()
        request = AcknowledgeRequest(
            cluster_id=me.cluster_id,
            holder_id=self.holder_id,
            incarnation=me.incarnation,
            sequence=me.sequence,
            version=version,
            pinned=self._pinned(sent_ms),
            statement_p99_ms=self.latency.taken_p99_ms(),
        )
        try:
            answer = await self.world.leader.acknowledge(request, self._patience_ms())
        except NotFound as error:
            self._begin_anew(error.code)
            return False
        except MetaError as error:
            self._refuse(error)
            return False
        self._refused_by = None
        if version >= me.must_have:
            self.lease.granted(sent_ms, answer.lease_ms, self.world.clock.mono_ms())
        me.must_have = answer.catalog_version
        self._doubt_stream(me, version, sent_ms)
        me.acknowledge_ms = answer.acknowledge_ms
        self.transactions.age_max_ms = answer.transaction_age_max_ms
        self._answered = number
        heard, self._heard = self._heard, asyncio.Event()
        heard.set()
        return True

    def _doubt_stream(self, me: Registration, version: int, now_ms: int) -> None:
        """A catalog that stands still below what the leader has is read anew, once: a snapshot
        may take its time. The end of the lease is there for what that does not mend."""
        if version >= me.must_have:
            me.stalled = None
        elif me.stalled is None or me.stalled[0] != version:
            me.stalled = (version, now_ms + me.acknowledge_ms)
        elif now_ms >= me.stalled[1]:
            log.warning("catalog_stream_stuck", version=version, leader=me.must_have)
            me.stalled = (version, math.inf)
            self.world.reload()

    def _pinned(self, now_ms: int) -> tuple[Pin, ...]:
        """The pins of transactions on tables that have a newer version: those at the newest version
        delay nobody."""
        return tuple(
            pin
            for pin in self.transactions.pins(now_ms)
            if not self._is_newest(pin.table_id, pin.schema_version)
        )

    def _is_newest(self, table_id: int, schema_version: int) -> bool:
        """False too for a table that is gone."""
        try:
            return self.catalog.schema(table_id).version <= schema_version
        except MetaError:
            return False

    def _begin_anew(self, why: str) -> None:
        log.warning("schema_lease_restarted", reason=why)
        self.now = None
        self._snapshots = self.catalog.snapshots + 1
        self.world.reload()

    def _patience_ms(self) -> int:
        """The deadline of one call: several fit in a lease."""
        return max(200, self.lease.lease_ms // 5) if self.lease.lease_ms else 5_000

    def _refuse(self, error: MetaError) -> None:
        """One `stale-incarnation` may be an answer to a copy of an old request; two are not."""
        is_again = self._refused_by == error.code
        if error.code == "wrong-cluster" or (error.code == "stale-incarnation" and is_again):
            raise Conflict(error.code, **error.facts) from error
        if not is_again:
            log.warning("metasrv_unreachable", code=error.code, facts=error.facts)
        self._refused_by = error.code
