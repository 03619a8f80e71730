"""Orders of procedures to one node, and the lines that carry them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import orjson

from dataplane.datanode.orders.journal import open_journal
from dataplane.datanode.orders.journal_format import Joined
from dataplane.datanode.orders.orders import OrderExecutor
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from keys.catalog.catalog import Catalog
from metasrv.adapters.http_nodes import HttpNodes
from metasrv_base.errors import MetaError
from metasrv_base.wire.node.orders import (
    CreateRegion,
    OrderRequest,
)
from metasrv_base.wire.problem.problems import problem_of
from procedures.ports import Sender
from tests.dataplane.datanode.orders.fake_regions import FakeRegions
from tests.metasrv.nodes.leader import CLUSTER, beat, office, registration

NODE = "dn-1"


TERM = 7


FIRST = 1024 << 32


class NodeBehind(httpx.AsyncBaseTransport):
    """The order desk of a real node; a test holds its answers, or spoils them."""

    def __init__(self) -> None:
        self.syncs: list[str] = []
        self.requests: list[OrderRequest] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.came = asyncio.Event()
        self.refuses: Callable[[OrderRequest], MetaError | None] = lambda _: None
        self.loses: Callable[[OrderRequest], bool] = lambda _: False
        store = MemoryStore()
        note = lambda operation, path: self.syncs.append(operation)  # noqa: E731 - a hook
        self.journal = open_journal(MemoryDisk(store, note), "/n", NODE)
        self.regions = FakeRegions(store)
        self.desk = OrderExecutor(self.journal, self.regions)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        orders = OrderRequest.model_validate_json(await request.aread())
        self.requests.append(orders)
        self.came.set()
        await self.gate.wait()
        try:
            if (refusal := self.refuses(orders)) is not None:
                raise refusal
            answer = await self.desk.execute(orders)
        except MetaError as error:
            status, headers, body = problem_of(error, request.url.path, "r")
            return httpx.Response(status, headers=headers, content=orjson.dumps(body))
        if self.loses(orders):
            raise httpx.ReadError("the connection broke")
        return httpx.Response(200, content=answer.model_dump_json())

    def sizes(self) -> list[int]:
        return [len(request.orders) for request in self.requests]


@asynccontextmanager
async def lines(catalog: Catalog | None = None) -> AsyncIterator[tuple[HttpNodes, NodeBehind]]:
    """*catalog*: what the leader has applied; None: of an empty cluster."""
    async with office() as at, asyncio.TaskGroup() as tasks:
        await at.book.register(registration(NODE))
        at.book.heartbeat(beat(1))
        node = NodeBehind()
        await node.journal.commit([Joined(cluster_id=CLUSTER)])
        await node.desk.hear_term(TERM)
        nodes = HttpNodes(CLUSTER, TERM, at.book, lambda: catalog or at.follower.catalog, node)
        sending = tasks.create_task(nodes.run())
        try:
            yield nodes, node
        finally:
            sending.cancel()
            await nodes.close()


def create(place: int) -> CreateRegion:
    return CreateRegion(
        number=0,
        region_id=str(FIRST + place),
        epoch=1,
        root=f"/r/{place}",
        table_id=1024,
        schema_version=1,
        schema_floor=1,
        columns=[],
        key_columns=[],
    )


def by(place: int) -> Sender:
    return Sender(f"p-{place}", "create")
