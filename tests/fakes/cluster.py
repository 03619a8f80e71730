"""A store, a data plane and servers that come and go, in virtual time (tests/sim/loop.py).

A server is built as metasrv builds a term: it wins the election by one transaction, reads the line
under that fence, and runs committer, follower and manager in one task group.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from base.errors import NotLeader
from keys.batch import Member
from keys.bootstrap import bootstrap_request
from keys.cluster import Leader, LeaderKey
from keys.committer import Committer
from keys.filling import fill
from keys.follower import Follower
from keys.kv import Compare, Put, Request
from keys.line import read_line
from keys.memory import MemoryKv
from keys.records import ProcedureKey
from keys.sequence import Sequences
from keys.txn import Txn
from keys.value import encode
from procedures.admission import Limits
from procedures.context import Ports
from procedures.kinds.registry import KINDS
from procedures.machine import Kind, Lane
from procedures.manager import Manager
from tests.fakes.chance import SeededIds, SeededRng
from tests.fakes.faults import FaultyJobs, FaultyKv, FaultyNodes, Plan
from tests.fakes.plane import FakeJobs, FakeLeases, FakeNodes, FakePlacement, Plane
from tests.sim.loop import SimClock, SimLoop

T = TypeVar("T")
DEADLINE_MS = 3_000
LIMITS = Limits(running_max={Lane.DDL: 8, Lane.REPAIR: 8}, queue_max=16)
TAKEOVER_MS = 150  # from a leader's death to the next election
CLUSTER_ID = "019aa5d3-1c00-7abc-8def-0123456789ab"


@dataclass
class Server:
    """One process of metasrv that leads, or believes that it does."""

    name: str
    node: str
    """Of the loop: what is killed."""
    fence: Compare
    plan: Plan
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    committer: Committer | None = None
    follower: Follower | None = None
    sequences: Sequences | None = None
    leads: Manager | None = None

    @property
    def term(self) -> int:
        return self.fence.mod_revision

    @property
    def manager(self) -> Manager:
        assert self.leads is not None, f"{self.node} has not begun its term"
        return self.leads


@dataclass
class Cluster:
    """Everything outside of the servers, and the servers."""

    loop: SimLoop
    kinds: Mapping[str, Kind[Any]] = field(default_factory=lambda: KINDS)
    limits: Limits = LIMITS
    alter: Callable[[Request], Request] = lambda request: request
    """A planted bug of every server."""
    after: tuple[str, ...] = ("meta-2",)
    """Who is elected when a leader dies or is deposed, one after the other."""
    on_depose: bool = True
    """Whether a lost answer comes with a rival, too."""

    def __post_init__(self) -> None:
        self.clock = SimClock(self.loop)
        self.kv = MemoryKv(self.clock)
        self.plane = Plane(self.clock)
        self.jobs = FakeJobs(self.plane)
        self.ids = SeededIds(self.clock)
        self.servers: list[Server] = []
        self.violations: list[str] = []
        self._numbers = count(1)

    @property
    def leader(self) -> Server:
        """The server that won last."""
        return self.servers[-1]

    # ---- before any server

    async def bootstrap(self) -> Compare:
        """An empty cluster, and the fence under which a test may set up what it needs."""
        fence = await self.elect("setup")
        first = bootstrap_request(fence, CLUSTER_ID, self.clock.wall_ms())
        assert (await self.kv.txn(first, deadline_ms=DEADLINE_MS)).succeeded
        return fence

    async def change(self, fence: Compare, txn: Txn) -> None:
        """One change of metadata, without a procedure."""
        line = await read_line(self.kv, fence, deadline_ms=DEADLINE_MS)
        filled = fill(line, [Member(txn, None)], self.clock.wall_ms(), members_max=1)
        assert (await self.kv.txn(filled.batch.request, deadline_ms=DEADLINE_MS)).succeeded

    # ---- servers

    async def elect(self, name: str) -> Compare:
        """*name* wins, whoever led; the fence is the revision of that very transaction."""
        key = bytes(LeaderKey())
        value = encode(Leader(server=name, url="http://127.0.0.1:1", lease="1"))
        won = await self.kv.txn(Request(writes=(Put(key, value),)), deadline_ms=DEADLINE_MS)
        return Compare(key, won.revision)

    async def start(self, name: str, plan: Plan | None = None) -> Server:
        fence = await self.elect(name)
        node = f"{name}#{next(self._numbers)}"
        server = Server(name, node, fence, plan or Plan())
        self.servers.append(server)
        self.loop.spawn(node, self._lead(server))
        return server

    async def started(self, name: str = "meta-1", plan: Plan | None = None) -> Server:
        """A server that has begun its term."""
        server = await self.start(name, plan)
        await server.ready.wait()
        return server

    async def _lead(self, server: Server) -> None:
        fate = FateOf(self, server)

        def wrote(request: Request) -> None:
            held = self.kv._store.get(bytes(LeaderKey()))
            if held is None or held.mod_revision != server.term:
                self.violations.append(f"{server.node} wrote after it was deposed: {request}")

        kv = FaultyKv(self.kv, server.plan, fate, wrote, self.alter)
        follower = Follower(kv, self.clock, deadline_ms=DEADLINE_MS)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(follower.follow())
                line = await read_line(kv, server.fence, deadline_ms=DEADLINE_MS)
                await follower.wait_for(line.version, deadline_ms=DEADLINE_MS)
                committer = Committer(kv, self.clock, line, deadline_ms=DEADLINE_MS)
                committer.on_update(follower.offer)
                nodes = FakeNodes(self.plane, server.term, lambda: follower.catalog)
                ports = Ports(
                    kv=kv,
                    nodes=FaultyNodes(nodes, server.plan, fate),
                    leases=FakeLeases(self.plane),
                    placement=FakePlacement(self.plane),
                    jobs=FaultyJobs(self.jobs, server.plan, fate),
                    clock=self.clock,
                    ids=self.ids,
                    rng=SeededRng(server.term),
                    term=server.term,
                    deadline_ms=DEADLINE_MS,
                )
                server.committer, server.follower = committer, follower
                server.sequences = Sequences(kv, committer, DEADLINE_MS)
                server.leads = Manager(self.kinds, ports, committer, self.limits)
                tasks.create_task(committer.run())
                tasks.create_task(server.leads.run(server.fence, server.ready))
        except* NotLeader:
            server.ended.set()

    def ask(
        self, server: Server, work: Callable[[Manager], Coroutine[Any, Any, T]]
    ) -> "asyncio.Task[T]":
        """A client's call: it runs on the server, and dies with it."""
        return self.loop.spawn(server.node, work(server.manager))

    def is_down(self, server: Server) -> bool:
        return self.loop.is_dead(server.node) or server.ended.is_set()

    # ---- looking

    def living(self) -> list[str]:
        """Procedures that are not over, by the store."""
        start, end = ProcedureKey.under()
        found = self.kv._store.scan(start, end)
        return [item.key.removeprefix(start).decode() for item in found]

    def stored(self) -> dict[bytes, bytes]:
        return {item.key: item.value for item in self.kv.dump()}

    async def quiet(self, *, limit_ms: int = 7_200_000) -> bool:
        """Waits until no procedure is left, whoever must take over for that."""
        until = self.clock.mono_ms() + limit_ms
        while self.living() or self.is_down(self.leader):
            if self.clock.mono_ms() > until:
                return False
            if self.is_down(self.leader):
                await self.clock.sleep_ms(TAKEOVER_MS)
                await self.start(self.after[0])
            await self.clock.sleep_ms(500)
        return True


@dataclass
class FateOf:
    """Implements tests.fakes.faults.Fate."""

    cluster: Cluster
    server: Server

    async def die(self) -> None:
        await self.cluster.loop.crash()

    async def depose(self) -> None:
        """The next of `after`: the last of them leads on; the others die as soon as they have won.

        They are started by the world, so that they do not die with the server that is deposed.
        """
        if not self.cluster.on_depose:
            return
        *passing, last = self.cluster.after
        for name in passing:
            await self.cluster.elect(name)
        await self.cluster.start(last)
