"""The Nodes port over HTTP: merges what waits for a node, numbers each order, adds its lease."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlencode

import httpx

from keys.catalog.catalog import Catalog
from keys.model.tables import RegionState
from metasrv.adapters.in_flight import NodeGoneError, RequestsInFlight
from metasrv.adapters.order_queue import OrderLane, OrderQueue, QueuedOrders, lane_of, tell
from metasrv.nodes.copy_addresses import with_addresses
from metasrv.nodes.node_liveness import NodeLiveness
from metasrv_base.errors import MetaError, NotFound, NotLeader, Refused, Unavailable, Unknown
from metasrv_base.token import OwnToken
from metasrv_base.wire.http.client import HttpAnswer, HttpClient
from metasrv_base.wire.node.adoption import Inventory
from metasrv_base.wire.node.copy_sessions import FetchBody, FetchingRegion
from metasrv_base.wire.node.inputs import Borrowed, Snapshot
from metasrv_base.wire.node.orders import (
    CreateRegion,
    LeaseGrant,
    OpenRegion,
    Order,
    OrderRequest,
    OrderResponse,
    OrderResult,
    OrderSender,
    ServingOrder,
)
from procedures.ports import Sender

ORDER_DEADLINE_MS = 30_000  # opening replays a log; what takes longer is tried again, and goes on
READ_DEADLINE_MS = 10_000


@dataclass(slots=True)
class HttpNodes:
    """One term's voice to the nodes. `run` sends; `send` is what everybody else calls."""

    cluster_id: str
    term: int
    book: NodeLiveness
    catalog: Callable[[], Catalog]
    transport: httpx.AsyncBaseTransport | None = None
    """The transport of requests; None for the network."""
    _lines: dict[tuple[str, OrderLane], OrderQueue] = field(default_factory=dict)
    _due: asyncio.Queue[OrderQueue] = field(default_factory=asyncio.Queue)
    """No longer than the callers that wait."""
    _ended: bool = False
    token: OwnToken | str | None = None
    """The token that this server shows to nodes."""
    named_by: Sequence[str] = ()
    """This server's own URL. A server that is reached by TLS shows its token only to nodes with
    TLS."""
    _clients: dict[str, HttpClient] = field(default_factory=dict)
    """Clients by address."""
    _in_flight: RequestsInFlight = field(init=False)

    def __post_init__(self) -> None:
        self._in_flight = RequestsInFlight(self.book)

    async def send(
        self, node: str, orders: Sequence[Order], *, sender: Sender
    ) -> tuple[OrderResult, ...]:
        entry = self.book.entry(node)
        if any(isinstance(order, CreateRegion) for order in orders) and entry.sequence < 0:
            raise Unavailable(what="node", name=node, reason="not heard by this leader yet")
        if self._ended:
            raise NotLeader(term=self.term)
        answer: asyncio.Future[tuple[OrderResult, ...]] = asyncio.get_running_loop().create_future()
        by = OrderSender(procedure=sender.procedure, step=sender.step)
        line = self._line(node, lane_of(orders))
        line.put(QueuedOrders(orders, by, answer))
        self._look_at(line)
        return await answer

    async def run(self) -> None:
        """Sends orders until the term's task group ends. Orders that then wait were not sent."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._in_flight.watch())
                while True:
                    line = await self._due.get()
                    if line.is_due:
                        line.in_flight += 1
                        tasks.create_task(self._send_next(line))
        finally:
            self._ended = True
            for line in self._lines.values():
                line.fail_waiting(NotLeader(term=self.term))

    def _line(self, node: str, lane: OrderLane) -> OrderQueue:
        return self._lines.setdefault((node, lane), OrderQueue(node, lane))

    def _look_at(self, line: OrderQueue) -> None:
        if line.is_due:
            self._due.put_nowait(line)

    async def _send_next(self, line: OrderQueue) -> None:
        """One request, and what its members are told: each its own results, or all one error."""
        members, sent_ms = line.take(), self.book.clock.mono_ms()
        failure: MetaError = Unknown(term=self.term)  # what they hear if the term ends meanwhile
        try:
            if members:
                await self._post(line.node, members)
                self._note(line.node, sent_ms, None)
        except Refused as error:
            failure = error
            self._note(line.node, sent_ms, error)
            if len(members) > 1:
                # Nothing was done, and one may have spoiled it for all: each by itself then.
                line.put_back(members)
                members = []
        except MetaError as error:
            failure = error
            self._note(line.node, sent_ms, error)
        finally:
            for member in members:
                member.fail(failure)
            line.in_flight -= 1
            self._look_at(line)

    def _note(self, node: str, sent_ms: int, error: MetaError | None) -> None:
        """Notes whether a node has answered. One that answers that it is not ready takes no orders
        either; of one that was removed meanwhile, or is gone, there is nothing to note."""
        if isinstance(error, NodeGoneError):
            return
        with suppress(NotFound):
            entry = self.book.entry(node)
            if isinstance(error, Unavailable | Unknown):
                entry.has_not_answered(sent_ms, self.book.clock.mono_ms())
            else:
                entry.has_answered()

    async def _post(self, node: str, members: Sequence[QueuedOrders]) -> None:
        orders = [
            self._completed(node, order, member.sender)
            for member in members
            for order in member.orders
        ]
        request = OrderRequest(
            cluster_id=self.cluster_id, node_id=node, term=self.term, orders=orders
        )
        async with self._in_flight.to(node):
            answer = await self._client(self.book.entry(node).node.address).request(
                "POST",
                "/node/v1/orders",
                deadline_ms=ORDER_DEADLINE_MS,
                json=request,
                repeatable=True,
            )
        tell(members, [order.number for order in orders], answer.body(OrderResponse).results)

    async def borrowed(self, node: str, region_id: str) -> Borrowed:
        answer = await self._read(node, f"/node/v1/regions/{region_id}/borrowed")
        return answer.body(Borrowed)

    async def snapshot(
        self, node: str, region_id: str, mark: str, *, whole: bool = False
    ) -> Snapshot:
        query = urlencode({"mark": mark} | ({"all": "true"} if whole else {}))
        path = f"/node/v1/regions/{region_id}/snapshot?{query}"
        answer = await self._read(node, path, ORDER_DEADLINE_MS)
        return answer.body(Snapshot)

    async def fetched(self, node: str, region_id: str) -> FetchBody | None:
        answer = await self._read(node, f"/node/v1/regions/{region_id}")
        return answer.body(FetchingRegion).fetch

    async def inventory(self, node: str, region_id: int) -> Inventory:
        query = urlencode({"first": str(region_id), "last": str(region_id)})
        answer = await self._read(node, f"/node/v1/inventory?{query}")
        return answer.body(Inventory)

    async def _read(self, node: str, path: str, deadline_ms: int = READ_DEADLINE_MS) -> HttpAnswer:
        async with self._in_flight.to(node):
            client = self._client(self.book.entry(node).node.address)
            return await client.request("GET", path, deadline_ms=deadline_ms)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    def _completed(self, node: str, order: Order, sender: OrderSender) -> Order:
        update: Mapping[str, object] = {"number": self.book.next_order(), "sender": sender}
        if self._may_be_leased(node, order):
            update = {**update, "lease": self._grant(node, order.region_id)}
        if isinstance(order, ServingOrder) and order.copies is not None:
            update = {**update, "copies": with_addresses(order.copies, self.book.address_of)}
        return order.model_copy(update=dict(update))

    def _may_be_leased(self, node: str, order: Order) -> bool:
        """A region of a new table can have no other holder; any other must be open here by the
        catalog: whoever is written to before it was announced could be passed over."""
        if not isinstance(order, CreateRegion | OpenRegion):
            return False
        table = self.catalog().tables.get(order.table_id)
        if table is None and isinstance(order, CreateRegion):
            return True
        return (
            table is not None
            and table.dropped_at_ms is None
            and any(
                region.region_id == order.region_id
                and (region.leader, region.epoch) == (node, order.epoch)
                and region.state is RegionState.OPEN
                for region in table.route.region_routes
            )
        )

    def _grant(self, node: str, region_id: str) -> LeaseGrant | None:
        """The lease that goes with an order, as if it stood in the answer to the last heartbeat;
        None if there was no heartbeat yet."""
        entry = self.book.entry(node)
        if entry.sequence < 0:
            return None
        self.book.leases.granted(node, [region_id], self.book.clock.mono_ms())
        return LeaseGrant(
            incarnation=entry.node.incarnation,
            heartbeat=entry.sequence,
            lease_ms=self.book.timing.lease_ms,
        )

    def _client(self, address: str) -> HttpClient:
        if address not in self._clients:
            self._clients[address] = HttpClient(
                [address], transport=self.transport, token=self.token, named_by=self.named_by
            )
        return self._clients[address]
