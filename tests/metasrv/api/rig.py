"""A whole server in one process: MemoryKv, real committer, follower, manager and NodeBook."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

from keys.catalog.follower import Follower
from keys.catalog.log.revision_pins import RevisionPins
from keys.commit.bootstrap import bootstrap_request
from keys.commit.committer import Committer
from keys.commit.log_head import read_log_head
from keys.commit.sequence import Sequences
from keys.commit.settled import SettledReads
from keys.model.cluster import Candidate, CandidateKey, LeaderKey, LeaderRecord
from keys.store.kv import Compare, Kv, Put, Request
from keys.store.memory import MemoryKv
from keys.value import encode
from metasrv.api.http.body import BodyLimits
from metasrv.holders.holder_registry import HolderRegistry
from metasrv.holders.sync import HolderSync
from metasrv.holders.sync import SchemaLeaseTiming as SchemaTiming
from metasrv.leadership.tally import HistoryTally
from metasrv.leadership.term import Term
from metasrv.leadership.tuning import Tuned
from metasrv.nodes.detector import PhiConfig
from metasrv.nodes.lease_table import LeaseTable
from metasrv.nodes.node_liveness import HeartbeatTiming, NodeLiveness
from metasrv.server.app import build_app
from metasrv.service.state.addresses import Addresses
from metasrv.service.state.state import ServerFacts, ServerState
from metasrv.settings.settings import SettingsStore
from metasrv_base.clock import Clock
from metasrv_base.ids import RandomIds
from metasrv_base.rng import SystemRng
from metasrv_base.wire.node.nodes import (
    HeartbeatRequest,
    NodeResources,
    RegionColumns,
    RegionStat,
    RegisterRequest,
)
from procedures.context import Ports
from procedures.kinds.registry import KINDS
from procedures.machine import AdmissionLane
from procedures.ports import TransactionLimits
from procedures.scheduling.admission import Limits
from procedures.scheduling.manager import Manager
from tests.metasrv.api.fakes import FakeNodes, NoJobs, ShiftedClock

CLUSTER = "11111111-2222-7333-8444-555555555555"
DEADLINE_MS = 2_000
LEASE_MS = 10_000
LONG_LEASE_MS = 3_600_000
SCHEMA_LEASE_MS = 15_000
RESOURCES = NodeResources(
    cpu_cores=2,
    memory_bytes=1 << 30,
    memory_free_bytes=1 << 29,
    disk_bytes=1 << 40,
    disk_free_bytes=1 << 39,
)
TABLES = "/v1/catalogs/main/schemas/public/tables"


def spec(name: str = "t", **more: Any) -> dict[str, Any]:
    """A table as a client would ask for it."""
    return {
        "name": name,
        "columns": [
            {"name": "id", "type": "int64", "nullable": False},
            {"name": "carrier", "type": "string"},
        ],
        "primary_key": ["id"],
        **more,
    }


@dataclass
class Server:
    """One server. `app` is asked by `client`, in process."""

    state: ServerState
    kv: MemoryKv
    clock: ShiftedClock
    nodes: FakeNodes = field(default_factory=FakeNodes)
    limits: BodyLimits = field(default_factory=BodyLimits)
    transport: httpx.AsyncBaseTransport = field(default_factory=lambda: httpx.MockTransport(_gone))
    """Connection to other servers; by default there is none."""

    def __post_init__(self) -> None:
        self.app = build_app(self.state, transport=self.transport, limits=self.limits)
        self.client = httpx.AsyncClient(
            transport=InProcess(self.app), base_url=self.state.facts.url, timeout=30
        )

    @property
    def version(self) -> int:
        return self.state.follower.catalog.version

    @property
    def term(self) -> Term:
        assert self.state.term is not None
        return self.state.term

    async def make(self, name: str = "t", **more: Any) -> dict[str, Any]:
        """A table that stands when this returns."""
        answer = await self.client.post(
            TABLES, json=spec(name, **more), headers={"Prefer": "wait=10"}
        )
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found


class InProcess(httpx.ASGITransport):
    """As by TCP, everybody else gets a turn with each request: nothing else here would wait."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        return await super().handle_async_request(request)


def _gone(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("nobody there", request=request)


def state_of(name: str, kv: Kv, clock: ShiftedClock) -> ServerState:
    facts = ServerFacts(
        server=name,
        url=f"http://{name}",
        version="0",
        lease_ms=5_000,
        store_deadline_ms=DEADLINE_MS,
    )
    follower = Follower(kv, clock, deadline_ms=DEADLINE_MS)
    addresses = Addresses(kv, clock, DEADLINE_MS)
    ids = RandomIds(clock)
    pins = RevisionPins(kv, clock, ids, facts.server, DEADLINE_MS)
    return ServerState(facts, kv, follower, clock, ids, addresses, pins)


@dataclass(frozen=True, slots=True)
class TermLimits:
    """Limits of a term that tests make small, or large."""

    queue_max: int = 100
    one_transaction: TransactionLimits = field(default_factory=TransactionLimits)
    """The size from which batches happen in parts."""
    lease_ms: int = LEASE_MS
    """The lease of each node, which is heard once. It runs in real time: a long example on a busy
    machine needs a longer one (`LONG_LEASE_MS`)."""


USUAL = TermLimits()
Given = Callable[[MemoryKv, Compare], Awaitable[None]]
"""Writes, under the fence, what is there before the term begins."""


async def nothing(kv: MemoryKv, fence: Compare) -> None:
    pass


@asynccontextmanager
async def leader(
    *,
    nodes: int = 2,
    limits: BodyLimits | None = None,
    of_term: TermLimits = USUAL,
    make_kv: Callable[[Clock], MemoryKv] = MemoryKv,
    given: Given = nothing,
) -> AsyncIterator[Server]:
    """A server that leads a fresh cluster, with *nodes* registered."""
    clock = ShiftedClock()
    kv = make_kv(clock)
    server = Server(state_of("ms-1", kv, clock), kv, clock, limits=limits or BodyLimits())
    fence = await _elect(kv, server)
    await kv.txn(bootstrap_request(fence, CLUSTER, clock.wall_ms()), deadline_ms=DEADLINE_MS)
    await given(kv, fence)
    await server.state.follower.log.load()
    term = await _term(server, fence, of_term)
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(term.committer.run()),
            tasks.create_task(term.manager.run(fence, term.ready)),
            tasks.create_task(server.state.follower.log.follow()),
            tasks.create_task(server.state.old.run()),
        ]
        await term.ready.wait()
        server.state.is_valid = lambda: True
        server.state.begin(term)
        for number in range(1, nodes + 1):
            await join(server, f"dn-{number}")
        yield server
        for task in running:
            task.cancel()


@asynccontextmanager
async def follower_of(
    led: Server, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[Server]:
    """A second server of the same cluster, which passes on to *led* in process."""
    transport = transport or InProcess(led.app)
    server = Server(state_of("ms-2", led.kv, led.clock), led.kv, led.clock, transport=transport)
    server.state.heard(LeaderRecord(server="ms-1", url="http://ms-1", lease="1"))
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(server.state.follower.log.follow())
        rebuilding = tasks.create_task(server.state.old.run())
        await server.state.follower.wait_for(led.version, deadline_ms=DEADLINE_MS)
        yield server
        following.cancel()
        rebuilding.cancel()


async def join(server: Server, node_id: str) -> None:
    """Registers a node and lets it be heard once."""
    await server.term.nodes.register(registration(node_id))
    server.term.nodes.heartbeat(beat(node_id))


def registration(node_id: str, **more: Any) -> RegisterRequest:
    facts: dict[str, Any] = {
        "cluster_id": CLUSTER,
        "node_id": node_id,
        "incarnation": "i-1",
        "address": f"http://{node_id}:9000",
        "zone": "z",
        "root": f"/data/{node_id}",
        "version": "0",
        "resources": RESOURCES,
    }
    return RegisterRequest(**{**facts, **more})


def beat(
    node_id: str, sequence: int = 1, regions: Iterable[RegionStat] = (), **more: Any
) -> HeartbeatRequest:
    facts: dict[str, Any] = {
        "cluster_id": CLUSTER,
        "node_id": node_id,
        "incarnation": "i-1",
        "sequence": sequence,
        "address": f"http://{node_id}:9000",
        "zone": "z",
        "version": "0",
        "term": 0,
        "resources": RESOURCES,
        "regions": RegionColumns.of(regions),
    }
    return HeartbeatRequest(**{**facts, **more})


async def _elect(kv: MemoryKv, server: Server) -> Compare:
    facts = server.state.facts
    seat = LeaderRecord(server=facts.server, url=facts.url, lease="1")
    candidate = Candidate(server=facts.server, url=facts.url, version=facts.version)
    writes = (
        Put(bytes(LeaderKey()), encode(seat)),
        Put(bytes(CandidateKey(facts.server)), encode(candidate)),
    )
    answer = await kv.txn(Request(writes=writes), deadline_ms=DEADLINE_MS)
    return Compare(bytes(LeaderKey()), answer.revision)


async def _term(server: Server, fence: Compare, of_term: TermLimits) -> Term:
    kv, clock, state = server.kv, server.clock, server.state
    line = await read_log_head(kv, fence, deadline_ms=DEADLINE_MS)
    committer = Committer(kv, clock, line, deadline_ms=DEADLINE_MS)
    state.follower.log.lead(committer)
    settings = SettingsStore(kv, committer, clock, DEADLINE_MS)
    book = NodeLiveness(
        cluster_id=CLUSTER,
        kv=kv,
        committer=committer,
        follower=state.follower,
        clock=clock,
        leases=LeaseTable(of_term.lease_ms, 5_000, clock.mono_ms()),
        settings=settings,
        timing=HeartbeatTiming(2_000, of_term.lease_ms, DEADLINE_MS),
        phi=PhiConfig(),
        next_order=count(1).__next__,
        is_busy=lambda table_id: False,
    )
    holders = HolderSync(
        cluster_id=CLUSTER,
        kv=kv,
        committer=committer,
        follower=state.follower,
        clock=clock,
        book=HolderRegistry(SCHEMA_LEASE_MS, 5_000, clock.mono_ms()),
        timing=SchemaTiming(SCHEMA_LEASE_MS, 10_000, DEADLINE_MS),
    )
    await holders.load()
    ports = Ports(
        kv=SettledReads(kv, committer.settling),
        nodes=server.nodes,
        leases=book,
        placement=book,
        jobs=NoJobs(),
        schema_sync=holders,
        clock=clock,
        ids=state.ids,
        rng=SystemRng(),
        term=fence.mod_revision,
        deadline_ms=DEADLINE_MS,
        limits=of_term.one_transaction,
        applied=lambda: state.follower.catalog,
    )
    places = Limits(
        running_max={AdmissionLane.DDL: 8, AdmissionLane.REPAIR: 8}, queue_max=of_term.queue_max
    )
    manager = Manager(KINDS, ports, committer, places)
    tuned = Tuned(places, book.phi.threshold, book, manager, ports.gate, ports.reorg_width)
    settings.listen(tuned.follow)
    sequences = Sequences(kv, committer, DEADLINE_MS)
    tally, ready = HistoryTally(fence.mod_revision), asyncio.Event()
    manager.on_end(tally.ended)
    return Term(
        CLUSTER, fence, committer, sequences, manager, ports, book, holders, settings, tally, ready
    )
