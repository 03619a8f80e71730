"""A store, a data plane and servers that come and go, in virtual time (tests/sim/loop.py)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, TypeVar

import httpx

from keys.commit.batch import PendingTxn, seal
from keys.commit.bootstrap import bootstrap_request
from keys.commit.committer import Committer
from keys.commit.log_head import read_log_head
from keys.commit.packing import pack
from keys.commit.staging import StagingSizes
from keys.commit.txn import Txn
from keys.model.cluster import LeaderKey, LeaderRecord
from keys.model.records import ProcedureKey
from keys.model.tables import TableInfo, TableInfoKey, TableRoute, TableRouteKey
from keys.store.kv import Compare, Kv, Put, Request, TxnAnswer
from keys.store.memory import MemoryKv
from keys.value import decode, encode
from metasrv.nodes.node_liveness import NodeLiveness
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError
from procedures.kinds.registry import KINDS
from procedures.machine import AdmissionLane, Kind
from procedures.ports import TransactionLimits
from procedures.scheduling.admission import Limits
from procedures.scheduling.manager import Manager
from tests.fakes.chance import SeededIds
from tests.fakes.datanodes.nodes import FakeNode
from tests.fakes.datanodes.plane import FakeJobs, Plane
from tests.fakes.faults import Plan, Work
from tests.fakes.faulty_ports import FaultyKv
from tests.fakes.heartbeats import BEAT_MS, beat, register
from tests.fakes.holders import FakeHolders
from tests.fakes.joining import join, joins_due
from tests.fakes.published import faults
from tests.fakes.term import Server, World, lead
from tests.fakes.wire import door
from tests.sim.loop import WORLD, SimClock, SimLoop

T = TypeVar("T")
DEADLINE_MS = 3_000
LIMITS = Limits(running_max={AdmissionLane.DDL: 8, AdmissionLane.REPAIR: 8}, queue_max=16)
TAKEOVER_MS = 150  # from a leader's death to the next election
STOPPED_MS = 30_000  # how long a stopped server stands still: longer than any lease
FULL_MS = 5_000  # how long a store without space waits for its operator
CLUSTER_ID = "019aa5d3-1c00-7abc-8def-0123456789ab"


@dataclass
class Cluster:
    """Everything outside of the servers, and the servers."""

    loop: SimLoop
    kinds: Mapping[str, Kind[Any]] = field(default_factory=lambda: KINDS)
    limits: Limits = LIMITS
    alter: Callable[[Request], Request] = lambda request: request
    """A planted bug of every server."""
    after: tuple[str, ...] = ("meta-2",)
    """Servers elected, in order, each when the leader before it dies or is deposed."""
    on_depose: bool = True
    """Whether a lost answer comes with a rival, too."""
    client: Callable[[Kv], Kv] = lambda kv: kv
    """A planted bug between every server and the store."""
    sound_kinds: Mapping[str, Kind[Any]] | None = None
    """Kinds of the first server, if only the servers that take over have the planted bugs."""
    on_takeover: Callable[[], None] = lambda: None
    """Called when a server starts that is not the first."""
    make_store: Callable[[Clock], MemoryKv] = MemoryKv
    """A planted bug in what the store compares."""
    make_committer: Callable[..., Committer] = Committer
    """Another owner beside that of each procedure (tests/crash/second_owner.py)."""
    one_transaction: TransactionLimits = field(default_factory=TransactionLimits)
    """The size from which batches happen in parts."""
    sizes: StagingSizes = field(default_factory=StagingSizes)
    plans: list[Plan] = field(default_factory=list)
    """Plans of the servers after the first, in order."""

    def __post_init__(self) -> None:
        self.clock = SimClock(self.loop)
        self.kv = self.make_store(self.clock)
        self.plane = Plane(self.clock)
        self.jobs = FakeJobs(self.plane)
        self.holders = FakeHolders(self.clock)
        self.ids = SeededIds(self.clock)
        self.servers: list[Server] = []
        self.violations: list[str] = []
        self.schema_versions: dict[int, int] = {}
        """Schema version of each table, as servers have written it."""
        self.full_until_ms = 0
        """The store takes no puts until then."""
        self.sometimes: Counter[str] = Counter()
        """Rare states, and how often each was reached."""
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
        line = await read_log_head(self.kv, fence, deadline_ms=DEADLINE_MS)
        packed = pack(line, [PendingTxn(txn, None)], self.clock.wall_ms(), members_max=1)
        batch = seal(line, packed.after, packed.shares)
        assert (await self.kv.txn(batch.request, deadline_ms=DEADLINE_MS)).succeeded

    # ---- servers

    async def elect(self, name: str) -> Compare:
        """*name* wins, whoever led; the fence is the revision of that very transaction."""
        key = bytes(LeaderKey())
        value = encode(LeaderRecord(server=name, url="http://127.0.0.1:1", lease="1"))
        won = await self.kv.txn(Request(writes=(Put(key, value),)), deadline_ms=DEADLINE_MS)
        return Compare(key, won.revision)

    async def start(self, name: str, plan: Plan | None = None) -> Server:
        fence = await self.elect(name)
        node = f"{name}#{next(self._numbers)}"
        if plan is None:
            plan = self.plans.pop(0) if self.servers and self.plans else Plan()
        server = Server(name, node, fence, plan)
        if self.servers:
            self.on_takeover()
        else:
            self.loop.spawn(WORLD, self._beat_on())
        late = [work for old in self.servers for work in old.plan.late_in_term]
        self.servers.append(server)
        self.loop.spawn(node, self._lead(server))
        if late:
            self.loop.spawn(WORLD, self._deliver(late, server))
        return server

    async def _deliver(self, late: Sequence[Work], server: Server) -> None:
        """Delivers the requests that were on their way when an earlier server died."""
        await server.ready.wait()
        for old in self.servers:
            old.plan.late_in_term.clear()
        for work in late:
            with suppress(MetaError, httpx.TransportError):
                await work()

    async def started(self, name: str = "meta-1", plan: Plan | None = None) -> Server:
        """A server that has begun its term, and has heard every living node; those that died before
        were registered when they lived."""
        server = await self.start(name, plan)
        await server.ready.wait()
        for node in self.plane.nodes.values():
            await self._register(node, server)
        assert self._beat() == [], "every node is registered"
        return server

    # ---- nodes

    async def detected(self) -> None:
        """Waits until the leader takes every dead node for dead, as its detector does."""
        while any(self._is_taken_for_alive(node) for node in self.plane.nodes.values()):
            await self.clock.sleep_ms(BEAT_MS)

    def _is_taken_for_alive(self, node: FakeNode) -> bool:
        assert self.leader.book is not None
        views = {view.node_id: view.alive for view in self.leader.book.nodes()}
        return not node.alive and views.get(node.node_id, False)

    async def _beat_on(self) -> None:
        """While the world stands."""
        while True:
            await self.clock.sleep_ms(BEAT_MS)
            self._beat()

    def _beat(self) -> "list[asyncio.Task[None]]":
        """A heartbeat of every living node to whoever was elected last. Those that have to register
        do so: the tasks end with the server at the latest."""
        server = self.leader
        if server.book is None or self.is_down(server) or self.loop.is_paused(server.node):
            return []
        living = [node for node in self.plane.nodes.values() if node.alive]
        strangers = [n for n in living if not beat(self.plane, n, server.book, self.clock)]
        if due := joins_due(self.plane, server.book):
            self.loop.spawn(server.node, join(due, server.book))
        return [self._register(node, server) for node in strangers]

    def _register(self, node: FakeNode, server: Server) -> "asyncio.Task[None]":
        assert server.book is not None

        async def registered(book: NodeLiveness) -> None:
            with suppress(MetaError):
                await register(node, book)

        return self.loop.spawn(server.node, registered(server.book))

    async def _lead(self, server: Server) -> None:
        fate = FateOf(self, server)
        ghost = Ghost(self, server)
        is_sound = self._is_sound(server)
        store = FaultyKv(self.kv, server.plan, fate, ghost, self._held)
        if not is_sound:
            store.alter = self.alter
        world = World(
            kv=store if is_sound else self.client(store),
            plan=server.plan,
            fate=fate,
            cluster_id=CLUSTER_ID,
            door=partial(door, self.plane, CLUSTER_ID),
            jobs=self.jobs,
            schema_sync=self.holders,
            clock=self.clock,
            ids=self.ids,
            kinds=self.kinds_at(server),
            limits=self.limits,
            deadline_ms=DEADLINE_MS,
            make_committer=self.make_committer,
            one_transaction=self.one_transaction,
            sizes=self.sizes,
        )
        await lead(server, world)

    def kinds_at(self, server: Server) -> Mapping[str, Kind[Any]]:
        return self.sound_kinds or self.kinds if self._is_sound(server) else self.kinds

    def _is_sound(self, server: Server) -> bool:
        return self.sound_kinds is not None and server is self.servers[0]

    def _held(self, key: bytes) -> bytes | None:
        item = self.kv._store.get(key)
        return item.value if item else None

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
        """Rivals are started by the world: they do not die with the server that is deposed."""
        if self.cluster.on_depose:
            await self._elect_rivals()

    async def stop(self) -> None:
        self.cluster.loop.pause(self.server.node, STOPPED_MS)
        self.cluster.loop.spawn(WORLD, self._succeed())
        await asyncio.sleep(0)  # held until the server wakes

    async def fill(self) -> None:
        self.cluster.full_until_ms = self.cluster.clock.mono_ms() + FULL_MS

    async def _succeed(self) -> None:
        await self.cluster.clock.sleep_ms(TAKEOVER_MS)
        await self._elect_rivals()

    async def _elect_rivals(self) -> None:
        """Elects the servers of `after`: the last one stays leader; the others die as soon as they
        have won."""
        *passing, last = self.cluster.after
        for name in passing:
            await self.cluster.elect(name)
        await self.cluster.start(last)


@dataclass
class Ghost:
    """Implements tests.fakes.faulty_ports.Witness: who wrote under which term; what is rare."""

    cluster: Cluster
    server: Server
    in_doubt: set[Request] = field(default_factory=set)

    @property
    def is_deposed(self) -> bool:
        held = self.cluster.kv._store.get(bytes(LeaderKey()))
        return held is None or held.mod_revision != self.server.term

    def is_full(self) -> bool:
        return self.cluster.clock.mono_ms() < self.cluster.full_until_ms

    def answered(self, request: Request, answer: TxnAnswer) -> None:
        if not request.writes:
            return
        if self.is_deposed:
            said = "was taken" if answer.succeeded else "was refused"
            self.cluster.sometimes[f"a write of a deposed leader {said}"] += 1
            if answer.succeeded:
                self.cluster.violations.append(
                    f"{self.server.node} wrote after it was deposed: {request}"
                )
        elif request in self.in_doubt:
            self.in_doubt.remove(request)
            was = "not done" if answer.succeeded else "done"
            self.cluster.sometimes[f"in doubt, and had been {was}"] += 1
        if answer.succeeded:
            self._published(request)

    def _published(self, request: Request) -> None:
        """Checks every schema version that *request* has made."""
        cluster, start, end = self.cluster, *TableInfoKey.under()
        for write in request.writes:
            if not isinstance(write, Put) or not start <= write.key < end:
                continue
            info = decode(TableInfo, write.value, key=write.key.decode())
            known = cluster.schema_versions.get(info.table_id, 1)
            cluster.schema_versions[info.table_id] = info.schema_version
            route = cluster.kv._store.get(bytes(TableRouteKey(info.table_id)))
            if info.schema_version > known and route is not None:
                found = decode(TableRoute, route.value, key="route")
                wrong = faults(info, found, cluster.plane, cluster.holders)
                cluster.violations += list(wrong)

    def told_nothing(self, request: Request) -> None:
        if request.writes:
            self.in_doubt.add(request)
            if self.is_full():
                self.cluster.sometimes["no space"] += 1
