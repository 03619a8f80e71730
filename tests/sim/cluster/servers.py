"""A metasrv in the simulation: the real server on a store, a network and jobs that fail."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from keys.catalog.follower import Follower
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
        number = next(self._numbers)
        self.node = f"{self.name}#{number}"
        self.outside.loop.spawn(self.node, self._run(1_000 * self.number + number))

    def kill(self) -> None:
        if self.is_up:
            self.outside.loop.kill(self.node)
            self.outside.network.died(self.node)
            self.state = None

    async def _run(self, seed: int) -> None:
        """As metasrv.server.main puts it together."""
        outside, clock = self.outside, self.clock
        config = CONFIG.model_copy(update={"server_id": self.name})
        weather, wire = outside.network.weather, Wire(outside.network)
        store = FaultyStore(
            outside.loop, outside.kv, weather, self.name, outside.ghost, outside.alter
        )
        follower = Follower(store, clock, deadline_ms=config.store_deadline_ms)
        follower.log.retries.restarts = self.restarts
        jobs = SimJobs(outside.disks, outside.loop, self.node, weather)
        ids, rng = SeededIds(clock, seed), SeededRng(seed)
        world = ServerDeps(config, store, clock, ids, rng, follower, jobs, transport=wire)
        state = self.state = ServerState.of(world, self.url)
        outside.network.listen(self.url, self.node, build_app(state, transport=wire))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follower.log.follow())
            tasks.create_task(follower.log.listen())
            tasks.create_task(state.old.run())
            tasks.create_task(candidate(world, state, ServerIdentity(self.name, self.url, VERSION)))


BEGUN_AGAIN = "began again behind a compaction: "


def begun_again(servers: Iterable[Metasrv]) -> Counter[str]:
    """Restarts of readers of all servers, by words of what they read."""
    total = sum((server.restarts for server in servers), Counter[str]())
    return Counter({f"{BEGUN_AGAIN}{what}": count for what, count in total.items()})
