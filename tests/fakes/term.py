"""A server that leads: built as metasrv builds a term, on ports that may fail.

It has won the election by one transaction. It reads the line under that fence, and runs committer,
follower and manager in one task group.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from base.clock import Clock
from base.errors import Conflict, Refused, Unavailable, Unknown
from base.ids import Ids
from keys.catalog import Catalog
from keys.committer import Committer
from keys.follower import Follower
from keys.kv import Compare, Kv
from keys.line import read_line
from keys.sequence import Sequences
from procedures.admission import Limits
from procedures.context import Ports
from procedures.machine import Kind
from procedures.manager import Manager
from procedures.ports import Jobs, Leases, Nodes, Placement, SchemaSync
from tests.fakes.chance import SeededRng
from tests.fakes.faults import Fate, Plan
from tests.fakes.faulty_ports import FaultyJobs, FaultyNodes


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


@dataclass(frozen=True)
class World:
    """What a server meets. Its `kv` is faulty already; nodes and jobs become so by *plan*."""

    kv: Kv
    plan: Plan
    fate: Fate
    nodes: Callable[[int, Callable[[], Catalog]], Nodes]
    """Of a term, for a leader that knows a catalog."""
    leases: Leases
    placement: Placement
    jobs: Jobs
    schema_sync: SchemaSync
    clock: Clock
    ids: Ids
    kinds: Mapping[str, Kind[Any]]
    limits: Limits
    deadline_ms: int
    """Of one call of the store."""


async def lead(server: Server, world: World) -> None:
    """Until the term ends."""
    kv, clock, plan, fate = world.kv, world.clock, world.plan, world.fate
    deadline_ms = world.deadline_ms
    follower = Follower(kv, clock, deadline_ms=deadline_ms)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follower.follow())
            line = await read_line(kv, server.fence, deadline_ms=deadline_ms)
            await follower.wait_for(line.version, deadline_ms=deadline_ms)
            committer = Committer(kv, clock, line, deadline_ms=deadline_ms)
            committer.on_update(follower.offer)
            nodes = world.nodes(server.term, lambda: follower.catalog)
            ports = Ports(
                kv=kv,
                nodes=FaultyNodes(nodes, plan, fate),
                leases=world.leases,
                placement=world.placement,
                jobs=FaultyJobs(world.jobs, plan, fate),
                schema_sync=world.schema_sync,
                clock=clock,
                ids=world.ids,
                rng=SeededRng(server.term),
                term=server.term,
                deadline_ms=deadline_ms,
                applied=lambda: follower.catalog,
            )
            server.committer, server.follower = committer, follower
            server.sequences = Sequences(kv, committer, deadline_ms)
            server.leads = Manager(world.kinds, ports, committer, world.limits)
            tasks.create_task(committer.run())
            tasks.create_task(server.leads.run(server.fence, server.ready))
    except* (Refused, Conflict, Unavailable, Unknown):  # as metasrv.main.candidate; not Corrupt
        server.ended.set()
