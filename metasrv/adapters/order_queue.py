"""The line to one node: what waits when a request is answered goes together in the next.

Orders are merged as commits are. Nobody waits for company, and each member hears of its own orders
alone. Pure: who sends, and when, is the adapter's (http_nodes.py).
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from metasrv_base.errors import MetaError, Unavailable, Unknown
from metasrv_base.wire.node.orders import Order, OrderResult, OrderSender

ORDERS_MAX = 1_024  # of one request: what a node can carry out well within its deadline
WAITING_MAX = 4_096  # members in one line: more than all running procedures can hold at once


class OrderLane(StrEnum):
    """A node has a line for each, so that a create does not wait for the replay of a log."""

    QUICK = "quick"
    SLOW = "slow"


REQUESTS_AT_ONCE = {OrderLane.QUICK: 1, OrderLane.SLOW: 4}
"""The most requests in flight to one node. Slow orders go beside each other: one may take until its
deadline."""
_SLOW = frozenset({"open", "adopt", "delete-quarantined", "discard", "drop", "hand-over"})
"""Orders that may read, write or delete many files, or wait for a copy."""


def lane_of(orders: Iterable[Order]) -> OrderLane:
    return OrderLane.SLOW if any(order.op in _SLOW for order in orders) else OrderLane.QUICK


@dataclass(eq=False, slots=True)
class QueuedOrders:
    """One caller's orders, and where it waits for their results."""

    orders: Sequence[Order]
    sender: OrderSender
    answer: "asyncio.Future[tuple[OrderResult, ...]]"
    goes_alone: bool = False
    """Whether a request that it was a member of was refused as a whole."""

    def fail(self, error: MetaError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)

    def succeed(self, results: Sequence[OrderResult]) -> None:
        if not self.answer.done():
            self.answer.set_result(tuple(results))


@dataclass(eq=False, slots=True)
class OrderQueue:
    node: str
    lane: OrderLane
    in_flight: int = 0
    _waiting: deque[QueuedOrders] = field(default_factory=deque)

    @property
    def is_due(self) -> bool:
        return bool(self._waiting) and self.in_flight < REQUESTS_AT_ONCE[self.lane]

    def put(self, member: QueuedOrders) -> None:
        """Raises Unavailable when too many wait."""
        if len(self._waiting) >= WAITING_MAX:
            raise Unavailable(what="node", name=self.node, reason="too many orders wait for it")
        self._waiting.append(member)

    def put_back(self, members: Sequence[QueuedOrders]) -> None:
        """Puts orders back at the head, in their order, each to be sent by itself."""
        for member in reversed(members):
            member.goes_alone = True
            self._waiting.appendleft(member)

    def take(self) -> list[QueuedOrders]:
        """The next request's members, without those whose callers have gone."""
        queued: list[QueuedOrders] = []
        orders = 0
        while self._waiting:
            first = self._waiting[0]
            orders += len(first.orders)
            if queued and (orders > ORDERS_MAX or first.goes_alone or queued[0].goes_alone):
                break
            self._waiting.popleft()
            if first.answer.done():
                orders -= len(first.orders)
            else:
                queued.append(first)
        return queued

    def fail_waiting(self, error: MetaError) -> None:
        while self._waiting:
            self._waiting.popleft().fail(error)


def tell(
    members: Sequence[QueuedOrders], numbers: Sequence[int], results: Sequence[OrderResult]
) -> None:
    """Hands each member the results of its own orders.

    Raises Unknown if these are not the answers to the orders numbered *numbers*.
    """
    if [result.number for result in results] != list(numbers):
        raise Unknown("outcome-unknown", reason="the node answered other orders")
    first = 0
    for member in members:
        member.succeed(results[first : first + len(member.orders)])
        first += len(member.orders)
