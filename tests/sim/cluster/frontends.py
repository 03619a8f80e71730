"""A frontend in the simulation: its real parts over a network that fails."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from dataplane.frontend.catalog.catalog import LiveCatalog
from dataplane.frontend.catalog.feed import Feed, Servers
from dataplane.frontend.catalog.near_copies import NearCopies
from dataplane.frontend.http.app import build_app
from dataplane.frontend.lease.holder import HolderLoop, HolderPorts
from dataplane.frontend.lease.latency import Latency
from dataplane.frontend.lease.transactions import Transaction, Transactions
from dataplane.frontend.main import OLD_SCANS_MS
from dataplane.frontend.metasrv import HttpHolderLeader
from dataplane.frontend.metrics import FrontendMetrics
from dataplane.frontend.service import FrontendService
from dataplane.frontend.statements.regions import RegionClient
from dataplane.frontend.statements.statements import Statements
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict
from metasrv_base.rows.nodes import NodePools
from metasrv_base.wire.http.client import HttpClient
from tests.fakes.chance import SeededRng
from tests.sim.cluster.net import Network, Wire
from tests.sim.loop import SimLoop

LAGGING = "a read of a declared age: "
"""Before the outcome of a request to a copy."""


class Watched(Transactions):
    """Knows what is under way, whatever becomes of its pins."""

    def __init__(self, on_freed: Callable[[int, int], None]) -> None:
        super().__init__(on_freed)
        self.under_way: dict[str, Transaction] = {}

    @contextmanager
    def running(self, now_ms: int, max_lag_ms: int | None = None) -> Iterator[Transaction]:
        with super().running(now_ms, max_lag_ms) as transaction:
            self.under_way[transaction.id] = transaction
            try:
                yield transaction
            finally:
                del self.under_way[transaction.id]

    def in_use(self) -> Iterator[tuple[int, int]]:
        """Tables, and the versions of them that something is bound to."""
        for transaction in (self._open | self.under_way).values():
            yield from transaction.bound.items()


@dataclass(eq=False)
class Frontend:
    """A machine, and the process on it while there is one."""

    number: int
    loop: SimLoop
    network: Network
    clock: Clock
    metasrvs: Sequence[str]
    node: str = ""
    """Name of its node in the loop: the process that was started last."""
    service: FrontendService | None = None
    transactions: Watched | None = None
    gave_up: bool = False
    """It ended by itself: its lease is over."""
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    @property
    def name(self) -> str:
        return f"fe-{self.number}"

    @property
    def url(self) -> str:
        return f"http://{self.name}:7200"

    @property
    def is_up(self) -> bool:
        return bool(self.node) and not self.loop.is_dead(self.node)

    def start(self) -> None:
        assert not self.is_up, "one process of a name"
        self.gave_up = False
        number = next(self._numbers)
        self.node = f"{self.name}#{number}"
        self.loop.spawn(self.node, self._live(SeededRng(100 * self.number + number)))

    def kill(self) -> None:
        if self.is_up:
            self.loop.kill(self.node)
            self.network.died(self.node)
            self.service = None

    async def _live(self, rng: SeededRng) -> None:
        try:
            await self._run(rng)
        except* Conflict as group:  # a newer process has its id
            self.loop.trace("gave up", self.node, str(group.exceptions[0]))
        self.kill()
        self.gave_up = True

    async def _run(self, rng: SeededRng) -> None:
        """As dataplane.frontend.main puts it together. Until its lease is over."""
        wire = Wire(self.network)
        client = HttpClient(self.metasrvs, transport=wire)
        catalog = LiveCatalog(lambda: holder.tell())
        transactions = self.transactions = Watched(
            lambda table, version: holder.freed(table, version)
        )
        feed = Feed(catalog, Servers(self.metasrvs, transport=wire), self.clock, rng)
        latency = Latency()
        world = HolderPorts(HttpHolderLeader(client), self.clock, feed.reload, feed.learn)
        holder = HolderLoop(self.name, self.url, catalog, transactions, latency, world)
        near = NearCopies(count=self._count_lagging)
        regions = RegionClient(
            catalog, NodePools(wire), rng, holder.check_lease, self.name, near=near
        )
        statements = Statements(holder, catalog, transactions, self.clock, latency)
        service = self.service = FrontendService.of(statements, regions, FrontendMetrics())
        self.network.listen(self.url, self.node, build_app(service))
        async with asyncio.TaskGroup() as tasks:
            background = [feed.run(), holder.run(), self._end_old_scans(service)]
            running = [tasks.create_task(work) for work in background]
            await holder.until_over()
            for task in running:
                task.cancel()
        self.network.weather.sometimes["a frontend that stopped by its own clock"] += 1
        await holder.sign_off()

    def _count_lagging(self, outcome: str) -> None:
        self.network.weather.sometimes[LAGGING + outcome] += 1

    async def _end_old_scans(self, service: FrontendService) -> None:
        while True:
            await self.clock.sleep_ms(OLD_SCANS_MS)
            service.scans.end_old()
