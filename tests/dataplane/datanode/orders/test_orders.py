"""The order desk: once each, in order, durable before answered; pure rules and a real journal."""

import asyncio
from dataclasses import dataclass

import pytest

from dataplane.datanode.orders.journal import NodeJournal, open_journal
from dataplane.datanode.orders.journal_format import Joined
from dataplane.datanode.orders.orders import OrderExecutor, waves
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from metasrv_base.errors import Conflict, MetaError, Unavailable
from metasrv_base.wire.node.orders import CloseRegion, DropRegion, Order, OrderRequest
from tests.dataplane.datanode.orders.fake_regions import FakeRegions, journal_bytes, told_of_term

REGION = 1024 << 32


@dataclass
class Bench:
    store: MemoryStore
    journal: NodeJournal
    regions: FakeRegions
    desk: OrderExecutor


@pytest.fixture
async def bench() -> Bench:
    store = MemoryStore()
    journal = open_journal(MemoryDisk(store), "/n", "dn-1")
    await journal.commit([Joined(cluster_id="c")])
    regions = FakeRegions(store)
    return Bench(store, journal, regions, await told_of_term(OrderExecutor(journal, regions)))


def close(number: int, region: int = REGION) -> CloseRegion:
    return CloseRegion(number=number, region_id=str(region), epoch=1)


def drop(number: int) -> DropRegion:
    return DropRegion(number=number, region_id=str(REGION), epoch=1, root="/r")


def request(*orders: Order, term: int = 1) -> OrderRequest:
    return OrderRequest(cluster_id="c", node_id="dn-1", term=term, orders=list(orders))


async def test_given_a_repeat_when_executed_then_it_is_done_once(bench: Bench) -> None:
    first = await bench.desk.execute(request(close(1)))
    again = await bench.desk.execute(request(close(1)))

    assert first == again
    assert bench.regions.done == [(1, "close")]
    assert bench.regions.renewed == [1, 1]


async def test_given_a_restart_when_an_order_is_repeated_then_the_stored_answer(
    bench: Bench,
) -> None:
    bench.regions.fails_with = Conflict("stale-epoch", epoch=3, found=2)
    first = await bench.desk.execute(request(close(1)))

    bench.store.crash()
    regions = FakeRegions(bench.store)
    desk = OrderExecutor(open_journal(MemoryDisk(bench.store), "/n", "dn-1"), regions)
    again = await desk.execute(request(close(1)))

    assert again == first
    assert regions.done == []


async def test_given_a_failure_that_may_pass_when_repeated_then_it_is_tried_again(
    bench: Bench,
) -> None:
    bench.regions.fails_with = Unavailable("region-lost")
    failed = await bench.desk.execute(request(close(1)))
    bench.regions.fails_with = None

    healed = await bench.desk.execute(request(close(1)))

    assert failed.results[0].error is not None
    assert healed.results[0].error is None


async def test_given_an_order_below_the_last_when_executed_then_it_was_perhaps_done(
    bench: Bench,
) -> None:
    await bench.desk.execute(request(close(5)))

    late = await bench.desk.execute(request(close(4)))
    other_region = await bench.desk.execute(request(close(4, REGION + 1)))

    assert late.results[0].error is not None
    assert late.results[0].error.code == "outcome-unknown"
    assert bench.regions.done == [(5, "close"), (4, "close")]
    assert other_region.results[0].error is None


async def test_given_a_new_term_when_numbers_begin_again_then_they_are_taken(
    bench: Bench,
) -> None:
    await bench.desk.execute(request(close(5)))

    await bench.desk.hear_term(2)
    answer = await bench.desk.execute(request(close(1), term=2))

    assert answer.results[0].error is None
    with pytest.raises(Conflict):
        await bench.desk.execute(request(close(9), term=1))


async def test_given_a_term_heard_in_a_heartbeat_when_a_lower_one_orders_then_refused(
    bench: Bench,
) -> None:
    await bench.desk.hear_term(4)

    with pytest.raises(Conflict) as refused:
        await bench.desk.execute(request(close(1), term=3))

    assert refused.value.facts["current_term"] == 4
    assert b'"term":4' in journal_bytes(bench.store)


async def test_given_a_drop_when_its_folder_is_deleted_then_the_tombstone_is_on_disk(
    bench: Bench,
) -> None:
    await bench.desk.execute(request(drop(1)))

    assert b'"dropped"' in bench.regions.durable[0]
    assert b'"term":1' in bench.regions.durable[0]


async def test_given_orders_of_one_region_when_executed_then_in_their_order(
    bench: Bench,
) -> None:
    answer = await bench.desk.execute(request(close(1), close(1, REGION + 1), drop(2)))

    assert [result.number for result in answer.results] == [1, 1, 2]
    assert bench.regions.done[-1] == (2, "drop")


async def test_given_an_order_that_waits_when_a_higher_term_comes_then_it_is_not_done(
    bench: Bench,
) -> None:
    bench.regions.held = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(bench.desk.execute(request(close(1))))
        old = group.create_task(refusal_of(bench.desk, request(close(2))))
        await asyncio.wait([first, old], timeout=0)  # both have come as far as they can
        await bench.desk.hear_term(2)

        bench.regions.held.set()

    assert (await old).code == "stale-epoch"
    assert bench.regions.done == [(1, "close")]


async def test_given_an_order_that_waits_when_others_come_then_the_regions_hear_of_what_is_due(
    bench: Bench,
) -> None:
    """One that closes the region ends the wait of the first; a late one does not."""
    await bench.desk.execute(request(close(2)))
    bench.regions.held = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        waiting = [
            group.create_task(bench.desk.execute(request(close(number)))) for number in (3, 1, 4)
        ]
        await asyncio.wait(waiting, timeout=0)  # all have come as far as they can
        heard = list(bench.regions.made_way)
        bench.regions.held.set()

    assert heard == [4]


async def test_given_a_request_that_waits_when_another_is_before_it_then_its_region_hears_again(
    bench: Bench,
) -> None:
    """A request for two regions waits for the first, while another begins to wait in the second."""
    bench.regions.held = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(bench.desk.execute(request(close(1))))
        await asyncio.wait([first], timeout=0)
        both = group.create_task(bench.desk.execute(request(close(2), close(2, REGION + 1))))
        await asyncio.wait([both], timeout=0)
        second = group.create_task(bench.desk.execute(request(close(1, REGION + 1))))
        await asyncio.wait([second], timeout=0)
        bench.regions.made_way.clear()
        bench.regions.held.set()
        bench.regions.held = asyncio.Event()
        await first
        await asyncio.wait([both, second], timeout=0)
        heard = list(bench.regions.made_way)
        bench.regions.held.set()

    assert heard == [2]


async def test_given_many_orders_when_executed_then_two_syncs_at_most(bench: Bench) -> None:
    syncs: list[str] = []
    disk = MemoryDisk(MemoryStore(), lambda operation, _: syncs.append(operation))
    journal = open_journal(disk, "/n", "dn-1")
    await journal.commit([Joined(cluster_id="c")])

    desk = await told_of_term(OrderExecutor(journal, bench.regions))
    syncs.clear()
    await desk.execute(request(*(close(1, REGION + place) for place in range(100))))

    assert syncs.count("sync") == 1  # the answers


@pytest.mark.parametrize("term", [2, 1 << 20, (1 << 63) - 1])
async def test_given_a_term_that_only_an_order_claims_when_taken_then_the_leader_is_not_shut_out(
    bench: Bench, term: int
) -> None:
    with pytest.raises(Unavailable) as refused:
        await bench.desk.execute(request(close(9), term=term))
    answer = await bench.desk.execute(request(close(1), term=1))

    assert refused.value.facts["term"] == term
    assert answer.results[0].error is None
    assert bench.regions.done == [(1, "close")]
    assert b'"term":%d' % term not in journal_bytes(bench.store)


@pytest.mark.parametrize("field", ["number", "epoch"])
@pytest.mark.parametrize("value", [-1, 1 << 63, 10**30])
def test_given_a_number_beyond_64_bits_when_ordered_then_it_is_no_order(
    field: str, value: int
) -> None:
    order = {"op": "close", "number": 1, "region_id": "1", "epoch": 1, field: value}

    with pytest.raises(ValueError, match=field):
        OrderRequest.model_validate(
            {"cluster_id": "c", "node_id": "dn-1", "term": 1, "orders": [order]}
        )


async def test_given_no_registration_when_ordered_then_not_ready() -> None:
    store = MemoryStore()
    desk = OrderExecutor(open_journal(MemoryDisk(store), "/n", "dn-1"), FakeRegions(store))

    with pytest.raises(Unavailable):
        await desk.execute(request(close(1)))


def test_given_orders_when_cut_into_waves_then_one_per_region_in_each() -> None:
    orders = [close(1), close(1, REGION + 1), close(2), close(3)]

    assert [list(wave) for wave in waves(orders)] == [[0, 1], [2], [3]]


async def refusal_of(desk: OrderExecutor, late: OrderRequest) -> MetaError:
    with pytest.raises(Conflict) as refused:
        await desk.execute(late)
    return refused.value
