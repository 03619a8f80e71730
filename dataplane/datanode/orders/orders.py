"""Orders of metasrv, executed once each: durable before answered, many regions at a time."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

import structlog

from dataplane.datanode.orders.journal import NodeJournal
from dataplane.datanode.orders.journal_format import TermSeen
from dataplane.datanode.orders.order_rules import (
    AnswerAgain,
    Execute,
    Outcome,
    admit,
    decide,
    executed,
    must_be_for,
    result_of,
)
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.node.orders import Order, OrderRequest, OrderResponse, OrderResult

log = structlog.get_logger()

ORDERS_AT_ONCE_MAX = 8
"""Regions opened or closed at the same time: each takes a thread and memory for its log."""


class RegionActions(Protocol):
    """The effects of orders on regions. Each is idempotent and raises one of the five errors."""

    async def carry_out(self, order: Order) -> int | None:
        """The row version at which a floor took hold, if the order raises one."""
        ...

    def renew_by(self, order: Order) -> None:
        """Take the lease that came with a create or open order."""
        ...

    def make_way(self, order: Order) -> None:
        """End the wait of another order for the region, if it is over by *order*."""
        ...


class OrderExecutor:
    """The one place where orders are taken, from requests and from heartbeat answers alike."""

    def __init__(self, journal: NodeJournal, regions: RegionActions) -> None:
        self._journal = journal
        self._regions = regions
        self._term_seen = journal.state.term
        self._locks: dict[int, asyncio.Lock] = {}
        self._places = asyncio.Semaphore(ORDERS_AT_ONCE_MAX)
        self._is_held = False

    @property
    def term(self) -> int:
        """The highest term that a metasrv server has told this node."""
        return self._term_seen

    async def hear_term(self, term: int) -> None:
        """A registration or heartbeat answer named this term: it is durable when this returns."""
        self._term_seen = max(self._term_seen, term)
        if term > self._journal.state.term:
            await self._journal.commit([TermSeen(term=term)])

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """No order is executed in the block: those under way have ended, others are refused. Behind
        it the term is the journal's, which an adoption begins anew."""
        self._is_held = True
        try:
            for lock in list(self._locks.values()):
                async with lock:
                    pass
            yield
        finally:
            self._is_held = False
            self._term_seen = self._journal.state.term

    def is_in_doubt(self, request: OrderRequest) -> bool:
        """Whether the request is for this node, and claims a term that it was not told.

        Raises as `must_be_for`.
        """
        must_be_for(self._journal.state, request)
        return request.term > self._term_seen

    async def execute(self, request: OrderRequest) -> OrderResponse:
        """Raises what `admit` raises; a failure of one order stands in its result."""
        self._admit(request)
        self.make_way(request.term, request.orders)
        by_region: dict[int, list[Order]] = {}
        for order in request.orders:
            by_region.setdefault(int(order.region_id), []).append(order)
        async with AsyncExitStack() as held:
            for count, (region, orders) in enumerate(sorted(by_region.items())):
                if count:  # another order may have come while this one waited for a region
                    self.make_way(request.term, orders)
                await held.enter_async_context(self._locks.setdefault(region, asyncio.Lock()))
            self._admit(request)
            by_place: dict[int, OrderResult] = {}
            for wave in waves(request.orders):
                results = await self._execute_wave(request, list(wave.values()))
                by_place.update(zip(wave, results, strict=True))
        return OrderResponse(results=[by_place[number] for number in range(len(request.orders))])

    def make_way(self, term: int, orders: Iterable[Order]) -> None:
        """An order that waits for copies must not keep one waiting that ends this: it names other
        copies, or closes the region. *orders*: of a leader that is heard, of that term."""
        for order in orders:
            lock = self._locks.get(int(order.region_id))
            if lock is None or not lock.locked():
                continue
            if isinstance(decide(self._journal.state, term, order), Execute):
                self._regions.make_way(order)

    def _admit(self, request: OrderRequest) -> None:
        if self._is_held:
            raise Unavailable("not-ready", what="the node, which is being adopted,")
        admit(self._journal.state, self._term_seen, request)

    async def _execute_wave(
        self, request: OrderRequest, orders: Sequence[Order]
    ) -> list[OrderResult]:
        """One sync before the first effect if something must precede it, one after the last."""
        term = request.term
        decided = [decide(self._journal.state, term, order) for order in orders]
        ahead = [record for step in decided if isinstance(step, Execute) for record in step.before]
        await self._journal.commit(dict.fromkeys(ahead))
        outcomes = await asyncio.gather(
            *(self._carry_out(step, order) for step, order in zip(decided, orders, strict=True))
        )
        pairs = list(zip(decided, orders, outcomes, strict=True))
        stored = [
            executed(term, order, outcome)
            for step, order, outcome in pairs
            if isinstance(step, Execute)
        ]
        await self._journal.commit(record for record in stored if record is not None)
        for step, order, outcome in pairs:
            if isinstance(step, Execute):
                _log_outcome(request, order, outcome)
        return [
            step.result if isinstance(step, AnswerAgain) else result_of(order, outcome)
            for step, order, outcome in pairs
        ]

    async def _carry_out(self, step: Execute | AnswerAgain, order: Order) -> Outcome:
        if isinstance(step, AnswerAgain):
            self._regions.renew_by(order)
            return None
        async with self._places:
            try:
                floor = await self._regions.carry_out(order)
            except MetaError as error:
                return error
            self._regions.renew_by(order)
            return floor


def waves(orders: Sequence[Order]) -> list[dict[int, Order]]:
    """Orders by their place in the request, at most one per region in each wave, in order."""
    groups: list[dict[int, Order]] = []
    counts: dict[str, int] = {}
    for number, order in enumerate(orders):
        wave = counts[order.region_id] = counts.get(order.region_id, -1) + 1
        if wave == len(groups):
            groups.append({})
        groups[wave][number] = order
    return groups


def _log_outcome(request: OrderRequest, order: Order, outcome: Outcome) -> None:
    facts = {
        "op": order.op,
        "region_id": order.region_id,
        "epoch": order.epoch,
        "term": request.term,
        "number": order.number,
        "procedure": order.sender.procedure if order.sender else None,
        "step": order.sender.step if order.sender else None,
    }
    if isinstance(outcome, MetaError):
        log.warning("order_failed", code=outcome.code, facts=outcome.facts, **facts)
    else:
        log.info("order_executed", **facts)
