"""Copies fetch the files that a record names, and then take the record."""

import asyncio

import pytest

from dataplane.datanode.copies.file_fetches import LATER
from metasrv_base.errors import NotFound, Unavailable
from tests.dataplane.datanode.copies.fetch_bench import IngestBench, copies, open_order, request
from tests.dataplane.region.entries import entries_of
from tests.dataplane.region.fetching.ingesting import ITEMS, TAKES_ENTRIES, work


async def test_given_a_record_that_names_files_when_they_are_fetched_then_it_is_taken() -> None:
    bench = IngestBench()
    assert bench.copy.durable.sequence == TAKES_ENTRIES - 1

    assert await bench.fetches.fetch_one(named_only=True)

    assert not await bench.fetches.fetch_one(), "it waits for the record to be sent again"
    assert bench.send(common=TAKES_ENTRIES) == TAKES_ENTRIES
    assert set(bench.network.read) == {1, 2}, "no manifest"
    assert bench.copy.rows is not None
    assert [
        key
        for part in bench.copy.rows.reader.scan_entries(3)
        for key in part.column("_key").to_pylist()
    ] == [row for _, row in sorted(entries_of(bench.region).items())]


async def test_given_a_copy_that_was_not_told_of_the_leader_then_it_waits_for_the_order() -> None:
    bench = IngestBench()
    bench.followed.hear(open_order(2, copies(2)))

    assert not await bench.fetches.fetch_one()


async def test_given_a_leader_that_is_cut_off_in_the_middle_then_the_rest_comes_later() -> None:
    bench = IngestBench()

    def cut(file: int, offset: int, data: bytes) -> bytes:
        if file == 2:
            raise Unavailable("not-ready", what="dn-1")
        return data

    bench.network.harm = cut
    assert not await bench.fetches.fetch_one()
    bench.send(common=4)
    bench.network.harm, bench.network.read = lambda file, offset, data: data, []
    bench.clock.advance(LATER.first_ms)

    assert await bench.fetches.fetch_one()

    assert set(bench.network.read) == {1}, "the first file was here: the other one is the first now"
    assert bench.send(common=TAKES_ENTRIES) == TAKES_ENTRIES


async def test_given_a_byte_that_is_changed_on_its_way_then_the_record_is_not_taken() -> None:
    bench = IngestBench()
    bench.network.harm = lambda file, offset, data: bytes([data[0] ^ 1]) + data[1:]

    assert not await bench.fetches.fetch_one()

    assert bench.send(common=4) == TAKES_ENTRIES - 1
    bench.network.harm = lambda file, offset, data: data
    bench.clock.advance(LATER.first_ms)
    assert await bench.fetches.fetch_one()
    assert bench.send(common=TAKES_ENTRIES) == TAKES_ENTRIES


async def test_given_files_that_the_leader_has_no_more_then_all_that_it_has_is_fetched() -> None:
    bench = IngestBench(ITEMS)
    assert bench.copy.lacks is not None
    assert not await bench.fetches.fetch_one()

    assert bench.send(common=ITEMS) == TAKES_ENTRIES - 1
    assert bench.copy.needs_files == 1
    bench.clock.advance(LATER.first_ms)
    assert await bench.fetches.fetch_one()

    assert bench.send(common=ITEMS) == ITEMS
    assert bench.copy.common == ITEMS


async def test_given_a_leader_whose_files_end_before_the_copys_log_then_it_flushes_first() -> None:
    """Its last records are no rows."""
    bench = IngestBench(3)
    bench.region.maintenance.flush()
    assert bench.send(common=3) == 3
    for item in range(4, 9):
        work(bench.region, item)
    bench.send(common=4)
    assert not await bench.fetches.fetch_one()
    bench.region.maintenance.flush()

    bench.send(common=4)
    bench.clock.advance(LATER.first_ms)
    assert await bench.fetches.fetch_one()

    assert bench.copy.durable.sequence == 8
    assert bench.send(common=8) == 8


async def test_given_two_copies_that_fetch_then_files_that_a_record_names_come_first() -> None:
    bench = IngestBench()
    whole = IngestBench(2)
    whole.copy.needs_files = 1
    bench.copies = [whole.followed, bench.followed]

    assert await bench.fetches.fetch_one()

    assert bench.copy.lacks is None
    assert whole.copy.needs_files == 1
    assert not await bench.fetches.fetch_one(named_only=True)


async def test_given_a_copy_that_begins_to_wait_then_its_fetch_begins_at_once() -> None:
    bench = IngestBench()
    bench.copies = []
    ended = asyncio.Event()
    end_session = bench.network.end_session

    async def end(address: str, session: str) -> None:
        await end_session(address, session)
        ended.set()

    bench.network.end_session = end  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as tasks:
        fetching = tasks.create_task(bench.fetches.run(named_only=True))
        await asyncio.sleep(0)

        bench.copies = [bench.followed]
        bench.fetches.wake()

        await ended.wait()
        fetching.cancel()
    assert bench.copy.lacks is None


@pytest.mark.parametrize("name", ["manifest-1-1-1", "../other", "attempts/none/1.parquet"])
async def test_given_a_name_that_is_no_file_of_the_region_then_not_found(name: str) -> None:
    bench = IngestBench()

    with pytest.raises(NotFound):
        await bench.sessions.begin(request(files=[name]))
