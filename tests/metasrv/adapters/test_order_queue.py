"""Orders to one node go as commits do: what waits while one request is out is the next request."""

import asyncio

import pytest

from keys.model.log import TableCreated
from keys.model.tables import RegionState
from metasrv.adapters.http_nodes import HttpNodes
from metasrv.adapters.order_queue import ORDERS_MAX, REQUESTS_AT_ONCE, OrderLane
from metasrv_base.errors import Conflict, MetaError, NotLeader, Refused, Unavailable, Unknown
from metasrv_base.wire.node.orders import (
    CloseRegion,
    CreateRegion,
    DropRegion,
    OpenRegion,
    Order,
    OrderRequest,
    OrderResult,
)
from procedures.steps.region_orders import open_order
from tests.keys.model.copied_routes import COPIED
from tests.metasrv.adapters.order_lines import FIRST, NODE, TERM, NodeBehind, by, create, lines
from tests.metasrv.nodes.catalogs import catalog_of
from tests.metasrv.nodes.leader import registration
from tests.metasrv.nodes.samples import info, route


def opening(place: int) -> OpenRegion:
    return OpenRegion.model_validate(create(place).model_dump(exclude={"op", "replaces"}))


async def outcome(
    nodes: HttpNodes, place: int, *orders: Order
) -> tuple[OrderResult, ...] | MetaError:
    try:
        return await nodes.send(NODE, orders or (create(place),), sender=by(place))
    except MetaError as error:
        return error


Outcomes = list[tuple[OrderResult, ...] | MetaError]


async def one_then_many(nodes: HttpNodes, node: NodeBehind, *rest: Order) -> Outcomes:
    """The first is held by the node until all the *rest* wait, a caller for each."""
    node.gate.clear()
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(outcome(nodes, 0))]
        await node.came.wait()
        asked += [
            tasks.create_task(outcome(nodes, place, order))
            for place, order in enumerate(rest, start=1)
        ]
        await asyncio.wait(asked, timeout=0)  # each has come as far as it can
        node.gate.set()
    return [task.result() for task in asked]


async def test_given_creates_that_wait_when_the_node_answers_then_they_are_one_request() -> None:
    async with lines() as (nodes, node):
        node.syncs.clear()

        told = await one_then_many(nodes, node, *(create(place) for place in range(1, 100)))

    assert node.sizes() == [1, 99]
    assert [result.region_id for one in told for result in one] == [  # type: ignore[union-attr]
        str(FIRST + place) for place in range(100)
    ]
    assert node.syncs.count("sync") == 2, "one for the answers of each request"


async def test_given_merged_orders_when_sent_then_each_has_its_sender_lease_and_number() -> None:
    async with lines() as (nodes, node):
        await one_then_many(nodes, node, *(create(place) for place in range(1, 20)))

    orders = [order for request in node.requests for order in request.orders]
    numbers = [order.number for order in orders]
    assert numbers == sorted(set(numbers))
    assert {request.term for request in node.requests} == {TERM}
    for place, order in enumerate(orders):
        assert isinstance(order, CreateRegion)
        assert order.sender is not None
        assert (order.sender.procedure, order.sender.step) == (f"p-{place}", "create")
        assert order.lease is not None
    assert sorted(node.regions.renewed) == numbers


@pytest.mark.parametrize(
    ("state", "epoch", "is_leased"),
    [(RegionState.OPENING, 2, False), (RegionState.OPEN, 2, True), (RegionState.OPEN, 1, False)],
)
async def test_given_a_region_of_a_table_when_created_then_leased_only_as_it_was_announced(
    state: RegionState, epoch: int, is_leased: bool
) -> None:
    begun = route(NODE, state=state, epoch=epoch)
    async with lines(catalog_of(TableCreated(info=info(), route=begun))) as (nodes, node):
        await outcome(nodes, 0, create(0).model_copy(update={"epoch": 2}))

    (order,) = node.requests[0].orders
    assert isinstance(order, CreateRegion)
    assert (order.lease is not None) == is_leased


async def test_given_an_order_that_fails_when_merged_then_only_its_caller_hears_of_it() -> None:
    async with lines() as (nodes, node):
        drop = DropRegion(number=0, region_id=str(FIRST + 3), epoch=1, root="/r/3")
        await outcome(nodes, 3, drop)
        node.came.clear()

        told = await one_then_many(nodes, node, *(create(place) for place in range(1, 6)))

    errors = [one[0].error.code if one[0].error else None for one in told]  # type: ignore[index]
    assert errors == [None, None, None, "action-not-allowed", None, None]
    assert node.sizes() == [1, 1, 5]


async def test_given_one_that_spoils_a_request_when_refused_then_the_others_are_done() -> None:
    def spoilt(request: OrderRequest) -> MetaError | None:
        bad = any(order.region_id == str(FIRST + 2) for order in request.orders)
        return Refused("invalid-request") if bad else None

    async with lines() as (nodes, node):
        node.refuses = spoilt

        told = await one_then_many(nodes, node, *(create(place) for place in range(1, 4)))

    assert [isinstance(one, tuple) for one in told] == [True, True, False, True]
    assert isinstance(told[2], Refused)
    assert node.sizes() == [1, 3, 1, 1, 1]


async def test_given_a_lost_answer_when_merged_then_all_are_unknown_and_may_repeat() -> None:
    async with lines() as (nodes, node):
        node.loses = lambda request: len(request.orders) > 1

        told = await one_then_many(nodes, node, create(1), create(2))
        node.loses = lambda _: False
        again = [await outcome(nodes, place) for place in (1, 2)]

    assert isinstance(told[0], tuple)
    assert [type(one) for one in told[1:]] == [Unknown, Unknown]
    assert all(one[0].error is None for one in again)  # type: ignore[index]


async def test_given_a_newer_term_when_merged_then_all_members_hear_that_they_are_deposed() -> None:
    async with lines() as (nodes, node):
        await node.desk.hear_term(TERM + 1)

        told = await one_then_many(nodes, node, create(1), create(2))

    assert [(type(one), getattr(one, "code", "")) for one in told] == [
        (Conflict, "stale-epoch")
    ] * 3
    assert node.regions.done == []


async def test_given_a_caller_that_has_gone_when_its_turn_comes_then_its_orders_are_not_sent() -> (
    None
):
    async with lines() as (nodes, node):
        node.gate.clear()
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(outcome(nodes, 0))
            await node.came.wait()
            gone = tasks.create_task(outcome(nodes, 1))
            stays = tasks.create_task(outcome(nodes, 2))
            await asyncio.wait([first, gone, stays], timeout=0)
            gone.cancel()
            await asyncio.wait([gone])
            node.gate.set()

    assert [order.region_id for order in node.requests[1].orders] == [str(FIRST + 2)]


async def test_given_a_region_that_opens_slowly_when_another_is_created_then_it_does_not_wait() -> (
    None
):
    async with lines() as (nodes, node):
        node.gate.clear()
        async with asyncio.TaskGroup() as tasks:
            for place in range(REQUESTS_AT_ONCE[OrderLane.SLOW]):
                node.came.clear()
                tasks.create_task(outcome(nodes, place, opening(place)))
                await node.came.wait()
            late = [tasks.create_task(outcome(nodes, at, opening(at))) for at in (50, 51)]
            await asyncio.wait(late, timeout=0)
            node.came.clear()
            quick = tasks.create_task(outcome(nodes, 99, create(99)))
            await node.came.wait()
            assert node.requests[-1].orders[0].region_id == str(FIRST + 99)
            node.gate.set()

    assert isinstance(quick.result(), tuple)
    assert node.sizes() == [1, 1, 1, 1, 1, 2]


async def test_given_more_orders_than_a_request_takes_when_sent_then_in_several() -> None:
    async with lines() as (nodes, node):
        half = [
            CloseRegion(number=0, region_id=str(FIRST + place), epoch=1)
            for place in range(ORDERS_MAX // 2)
        ]
        node.gate.clear()
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(outcome(nodes, 0, *half)) for _ in range(4)]
            await node.came.wait()
            await asyncio.wait(asked, timeout=0)
            node.gate.set()

    assert node.sizes() == [ORDERS_MAX, ORDERS_MAX]


async def test_given_the_end_of_the_term_when_orders_wait_then_they_were_not_sent() -> None:
    async with lines() as (nodes, node):
        node.gate.clear()
        async with asyncio.TaskGroup() as tasks:
            out = tasks.create_task(outcome(nodes, 0))
            await node.came.wait()
            waits = tasks.create_task(outcome(nodes, 1))
            await asyncio.wait([out, waits], timeout=0)
            ended = next(task for task in asyncio.all_tasks() if "HttpNodes.run" in repr(task))
            ended.cancel()

        later = await outcome(nodes, 2)

    assert isinstance(out.result(), Unknown)
    assert isinstance(waits.result(), NotLeader)
    assert isinstance(later, NotLeader)
    assert len(node.requests) == 1


async def test_given_a_node_that_was_not_heard_when_a_region_is_made_then_it_is_not_asked() -> None:
    async with lines() as (nodes, node):
        await nodes.book.register(registration("dn-2"))

        with pytest.raises(Unavailable):
            await nodes.send("dn-2", [create(1)], sender=by(1))

    assert node.requests == []


async def test_given_an_order_that_names_copies_when_sent_then_the_node_has_their_addresses() -> (
    None
):
    order = open_order(info(), COPIED)
    async with lines() as (nodes, node):
        await nodes.send(NODE, (order,), sender=by(0))

    (sent,) = (order for request in node.requests for order in request.orders)
    assert isinstance(sent, OpenRegion)
    assert sent.copies is not None
    told = {copy.node: copy.address for copy in sent.copies.members}
    assert told == {"dn-1": "http://dn-1", "dn-2": None, "dn-3": None}
