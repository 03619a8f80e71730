"""`benchmarks.service.filled URL`: a store that holds so many tables, filled before any server.

Each table is written as its create writes it at its end: info, name, route, what each node has, and
the log's entry, all in one transaction; many tables travel in one. What is written is made by the
real code once, and stamped with the numbers of each table (benchmarks/service/stamped.py). There is
no procedure, and no node has heard of the regions. `metasrv check --etcd URL` looks at the result
as at any other.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from uuid import uuid4

from benchmarks.service.stamped import Mould
from keys.catalog.catalog import Catalog
from keys.commit.batch import VERSION_KEY, LogHead, PendingTxn
from keys.commit.bootstrap import bootstrap_request
from keys.commit.change import change
from keys.commit.committer import Committer
from keys.commit.log_head import read_log_head
from keys.commit.packing import pack as fill_batch
from keys.commit.sequence import FIRST
from keys.commit.txn import Read, Snapshot, Txn
from keys.model.catalogs import DEFAULT_CATALOG, DEFAULT_SCHEMA
from keys.model.cluster import DATANODE, Cordon, NodeKey, NodeRecord, Resources, SequenceKey
from keys.model.cluster import Sequence as Taken
from keys.model.log import CatalogUpdateKey, CatalogVersion, TableCreated
from keys.model.tables import TableInfoKey, TableNameKey, TableRouteKey
from keys.store.etcd import EtcdKv
from keys.store.kv import TXN_OPS_MAX, Compare, Kv, Put, Request
from keys.value import encode
from metasrv.leadership.election import Election, ElectionTiming, ServerIdentity, win
from metasrv.playground.plan import KEY_PREFIX
from metasrv.service.ddl.ddl_create import TableToCreate, table_info
from metasrv.service.ddl.table_placing import placing_of
from metasrv.service.requests import ddl_request
from metasrv_base.clock import Clock, SystemClock
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.ids import RandomIds, TableId, region_id
from metasrv_base.wire.api.tables import ColumnSpec, HashPartition, TableSpec
from procedures.ports import NodeView
from procedures.steps.copies.new_routes import table_route

DEADLINE_MS = 5_000
LEASE_MS = 10_000
AT_ONCE = 4
"""Transactions on their way."""
COLUMNS = 8
LOG = CatalogUpdateKey.under().start
NO_NUMBER = 9_999_996
"""Number of a table that is never created: the first of those that moulds are made of."""
NO_VERSION, NO_TIME = 8_888_888_888, 7_777_777_777_777


@dataclass(frozen=True, slots=True)
class Filling:
    """The size of a filled store."""

    tables: int
    regions: int = 4
    """Regions of each table, each on another node."""
    nodes: int = 4
    has_log: bool = True
    """Whether the log's entries are written: half of the bytes. Without them a snapshot is."""

    @property
    def views(self) -> Sequence[NodeView]:
        return [_view(f"filled-{number}") for number in range(1, self.nodes + 1)]

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


Then = Callable[[Kv, LogHead, int], Awaitable[None]]


async def fill(endpoint: str, filling: Filling, then: Then | None = None) -> None:
    """The store is empty before; its leader's seat is free again after. *then*: what else is
    written behind the line at which the tables began, within the same term, with the time at which
    they were created."""
    clock = SystemClock()
    kv = await EtcdKv.connect([endpoint], KEY_PREFIX.encode())
    async with leading(kv, clock) as (committer, line):
        nodes = [partial(_register, committer, clock, view) for view in filling.views]
        await fan_out(nodes, at_once=len(nodes))
        now_ms = clock.wall_ms()
        await write_tables(kv, filling, line, now_ms)
        if then is not None:
            await then(kv, line, now_ms)
    await kv.close()


async def write_tables(kv: Kv, filling: Filling, line: LogHead, now_ms: int) -> None:
    """Behind *line*, by whoever has its fence; there are none before."""
    requests = (
        Request((line.fence,), part) for part in in_parts(stamped_tables(filling, line, now_ms))
    )
    while some := list(islice(requests, 64 * AT_ONCE)):
        await fan_out([partial(commit, kv, one) for one in some], at_once=AT_ONCE)
    count = filling.tables
    last = CatalogVersion(version=line.version + count, at_ms=line.at_ms + count)
    taken = Taken(next=FIRST["table_id"] + count)
    ends = Put(VERSION_KEY, encode(last)), Put(bytes(SequenceKey("table_id")), encode(taken))
    await commit(kv, Request((line.fence,), ends))


async def commit(kv: Kv, request: Request) -> None:
    assert (await kv.txn(request, deadline_ms=DEADLINE_MS)).succeeded, "another leads"


def stamped_tables(filling: Filling, line: LogHead, now_ms: int) -> Iterator[list[Put]]:
    """Yields the puts of each table, in order; each table is one version and 1 ms later."""
    moulds = [mould_of(filling, NO_NUMBER + n, now_ms) for n in range(filling.nodes)]
    for number in range(filling.tables):
        numbers = numbers_of(filling, line, number)
        yield list(moulds[number % filling.nodes].stamped(numbers))


def numbers_of(filling: Filling, line: LogHead, number: int) -> dict[bytes, bytes]:
    """Returns the numbers of one table, with which moulds are stamped."""
    table_id, version = FIRST["table_id"] + number, line.version + 1 + number
    numbers = {
        b"name": name_of(number).encode(),
        b"table": b"%d" % table_id,
        b"version": b"%d" % version,
        b"padded": b"%020d" % version,
        b"at": b"%d" % (line.at_ms + 1 + number),
    }
    for region in range(filling.regions):
        numbers[b"region%d" % region] = b"%d" % region_id(TableId(table_id), region)
    return numbers


def mould_of(filling: Filling, number: int, now_ms: int) -> Mould:
    """*number* says on which nodes the regions are."""
    line = LogHead(Compare(b"fence", 1), NO_VERSION - 1, 1, NO_TIME - 1, 1)
    txn = create_txn(filling, number, now_ms)
    (share,) = fill_batch(line, [PendingTxn(txn, None)], now_ms, members_max=1).shares
    writes = (
        one
        for one in share.writes
        if isinstance(one, Put) and (filling.has_log or not one.key.startswith(LOG))
    )
    return Mould.of(writes, places_of(filling, number))


def places_of(filling: Filling, number: int) -> dict[bytes, bytes]:
    """The numbers in a mould of the table *number*, with the names that `numbers_of` has."""
    table_id = FIRST["table_id"] + number
    names = {
        name_of(number).encode(): b"name",
        b"%d" % table_id: b"table",
        b"%d" % NO_VERSION: b"version",
        b"%020d" % NO_VERSION: b"padded",
        b"%d" % NO_TIME: b"at",
    }
    for region in range(filling.regions):
        names[b"%d" % region_id(TableId(table_id), region)] = b"region%d" % region
    return names


def in_parts(tables: Iterable[list[Put]]) -> Iterator[tuple[Put, ...]]:
    """Yields puts for one transaction each: as many whole tables as fit."""
    part: list[Put] = []
    for puts in tables:
        if len(part) + len(puts) > TXN_OPS_MAX:
            yield tuple(part)
            part = []
        part += puts
    yield tuple(part)


@asynccontextmanager
async def leading(kv: Kv, clock: Clock) -> AsyncIterator[tuple[Committer, LogHead]]:
    """The committer of a term, which ends with the context, and the line that it began with."""
    me = ServerIdentity("filler", "http://127.0.0.1:1", "0")
    election = Election(kv, clock, me, ElectionTiming(LEASE_MS, LEASE_MS // 4, DEADLINE_MS))
    session = await election.open_session()
    fence = await win(election, session, clock, lambda _: None)
    first = bootstrap_request(fence, RandomIds(clock).procedure_id(), clock.wall_ms())
    assert (await kv.txn(first, deadline_ms=DEADLINE_MS)).succeeded, "the store is not empty"
    line = await read_log_head(kv, fence, deadline_ms=DEADLINE_MS)
    committer = Committer(kv, clock, line, deadline_ms=DEADLINE_MS)
    async with asyncio.TaskGroup() as tasks:
        work = (tasks.create_task(election.keep_alive(session)), tasks.create_task(committer.run()))
        yield committer, line
        for task in work:
            task.cancel()
    await election.resign(session)


async def _register(committer: Committer, clock: Clock, view: NodeView) -> None:
    key = NodeKey(DATANODE, view.node_id)
    node = NodeRecord(
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


def create_txn(filling: Filling, number: int, now_ms: int) -> Txn:
    """Returns the transaction with which the create of a table ends."""
    views = filling.views
    table_id = FIRST["table_id"] + number
    name = ddl_request.FullTableName(DEFAULT_CATALOG, DEFAULT_SCHEMA, name_of(number))
    made = TableToCreate(name, filling.spec(number))
    placing = placing_of(made.spec, DEFAULT_CATALOG, Catalog())
    info = table_info(made, placing, table_id, now_ms)
    first = number * filling.regions
    chosen = tuple(views[(first + n) % len(views)] for n in range(filling.regions))
    route = table_route(table_id, tuple((view,) for view in chosen))
    keys = TableInfoKey(table_id), TableRouteKey(table_id)
    name_key = TableNameKey(name.catalog, name.schema, name.table)
    read = Snapshot(0, {bytes(key): Read(None, 0) for key in (*keys, name_key)})
    return change(read, TableCreated(info=info, route=route))


def _view(node_id: str) -> NodeView:
    return NodeView(
        node_id=node_id,
        zone="filled",
        root=f"/nowhere/{node_id}",
        alive=True,
        regions=0,
        disk_free_bytes=1 << 40,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("etcd", help="its URL; the store is empty")
    parser.add_argument("--tables", type=int, default=1_000_000)
    parser.add_argument("--regions", type=int, default=1, help="of each of them")
    given = parser.parse_args()
    asyncio.run(fill(given.etcd.removeprefix("http://"), Filling(given.tables, given.regions)))
