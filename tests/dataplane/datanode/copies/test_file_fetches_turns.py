"""A fetch that waits for its turn is given up, once its copy needs other files."""

import asyncio

import pytest

from dataplane.datanode.copies.file_fetches import LATER
from dataplane.datanode.copies.followed import FetchNeed
from dataplane.region.fetching.file_fetch import FileFetch
from dataplane.region.following.copy_region import StreamedRecords
from tests.dataplane.datanode.copies.fetch_bench import Bench, IngestBench
from tests.dataplane.region.fetching.ingesting import ITEMS, TAKES_ENTRIES
from tests.dataplane.region.following.stream import sent


async def test_given_a_copy_that_needs_all_files_by_now_then_a_fetch_of_some_is_given_up() -> None:
    """The leader has flushed, so that its log does not reach back to the copy."""
    bench = IngestBench(ITEMS)
    bench.region.maintenance.flush(to_end=True)
    nothing = StreamedRecords(1, bench.region.log_history, ITEMS, ())

    async with asyncio.TaskGroup() as tasks, bench.followed._lock:  # records are taken meanwhile
        assert bench.copy.lacks is not None
        fetching = tasks.create_task(bench.fetches.fetch_one())
        await asyncio.sleep(0)
        assert bench.copy.take(nothing) == TAKES_ENTRIES - 1

    assert not fetching.result()
    assert bench.followed.need == FetchNeed(1)


async def test_given_a_copy_that_waits_for_some_files_by_now_then_a_fetch_of_all_is_given_up() -> (
    None
):
    """The leader did not know where the log of the copy ends, and then sends what comes next."""
    bench = IngestBench()
    lacked, begin_session = bench.copy.lacks, bench.network.begin_session
    on_their_way = sent(bench.region, bench.copy.durable.sequence, TAKES_ENTRIES - 1)
    bench.copy.close()
    bench.copy.needs_files, bench.copy.lacks = 1, None

    async def begin(*args):  # type: ignore[no-untyped-def]
        session = await begin_session(*args)
        bench.copy.take(on_their_way)
        assert bench.copy.lacks == lacked
        return session

    bench.network.begin_session = begin  # type: ignore[method-assign]

    assert not await bench.fetches.fetch_one()

    assert bench.followed.need == FetchNeed(1, lacked)
    assert bench.copy.maintenance is not None, "it follows its leader"


async def test_given_a_fault_in_one_copy_when_it_fetches_then_the_node_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()

    def fail(fetch: FileFetch) -> None:
        raise MemoryError

    monkeypatch.setattr(bench.copy, "install", fail)
    assert not await bench.fetches.fetch_one()
    assert bench.sessions._open == {}, "the leader keeps no files for it"

    monkeypatch.undo()
    assert not await bench.fetches.fetch_one(), "it rests"
    bench.clock.advance(LATER.first_ms)
    assert await bench.fetches.fetch_one()
