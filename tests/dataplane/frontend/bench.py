"""A frontend over a real datanode, both in this process, with what the feed says told by tests."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx

from dataplane.datanode.copies.copy_sessions import CopySessions
from dataplane.datanode.copies.followed import CopyAppends
from dataplane.datanode.http.app import build_app as datanode_app
from dataplane.datanode.membership.adoption import NodeAdoption
from dataplane.datanode.membership.heartbeat import HeartbeatLoop, HeartbeatPorts
from dataplane.datanode.membership.membership import Membership, NodeIdentity
from dataplane.datanode.metrics import NodeMetrics
from dataplane.datanode.orders.journal import open_journal
from dataplane.datanode.orders.orders import OrderExecutor
from dataplane.datanode.promises.promise_desk import PromiseDesk
from dataplane.datanode.promises.shared_regions import PromisePorts
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.regions import NodeRegionSet as NodeRegions
from dataplane.datanode.regions.rows import RowService
from dataplane.datanode.regions.store import DiskStore
from dataplane.datanode.service import DatanodeService as NodeService
from dataplane.frontend.catalog.catalog import LiveCatalog, Name
from dataplane.frontend.lease.holder import HolderLoop, HolderPorts
from dataplane.frontend.lease.latency import Latency
from dataplane.frontend.lease.transactions import Transactions
from dataplane.frontend.metrics import FrontendMetrics
from dataplane.frontend.service import FrontendService
from dataplane.frontend.statements.regions import RegionClient
from dataplane.frontend.statements.statements import Statements
from dataplane.region.copies.leader_silence import LeaderSilence
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from metasrv_base.rows.nodes import NodePools
from metasrv_base.wire.frontend.feed import FeedTable, SnapshotLine, Update
from metasrv_base.wire.frontend.holders import HolderRegisterAnswer
from metasrv_base.wire.node.orders import (
    CloseRegion,
    CreateRegion,
    LeaseGrant,
    OriginColumn,
    RegionColumn,
    SetSchema,
)
from tests.dataplane.frontend.leader import FakeLeader
from tests.dataplane.frontend.tables import feed_table
from tests.fakes.chance import SeededRng
from tests.fakes.clock import FakeClock
from tests.fakes.silent_leader import EmptyMachine, SilentLeader

T: Name = ("main", "public", "t")
NODE_URL = "http://127.0.0.1:1"
LEASE_MS = 180_000
AGE_MAX_MS = 120_000
"""The limit of a statement; that of its calls to the node is in real time, on a machine that may
have much to do."""
Meet = Callable[[httpx.Request], Awaitable[None]]


class Meeting(httpx.AsyncBaseTransport):
    """To the node; `meet` is told of each request on its way, and `done` of each that is done."""

    def __init__(self, app: object) -> None:
        self._to = httpx.ASGITransport(app=app)  # type: ignore[arg-type]
        self.meet: Meet | None = None
        self.done: Meet | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.meet is not None:
            await self.meet(request)
        answer = await self._to.handle_async_request(request)
        if self.done is not None:
            await self.done(request)
        return answer


@dataclass
class Bench:
    clock: FakeClock
    node: NodeRegions
    way: Meeting
    catalog: LiveCatalog
    holder: HolderLoop
    transactions: Transactions
    service: FrontendService
    table: FeedTable
    statements: Iterator[int] = field(default_factory=itertools.count)
    """Ids that no statement had yet."""

    def tell(self, table: FeedTable) -> None:
        """The next version of the catalog."""
        self.table = table
        self.catalog.take(Update(version=(self.catalog.version or 0) + 1, tables=(table,)))

    async def raise_floor(self, table: FeedTable, floor: int) -> None:
        """Every region has the schema of *table*, and takes nothing below *floor*."""
        for region in table.regions:
            order = SetSchema(
                number=table.schema_version,
                region_id=region.region_id,
                epoch=region.epoch,
                schema_version=table.schema_version,
                schema_floor=floor,
                columns=columns_of(table),
                indexes=[index.id for index in table.indexes],
            )
            await self.node.carry_out(order)

    async def drop(self) -> None:
        """As a procedure does it: nobody finds the table any more, and then its regions close."""
        gone = Update(version=(self.catalog.version or 0) + 1, gone=(self.table.id,))
        self.catalog.take(gone)
        for region in self.table.regions:
            order = CloseRegion(number=2, region_id=region.region_id, epoch=region.epoch)
            await self.node.carry_out(order)

    async def make(self, table: FeedTable) -> None:
        """As a procedure does it: its regions first."""
        await _make_regions(self.node, table)
        self.tell(table)

    async def publish(self, table: FeedTable) -> None:
        """A transition as a procedure makes it: the regions first."""
        await self.raise_floor(table, table.schema_version - 1)
        self.tell(table)

    def register(self) -> None:
        """A lease from now on."""
        self.holder.cluster_id = None
        now_ms = self.clock.mono_ms()
        answer = HolderRegisterAnswer(
            cluster_id="c",
            term=1,
            lease_ms=LEASE_MS,
            acknowledge_ms=3_000,
            transaction_age_max_ms=AGE_MAX_MS,
            catalog_version=self.catalog.version or 0,
        )
        self.holder.registered("i-1", now_ms, answer)


@asynccontextmanager
async def running(table: FeedTable | None = None) -> AsyncIterator[Bench]:
    """The regions of *table* are made on one node."""
    table, clock = table or feed_table(), FakeClock()
    store = MemoryStore()
    async with asyncio.TaskGroup() as group:
        leases = RegionLeases("i1")
        leases.sent(1, clock.mono_ms())
        disks = DiskStore(MemoryDisk(store), clock, "/n")
        node = NodeRegions(disks, leases, clock, group.create_task)
        await _make_regions(node, table)
        journal = open_journal(MemoryDisk(store), "/n", "dn-1")
        me = Membership(NodeIdentity("dn-1", "i1", NODE_URL, "z", "/n"), "c")
        desk = OrderExecutor(journal, node)
        rows = RowService(node)
        world = HeartbeatPorts(SilentLeader(), EmptyMachine(), clock, leases)
        heart = HeartbeatLoop(me, desk, journal, node, world)
        adoption = NodeAdoption(me, heart, desk, journal, node, MemoryDisk(store))
        appends, metrics = CopyAppends(node.followed, lambda _: None), NodeMetrics()
        sessions = CopySessions(node.led, me, clock)
        promises = PromiseDesk(PromisePorts(me, node, clock, LeaderSilence(), metrics.promised))
        there = NodeService(
            *(me, desk, node, rows, appends, sessions, leases, clock, metrics),
            *(desk.execute, adoption, promises),
        )
        bench = _frontend(clock, node, Meeting(datanode_app(there)), table)
        bench.register()
        yield bench
        await node.close_all()


def _frontend(clock: FakeClock, node: NodeRegions, way: Meeting, table: FeedTable) -> Bench:
    catalog = LiveCatalog()
    catalog.take(
        SnapshotLine(version=1, tables=(table,), addresses={"dn-1": NODE_URL}, is_last=True)
    )
    transactions, latency = Transactions(), Latency()
    world = HolderPorts(FakeLeader(clock), clock, lambda: None, lambda urls: None)
    holder = HolderLoop("fe-1", "http://127.0.0.1:2", catalog, transactions, latency, world)
    regions = RegionClient(catalog, NodePools(way), SeededRng(), holder.check_lease, "fe-1")
    statements = Statements(holder, catalog, transactions, clock, latency)
    service = FrontendService.of(statements, regions, FrontendMetrics())
    return Bench(clock, node, way, catalog, holder, transactions, service, table)


async def _make_regions(node: NodeRegions, table: FeedTable) -> None:
    for region in table.regions:
        create = _create(table, region.region_id)
        await node.carry_out(create)
        node.renew_by(create)


def _create(table: FeedTable, region_id: str) -> CreateRegion:
    return CreateRegion(
        number=1,
        region_id=region_id,
        epoch=1,
        root=f"/n/regions/{region_id}",
        table_id=table.id,
        schema_version=table.schema_version,
        schema_floor=1,
        columns=columns_of(table),
        key_columns=list(table.primary_key),
        indexes=[index.id for index in table.indexes],
        lease=LeaseGrant(incarnation="i1", heartbeat=1, lease_ms=10**9),
    )


def columns_of(table: FeedTable) -> list[RegionColumn]:
    types = {one.id: one.type for one in table.columns}
    return [
        RegionColumn(
            id=one.id,
            type=one.type,
            nullable=one.nullable,
            origin_default=one.origin_default,
            origin_columns=[
                OriginColumn(id=id, type=types[id]) for id in (one.replaces,) if id is not None
            ],
        )
        for one in table.columns
    ]
