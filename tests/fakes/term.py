"""A server that leads: built as metasrv builds a term, on ports that may fail.

It has won the election by one transaction. It reads the line under that fence, and runs committer,
follower and manager in one task group.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

from keys.catalog.follower import Follower
from keys.catalog.large.unfinished import keys_left
from keys.commit.committer import Committer
from keys.commit.log_head import read_log_head
from keys.commit.sequence import Sequences
from keys.commit.settled import SettledReads
from keys.commit.staging import StagingSizes
from keys.store.kv import Compare, Kv
from metasrv.adapters.http_nodes import HttpNodes
from metasrv.nodes.detector import PhiConfig
from metasrv.nodes.lease_table import LeaseTable
from metasrv.nodes.node_liveness import HeartbeatTiming, NodeLiveness
from metasrv.settings.settings import SettingsStore
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, Refused, Unavailable, Unknown
from metasrv_base.ids import Ids
from procedures.context import Ports
from procedures.locking.locks import route_key, table_key
from procedures.machine import Kind
from procedures.ports import Jobs, Placement, SchemaSync, TransactionLimits
from procedures.scheduling.admission import Limits
from procedures.scheduling.manager import Manager
from tests.fakes.chance import SeededRng
from tests.fakes.datanodes.plane import LEASE_MS
from tests.fakes.faults import Fate, Plan
from tests.fakes.faulty_ports import FaultyJobs, FaultyNodes
from tests.fakes.heartbeats import BEAT_MS
from tests.fakes.wire import NodeWire, Sent

TTL_MS = 5_000
"""The session under which the server was elected."""


@dataclass
class Server:
    """One process of metasrv that leads, or believes that it does."""

    name: str
    node: str
    """Name of its node in the loop: the unit that is killed."""
    fence: Compare
    plan: Plan
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    committer: Committer | None = None
    follower: Follower | None = None
    sequences: Sequences | None = None
    leads: Manager | None = None
    book: NodeLiveness | None = None
    """It hears heartbeats as soon as it is there."""
    ports: Ports | None = None

    @property
    def term(self) -> int:
        return self.fence.mod_revision

    @property
    def manager(self) -> Manager:
        assert self.leads is not None, f"{self.node} has not begun its term"
        return self.leads

    def is_busy(self, table_id: int) -> bool:
        """As metasrv/leadership/leadership.py: until every record has been read, any table may
        be.
        """
        if self.leads is None or not self.ready.is_set():
            return True
        is_claimed = self.leads.locks.is_claimed
        return is_claimed(table_key(table_id)) or is_claimed(route_key(table_id))


@dataclass(frozen=True)
class World:
    """The surroundings of a server: `kv` is faulty already, wire and jobs become so by *plan*."""

    kv: Kv
    plan: Plan
    fate: Fate
    cluster_id: str
    door: Callable[[Sent], httpx.Response]
    """Answers requests to all nodes."""
    jobs: Jobs
    schema_sync: SchemaSync
    clock: Clock
    ids: Ids
    kinds: Mapping[str, Kind[Any]]
    limits: Limits
    deadline_ms: int
    """Deadline of one call of the store."""
    make_committer: Callable[..., Committer] = Committer
    one_transaction: TransactionLimits = field(default_factory=TransactionLimits)
    """The size from which a batch happens in parts."""
    sizes: StagingSizes = field(default_factory=StagingSizes)
    placement_of: Callable[[NodeLiveness], Placement] = lambda book: book
    """By default the nodes are as the leader's own detector sees them."""


async def lead(server: Server, world: World) -> None:
    """Until the term ends."""
    kv, clock, plan, fate = world.kv, world.clock, world.plan, world.fate
    deadline_ms = world.deadline_ms
    follower = Follower(kv, clock, deadline_ms=deadline_ms)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follower.log.follow())
            line = await read_log_head(kv, server.fence, deadline_ms=deadline_ms)
            await follower.wait_for(line.version, deadline_ms=deadline_ms)
            committer = world.make_committer(kv, clock, line, deadline_ms=deadline_ms)
            follower.log.lead(committer)
            committer.sizes = world.sizes
            left = await keys_left(kv, server.fence, follower, deadline_ms=deadline_ms)
            if left is not None:
                committer.finish(left)
            book = _book(server, world, committer, follower)
            await book.load()
            wire = NodeWire(world.door, plan, fate)
            nodes = HttpNodes(world.cluster_id, server.term, book, lambda: follower.catalog, wire)
            ports = Ports(
                kv=SettledReads(kv, committer.settling),
                nodes=FaultyNodes(nodes, plan, wire),
                leases=book,
                placement=world.placement_of(book),
                jobs=FaultyJobs(world.jobs, plan, fate),
                schema_sync=world.schema_sync,
                clock=clock,
                ids=world.ids,
                rng=SeededRng(server.term),
                term=server.term,
                deadline_ms=deadline_ms,
                limits=world.one_transaction,
                applied=lambda: follower.catalog,
                is_busy=server.is_busy,
            )
            server.committer, server.follower = committer, follower
            server.sequences = Sequences(kv, committer, deadline_ms)
            server.book, server.ports = book, ports
            server.leads = Manager(world.kinds, ports, committer, world.limits)
            tasks.create_task(committer.run())
            tasks.create_task(nodes.run())
            tasks.create_task(server.leads.run(server.fence, server.ready))
    except* (
        Refused,
        Conflict,
        Unavailable,
        Unknown,
    ):  # as metasrv.server.main.candidate; not Corrupt
        server.ended.set()


def _book(server: Server, world: World, committer: Committer, follower: Follower) -> NodeLiveness:
    clock, deadline_ms = world.clock, world.deadline_ms
    return NodeLiveness(
        cluster_id=world.cluster_id,
        kv=world.kv,
        committer=committer,
        follower=follower,
        clock=clock,
        leases=LeaseTable(LEASE_MS, TTL_MS, clock.mono_ms()),
        settings=SettingsStore(world.kv, committer, clock, deadline_ms),
        timing=HeartbeatTiming(BEAT_MS, LEASE_MS, deadline_ms),
        phi=PhiConfig(first_interval_ms=BEAT_MS),
        next_order=count(1).__next__,
        is_busy=server.is_busy,
    )
