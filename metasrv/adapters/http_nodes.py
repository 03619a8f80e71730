"""The Nodes port over HTTP: numbers each order, adds the lease it may carry, sends one request."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from base.errors import Unavailable
from base.wire.client import HttpClient
from base.wire.inputs import Borrowed
from base.wire.orders import (
    CreateRegion,
    LeaseGrant,
    OpenRegion,
    Order,
    OrderRequest,
    OrderResponse,
    OrderResult,
)
from keys.catalog import Catalog
from keys.tables import RegionState
from metasrv.nodes.book import NodeBook
from procedures.ports import Sender

ORDER_DEADLINE_MS = 30_000  # opening replays a log; what takes longer is tried again, and goes on
READ_DEADLINE_MS = 10_000


@dataclass(slots=True)
class HttpNodes:
    """One term's voice to the nodes."""

    cluster_id: str
    term: int
    book: NodeBook
    catalog: Callable[[], Catalog]
    _clients: dict[str, HttpClient] = field(default_factory=dict)
    """By address."""

    async def send(
        self, node: str, orders: Sequence[Order], *, sender: Sender
    ) -> tuple[OrderResult, ...]:
        entry = self.book.entry(node)
        if any(isinstance(order, CreateRegion) for order in orders) and entry.sequence < 0:
            raise Unavailable(what="node", name=node, reason="not heard by this leader yet")
        request = OrderRequest(
            cluster_id=self.cluster_id,
            node_id=node,
            term=self.term,
            procedure=sender.procedure,
            step=sender.step,
            orders=[self._completed(node, order) for order in orders],
        )
        answer = await self._client(entry.node.address).request(
            "POST",
            "/node/v1/orders",
            deadline_ms=ORDER_DEADLINE_MS,
            json=request.model_dump(mode="json"),
            repeatable=True,
        )
        return tuple(answer.body(OrderResponse).results)

    async def borrowed(self, node: str, region_id: str) -> Borrowed:
        client = self._client(self.book.entry(node).node.address)
        path = f"/node/v1/regions/{region_id}/borrowed"
        answer = await client.request("GET", path, deadline_ms=READ_DEADLINE_MS)
        return answer.body(Borrowed)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    def _completed(self, node: str, order: Order) -> Order:
        update: Mapping[str, object] = {"number": self.book.next_order()}
        if self._may_be_leased(node, order):
            update = {**update, "lease": self._grant(node, order.region_id)}
        return order.model_copy(update=dict(update))

    def _may_be_leased(self, node: str, order: Order) -> bool:
        """A new region can have no other holder; any other must be open here by the catalog."""
        if isinstance(order, CreateRegion):
            return True
        if not isinstance(order, OpenRegion):
            return False
        table = self.catalog().tables.get(order.table_id)
        return table is not None and any(
            region.region_id == order.region_id
            and (region.leader, region.epoch) == (node, order.epoch)
            and region.state is RegionState.OPEN
            for region in table.route.region_routes
        )

    def _grant(self, node: str, region_id: str) -> LeaseGrant | None:
        """As if it had stood in the answer to the last heartbeat; None if there was none yet."""
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
            self._clients[address] = HttpClient([address])
        return self._clients[address]
