"""A store that holds so many tables: filled by the real committer, as a leader, before any server.

Each table is written as its create writes it at its end: info, name, route, what each node has, and
the log's entry, all in one transaction; many tables travel in one. There is no procedure, and no
node has heard of the regions. `metasrv check --etcd URL` looks at the result as at any other.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from uuid import uuid4

from base.clock import Clock, SystemClock
from base.fanout import fan_out
from base.ids import RandomIds
from base.wire.tables import ColumnSpec, HashPartition, TableSpec
from keys.bootstrap import bootstrap_request
from keys.catalogs import DEFAULT_CATALOG, DEFAULT_SCHEMA
from keys.cluster import Cordon, Node, NodeKey, Resources, Sequence, SequenceKey
from keys.committer import Committer
from keys.etcd import EtcdKv
from keys.kv import Kv
from keys.line import read_line
from keys.log import TableCreated
from keys.routing import put_route
from keys.sequence import FIRST
from keys.tables import TableInfoKey, TableName, TableNameKey, TableRouteKey
from keys.txn import Txn, snapshot
from metasrv.election import Election, Identity, Timing, win
from metasrv.nodes.book import DATANODE
from metasrv.playground.plan import KEY_PREFIX
from metasrv.service import wishes
from metasrv.service.ddl_create import TableToCreate, table_info, table_route
from procedures.ports import NodeView

DEADLINE_MS = 5_000
LEASE_MS = 10_000
AT_ONCE = 48  # three transactions' worth
COLUMNS = 8


@dataclass(frozen=True, slots=True)
class Filling:
    """How much of what."""

    tables: int
    regions: int = 4
    """Of each table, each on another node."""
    nodes: int = 4

    @property
    def node_ids(self) -> Collection[str]:
        return [f"filled-{number}" for number in range(1, self.nodes + 1)]

    def spec(self, number: int) -> TableSpec:
        key = ColumnSpec(name="id", type="int64", nullable=False)
        others = [ColumnSpec(name=f"c{n}", type="string") for n in range(1, COLUMNS)]
        return TableSpec(
            name=name_of(number),
            columns=(key, *others),
            primary_key=("id",),
            partition=HashPartition(by="hash", columns=("id",), count=self.regions),
        )


def name_of(number: int) -> str:
    return f"filled_{number:07}"


async def fill(endpoint: str, filling: Filling) -> None:
    """The store is empty before; its leader's seat is free again after."""
    clock = SystemClock()
    kv = await EtcdKv.connect([endpoint], KEY_PREFIX.encode())
    async with leading(kv, clock) as committer:
        views = [_view(node) for node in filling.node_ids]
        await fan_out(
            [partial(_register, committer, clock, view) for view in views], at_once=AT_ONCE
        )
        await _reserve(committer, filling.tables, kv)
        numbers = iter(range(filling.tables))
        while part := list(islice(numbers, 1_000)):
            calls = [partial(_create, committer, filling, views, n, clock) for n in part]
            await fan_out(calls, at_once=AT_ONCE)
    await kv.close()


@asynccontextmanager
async def leading(kv: Kv, clock: Clock) -> AsyncIterator[Committer]:
    """The committer of a term, which ends with the context."""
    me = Identity("filler", "http://127.0.0.1:1", "0")
    election = Election(kv, clock, me, Timing(LEASE_MS, LEASE_MS // 4, DEADLINE_MS))
    session = await election.open_session()
    fence = await win(election, session, clock, lambda _: None)
    first = bootstrap_request(fence, RandomIds(clock).procedure_id(), clock.wall_ms())
    assert (await kv.txn(first, deadline_ms=DEADLINE_MS)).succeeded, "the store is not empty"
    line = await read_line(kv, fence, deadline_ms=DEADLINE_MS)
    committer = Committer(kv, clock, line, deadline_ms=DEADLINE_MS)
    async with asyncio.TaskGroup() as tasks:
        work = (tasks.create_task(election.keep_alive(session)), tasks.create_task(committer.run()))
        yield committer
        for task in work:
            task.cancel()
    await election.resign(session)


async def _register(committer: Committer, clock: Clock, view: NodeView) -> None:
    key = NodeKey(DATANODE, view.node_id)
    node = Node(
        node_id=view.node_id,
        role=DATANODE,
        address="http://127.0.0.1:1",
        zone=view.zone,
        root=view.root,
        version="0",
        incarnation=str(uuid4()),
        resources=Resources(cpu_cores=8, memory_bytes=1 << 36, disk_bytes=1 << 40),
        registered_at_ms=clock.wall_ms(),
        cordon=Cordon(reason="nobody is there", by="benchmark", at_ms=clock.wall_ms()),
    )
    await committer.commit(Txn().expecting(key, 0).put(key, node))


async def _reserve(committer: Committer, tables: int, kv: Kv) -> None:
    key = SequenceKey("table_id")
    seen = await snapshot(kv, key, deadline_ms=DEADLINE_MS)
    taken = Sequence(next=FIRST["table_id"] + tables)
    await committer.commit(Txn.on(seen).put(key, taken))


async def _create(
    committer: Committer, filling: Filling, views: list[NodeView], number: int, clock: Clock
) -> None:
    table_id = FIRST["table_id"] + number
    name = wishes.TableName(DEFAULT_CATALOG, DEFAULT_SCHEMA, name_of(number))
    info = table_info(TableToCreate(name, filling.spec(number)), table_id, clock.wall_ms())
    first = number * filling.regions
    chosen = tuple(views[(first + n) % len(views)] for n in range(filling.regions))
    route = table_route(table_id, chosen)
    keys = TableInfoKey(table_id), TableRouteKey(table_id)
    name_key = TableNameKey(name.catalog, name.schema, name.table)
    txn = Txn().expecting(keys[0], 0).expecting(keys[1], 0).expecting(name_key, 0)
    txn = txn.put(keys[0], info).put(name_key, TableName(table_id=table_id))
    await committer.commit(put_route(txn, None, route).log(TableCreated(info=info, route=route)))


def _view(node_id: str) -> NodeView:
    return NodeView(
        node_id=node_id,
        zone="filled",
        root=f"/nowhere/{node_id}",
        alive=True,
        regions=0,
        disk_free_bytes=1 << 40,
    )
