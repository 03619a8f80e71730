"""A cluster in one thread and in virtual time: the real servers and nodes, and what surrounds them.

What happens in it is another file's (tests/sim/scenario.py).
"""

import asyncio
import gc
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from uuid import UUID

import structlog

from dataplane.frontend.lease import transactions
from tests.sim.checks.follow_invariants import FollowGhost
from tests.sim.checks.invariants import KnownGhost, LeaseGhost, StoreGhost
from tests.sim.checks.oracle import Oracle
from tests.sim.checks.orphan_invariants import OrphanGhost
from tests.sim.checks.schema_invariants import ShapeGhost
from tests.sim.clients.client import Session
from tests.sim.cluster.disks import Disks
from tests.sim.cluster.frontends import Frontend
from tests.sim.cluster.message_fates import Weather
from tests.sim.cluster.net import Network
from tests.sim.cluster.nodes import Datanode
from tests.sim.cluster.servers import Metasrv, Outside
from tests.sim.length import Life
from tests.sim.loop import SimClock, SimLoop
from tests.sim.planted.mistakes import Bugs

DRIFT = 0.001
FAR_DRIFT = 0.5
FRONTENDS = 2


class World:
    """Implements tests.sim.cluster.faults.Stage."""

    def __init__(self, loop: SimLoop, life: Life, bugs: Bugs, until: str | None = None) -> None:
        """*until*: words of the violation at which the world may end."""
        seed = life.seed
        self.loop = loop
        self.found: asyncio.Future[None] = loop.create_future()
        """Done once there is such a violation."""
        self._until = until
        self.random = Random(f"world {seed}")
        self.weather = Weather(Random(f"weather {seed}"))
        self.clock = SimClock(loop)
        self.violations: list[str] = []
        self.honest: set[str] = set()
        """Errors in the log that the plot brings about, by their event."""
        self.kv = bugs.make_store(self.clock)
        self.ghost = StoreGhost(loop, self.kv, self.weather.sometimes, self.wrong)
        self.network = Network(loop, self.weather, wrong=self.wrong)
        self.disks = Disks()
        self.orphans = OrphanGhost(lambda: self.nodes, self.weather.sometimes, self.wrong)
        self.disks.watcher = self.orphans
        self.ghost.listeners.append(self.orphans.written)
        self.oracle = Oracle()
        followed = FollowGhost(self.ghost, self.weather.sometimes, self.wrong)
        outside = Outside(
            loop, self.kv, self.network, self.disks, self.ghost, bugs.alter, followed.handler
        )
        is_far = self.random.random() < 0.12
        self.has_force = self.random.random() < 0.2
        """Whether operators force failovers, which wait for no lease (docs/protocols.md P4)."""
        drift = FAR_DRIFT if is_far else DRIFT
        self.oracle.leases_hold = not (is_far or self.has_force)
        self.leases = LeaseGhost(self.weather.sometimes, self.wrong, self.oracle.leases_hold)
        self.known = KnownGhost(self.kv, self.wrong)
        self.shapes = ShapeGhost(
            self.kv, self.weather.sometimes, self.wrong, self.oracle.leases_hold
        )
        servers = self.random.choice([2, 3, 3])
        self.servers = [
            Metasrv(number, outside, self._clock(DRIFT)) for number in range(1, servers + 1)
        ]
        self.urls = tuple(server.url for server in self.servers)
        self.nodes = [
            Datanode(
                f"dn-{n}",
                loop,
                self.network,
                self.disks,
                self._clock(drift),
                self.urls,
                life.length.limits,
            )
            for n in range(1, life.length.nodes + 1)
        ]
        self.frontends = [
            Frontend(number, loop, self.network, self._clock(DRIFT), self.urls)
            for number in range(1, FRONTENDS + 1)
        ]
        loop.thread_ms = lambda: self.random.uniform(0.05, 4.0)

    def _clock(self, drift: float) -> SimClock:
        offset_ms = self.random.randrange(-2_000, 2_000)
        rate = 1 + self.random.uniform(-drift, drift)
        return SimClock(self.loop, offset_ms=offset_ms, rate=rate)

    def wrong(self, text: str) -> None:
        self.loop.trace("wrong", text)
        self.violations.append(f"at {self.loop.time():.3f} s: {text}")
        if self._until is not None and self._until in text and not self.found.done():
            self.found.set_result(None)

    def logged(self, event: dict[str, Any], raised: str) -> None:
        """Hears of an ERROR, which needs a person: wrong, unless the plot has brought it about."""
        if self.loop.is_over:  # what is closed then complains of it
            return
        if event.get("event") in self.honest:
            self.weather.sometimes[f"logged: {event['event']}"] += 1
        else:
            self.wrong(f"log: {event} {raised}")

    async def sleep_ms(self, ms: float) -> None:
        await self.clock.sleep_ms(int(ms) + 1)

    def session(self, name: str) -> Session:
        urls = list(self.urls)
        self.random.shuffle(urls)
        return Session(name, self.loop, self.network, self.oracle, tuple(urls), self.wrong)


@contextmanager
def seeded_ids(seed: int) -> Iterator[None]:
    """Ids of incarnations and transactions are of no generator that is handed in."""
    random = Random(f"ids {seed}")

    def made() -> UUID:
        return UUID(int=random.getrandbits(128), version=4)

    with Bugs(patches=((uuid, "uuid4", made), (transactions, "uuid4", made))).planted():
        yield


@contextmanager
def uncollected() -> Iterator[None]:
    """Without looks for garbage: a third of the time, for what is over in seconds."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def quiet(tell: Callable[[dict[str, Any], str], None]) -> Iterator[None]:
    """No log is written; errors in it are told: an ERROR needs a person."""

    def listen(_: object, method: str, event: Any) -> Any:
        last = str(event.pop("exception", "")).rpartition("\n")[2]
        tell(event, last)
        raise structlog.DropEvent

    structlog.configure(
        processors=[structlog.processors.format_exc_info, listen],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.reset_defaults()
