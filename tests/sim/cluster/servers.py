"""A metasrv in the simulation: the real server on a store, a network and jobs that fail."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from keys.catalog.follower import Follower
from keys.catalog.log.handlers import UpdateHandler
from keys.catalog.log.revision_pins import RevisionPins
from keys.store.kv import Request
from keys.store.memory import MemoryKv
from metasrv.leadership.election import ServerIdentity
from metasrv.leadership.leadership import ServerDeps
from metasrv.program.config import ServerConfig
from metasrv.program.version import VERSION
from metasrv.server.app import build_app
from metasrv.server.main import candidate
from metasrv.service.state.state import ServerState
from metasrv_base.clock import Clock
from metasrv_base.errors import Unavailable
from tests.fakes.chance import SeededIds, SeededRng
from tests.sim.cluster.disks import Disks
from tests.sim.cluster.jobs import SimJobs
from tests.sim.cluster.net import Network, Wire
from tests.sim.cluster.store import FaultyStore, Ghost
from tests.sim.loop import SimLoop

CONFIG = ServerConfig(server_id="unnamed", data_dir=Path("unused"))
"""Made once: to look for it in files and in the environment takes longer than to start."""


@dataclass(frozen=True)
class Outside:
    """The parts that all servers share."""

    loop: SimLoop
    kv: MemoryKv
    network: Network
    disks: Disks
    ghost: Ghost
    alter: Callable[[Request], Request] = lambda request: request
    """A planted bug."""
    handler: Callable[[str], UpdateHandler] | None = None
    """Returns a handler of the log for one process."""


@dataclass(eq=False)
class Metasrv:
    """A machine, and the process on it while there is one."""

    number: int
    outside: Outside
    clock: Clock
    node: str = ""
    state: ServerState | None = None
    restarts: Counter[str] = field(default_factory=Counter)
    """Times that its processes began to read again because etcd was compacted."""
    gave_up: bool = False
    """Its process ended by itself: the store was compacted under it too often."""
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    @property
    def name(self) -> str:
        return f"ms-{self.number}"

    @property
    def url(self) -> str:
        return f"http://{self.name}:4000"

    @property
    def is_up(self) -> bool:
        return bool(self.node) and not self.outside.loop.is_dead(self.node)

    @property
    def leads(self) -> bool:
        """Or believes that it does."""
        return self.is_up and self.state is not None and self.state.leads

    def start(self) -> None:
        assert not self.is_up, "one process on a machine"
        self.gave_up = False
        number = next(self._numbers)
        self.node = f"{self.name}#{number}"
        self.outside.loop.spawn(self.node, self._live(1_000 * self.number + number))

    def kill(self) -> None:
        if self.is_up:
            self.outside.loop.kill(self.node)
            self.outside.network.died(self.node)
            self.state = None

    async def _live(self, seed: int) -> None:
        try:
            await self._run(seed)
        except* Unavailable as group:
            self.outside.loop.trace("gave up", self.node, str(group.exceptions[0]))
            self.kill()
            self.gave_up = True

    async def _run(self, seed: int) -> None:
        """As metasrv.server.main puts it together."""
        outside, clock = self.outside, self.clock
        config = CONFIG.model_copy(update={"server_id": self.name})
        weather, wire = outside.network.weather, Wire(outside.network)
        store = FaultyStore(
            outside.loop, outside.kv, weather, self.name, outside.ghost, outside.alter
        )
        ids, rng, deadline_ms = SeededIds(clock, seed), SeededRng(seed), config.store_deadline_ms
        pins = RevisionPins(store, clock, ids, self.name, deadline_ms)
        follower = Follower(store, clock, deadline_ms=deadline_ms, pins=pins)
        follower.log.retries.restarts = self.restarts
        if outside.handler is not None:
            follower.log.register_update_handler("truth", outside.handler(self.node))
        jobs = SimJobs(outside.disks, outside.loop, self.node, weather)
        world = ServerDeps(config, store, clock, ids, rng, follower, jobs, transport=wire)
        state = self.state = ServerState.of(world, self.url, pins)
        outside.network.listen(self.url, self.node, build_app(state, transport=wire))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follower.log.follow())
            tasks.create_task(follower.log.listen())
            tasks.create_task(follower.keep_packed())
            tasks.create_task(state.old.run())
            tasks.create_task(candidate(world, state, ServerIdentity(self.name, self.url, VERSION)))


BEGUN_AGAIN = "began again behind a compaction: "


def begun_again(servers: Iterable[Metasrv]) -> Counter[str]:
    """Restarts of readers of all servers, by words of what they read."""
    total = sum((server.restarts for server in servers), Counter[str]())
    return Counter({f"{BEGUN_AGAIN}{what}": count for what, count in total.items()})
