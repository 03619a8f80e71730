"""A leader's book of nodes over a store in memory, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from keys.catalog.follower import Follower
from keys.commit.bootstrap import bootstrap_request
from keys.commit.committer import Committer
from keys.commit.log_head import read_log_head
from keys.commit.txn import snapshot
from keys.model.cluster import LeaderKey, LeaderRecord, NodeKey, NodeRecord
from keys.store.kv import Compare, Put, Request
from keys.store.memory import MemoryKv
from keys.value import encode
from metasrv.nodes.detector import PhiConfig
from metasrv.nodes.lease_table import LeaseTable
from metasrv.nodes.node_liveness import HeartbeatTiming, NodeLiveness
from metasrv.settings.settings import SettingsStore
from metasrv_base.wire.node.nodes import (
    HeartbeatRequest,
    NodeResources,
    RegionColumns,
    RegionStat,
    RegisterRequest,
)
from tests.fakes.clock import FakeClock

CLUSTER = "c-1"


DEADLINE_MS = 1_000


LEASE_MS = 10_000


RESOURCES = NodeResources(
    cpu_cores=2, memory_bytes=4, memory_free_bytes=3, disk_bytes=1 << 40, disk_free_bytes=1 << 39
)


class Office:
    """A leader's NodeBook on a store in memory."""

    def __init__(self, kv: MemoryKv, clock: FakeClock, committer: Committer) -> None:
        self.kv, self.clock, self.committer = kv, clock, committer
        self.follower = Follower(kv, clock, deadline_ms=DEADLINE_MS)
        self.follower.log.lead(committer)
        self.leases = LeaseTable(LEASE_MS, 5_000, clock.mono_ms())
        self.book = NodeLiveness(
            cluster_id=CLUSTER,
            kv=kv,
            committer=committer,
            follower=self.follower,
            clock=clock,
            leases=self.leases,
            settings=SettingsStore(kv, committer, clock, DEADLINE_MS),
            timing=HeartbeatTiming(2_000, LEASE_MS, DEADLINE_MS),
            phi=PhiConfig(),
            next_order=count(1).__next__,
            is_busy=lambda _table: False,
        )

    async def stored(self, node: str) -> NodeRecord | None:
        key = NodeKey("datanode", node)
        return (await snapshot(self.kv, key, deadline_ms=DEADLINE_MS)).get(key)


@asynccontextmanager
async def office() -> AsyncIterator[Office]:
    clock = FakeClock()
    kv = MemoryKv(clock)
    seat = LeaderRecord(server="m-1", url="http://m-1", lease="1")
    put = Request(writes=(Put(bytes(LeaderKey()), encode(seat)),))
    won = await kv.txn(put, deadline_ms=DEADLINE_MS)
    fence = Compare(bytes(LeaderKey()), won.revision)
    await kv.txn(bootstrap_request(fence, CLUSTER, clock.wall_ms()), deadline_ms=DEADLINE_MS)
    line = await read_log_head(kv, fence, deadline_ms=DEADLINE_MS)
    committer = Committer(kv, clock, line, deadline_ms=DEADLINE_MS)
    made = Office(kv, clock, committer)
    await made.follower.log.load()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(committer.run())
        yield made
        running.cancel()


def registration(node: str = "dn-1", incarnation: str = "i-1", **facts: object) -> RegisterRequest:
    return RegisterRequest(
        cluster_id=None,
        node_id=node,
        incarnation=incarnation,
        address=f"http://{node}",
        zone="z",
        root=f"/data/{node}",
        version="0",
        resources=RESOURCES,
    ).model_copy(update=facts)


def beat(
    sequence: int, *regions: RegionStat, node: str = "dn-1", incarnation: str = "i-1"
) -> HeartbeatRequest:
    return HeartbeatRequest(
        cluster_id=CLUSTER,
        node_id=node,
        incarnation=incarnation,
        sequence=sequence,
        address=f"http://{node}",
        zone="z",
        version="0",
        term=0,
        resources=RESOURCES,
        regions=RegionColumns.of(regions),
    )
