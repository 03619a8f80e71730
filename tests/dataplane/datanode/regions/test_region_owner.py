"""The owner of a region: one sync for what waits together, back-pressure, and a look at leases."""

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from dataplane.datanode.regions.region_owner import QUEUE_MAX, STALLED_MS, RegionOwner
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.group import Applied
from dataplane.region.engine.region import Region
from dataplane.region.format.columns import DELETE, ColumnDef
from metasrv_base.errors import Conflict, MetaError, Unavailable, Unknown
from metasrv_base.wire.node.batches import BatchHeader
from tests.dataplane.region.rig import REGION_ID, SPEC, A, batch, header, order, place

pytestmark = pytest.mark.usefixtures("running")


@dataclass
class Lease:
    """`answers`: what is said next; then always `held`."""

    answers: list[bool]
    held: bool = True

    def __call__(self) -> bool:
        return self.answers.pop(0) if self.answers else self.held


@dataclass
class Bench:
    store: MemoryStore
    syncs: list[str]
    lease: Lease
    owner: RegionOwner


@pytest.fixture
def bench() -> Bench:
    store, syncs = MemoryStore(), list[str]()

    def note(operation: str, path: str) -> None:
        if operation == "sync" and "/wal-" in path:
            syncs.append(path)

    region = Region.create(place(MemoryDisk(store, note)), SPEC, 1)
    lease = Lease([])
    return Bench(store, syncs, lease, RegionOwner(REGION_ID, region, lease, lambda: 0))


@pytest.fixture
async def running(bench: Bench) -> AsyncIterator[None]:
    """The owner's task, until the end of the test; begun by the test's first await."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.owner.run())
        yield
        task.cancel()


async def write(bench: Bench, statement: str) -> Applied | MetaError:
    rows = batch({statement.encode(): (1, "x")})
    try:
        return await bench.owner.write(header(statement), rows)
    except MetaError as error:
        return error


async def test_given_many_writers_when_they_wait_together_then_they_share_syncs(
    bench: Bench,
) -> None:
    await write(bench, "opens the log")
    bench.syncs.clear()

    answers = await asyncio.gather(*(write(bench, f"s{n}") for n in range(100)))

    assert all(isinstance(answer, Applied) for answer in answers)
    assert len(bench.syncs) == 1
    assert bench.owner.groups == 2


async def test_given_deletes_of_wide_rows_when_they_wait_together_then_records_are_bounded() -> (
    None
):
    """They carry keys alone, and are logged with all columns."""
    columns = (*SPEC.columns, *(ColumnDef(id=n, type="int64", nullable=True) for n in range(3, 99)))
    spec = SPEC.model_copy(update={"columns": columns})
    region = Region.create(place(), spec, 1)
    owner = RegionOwner(REGION_ID, region, lambda: True, lambda: 0)
    keys = [b"%06d" % n for n in range(10_000)]
    ops = pa.array([DELETE] * len(keys), pa.uint8())
    rows = pa.RecordBatch.from_pydict({"_key": pa.array(keys), "_op": ops})
    async with asyncio.TaskGroup() as group:
        running = group.create_task(owner.run())
        answers = await asyncio.gather(*(owner.write(header(f"s{n}"), rows) for n in range(6)))
        running.cancel()

    assert len(answers) == 6
    assert owner.groups == 3, "two of 8 MB each have less than 16 MiB"


async def test_given_an_answered_write_when_the_region_waits_then_it_keeps_no_rows(
    bench: Bench,
) -> None:
    rows = batch({b"a": (1, "x")})
    freed, loop = asyncio.Event(), asyncio.get_running_loop()
    weakref.finalize(rows, loop.call_soon_threadsafe, freed.set)

    await bench.owner.write(header("s1"), rows)
    del rows

    async with asyncio.timeout(10):  # a thread that has answered frees them a moment later
        await freed.wait()


async def test_given_a_full_queue_when_written_then_come_again(bench: Bench) -> None:
    answers = await asyncio.gather(*(write(bench, f"s{n}") for n in range(QUEUE_MAX + 5)))

    refused = [answer for answer in answers if isinstance(answer, Unavailable)]
    assert len(refused) == 5
    assert len(answers) - len(refused) == QUEUE_MAX


async def test_given_a_disk_that_keeps_a_group_when_written_then_refused_until_it_comes_back() -> (
    None
):
    now, is_held, lets_go = [0], threading.Event(), threading.Event()

    def hold(operation: str, path: str) -> None:
        if operation == "sync" and "/wal-" in path:
            is_held.set()
            lets_go.wait()

    region = Region.create(place(MemoryDisk(MemoryStore(), hold)), SPEC, 1)
    owner = RegionOwner(REGION_ID, region, lambda: True, lambda: now[0])
    slow = Bench(MemoryStore(), [], Lease([]), owner)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(owner.run())
        first = group.create_task(write(slow, "s1"))
        await asyncio.to_thread(is_held.wait)
        queued = group.create_task(write(slow, "s2"))
        await asyncio.wait([queued], timeout=0)
        now[0] = STALLED_MS

        refused = await write(slow, "s3")

        lets_go.set()
        assert isinstance(await first, Applied)
        assert isinstance(await queued, Applied)
        assert isinstance(await write(slow, "s3"), Applied)
        running.cancel()
    assert isinstance(refused, Unavailable)
    assert refused.facts["at_disk_ms"] == STALLED_MS


async def test_given_no_lease_when_written_then_nothing_is_ordered(bench: Bench) -> None:
    bench.lease.held = False

    assert isinstance(await write(bench, "s1"), Unavailable)

    assert bench.syncs == []


async def test_given_a_lease_that_ends_meanwhile_when_synced_then_unknown_and_told_later(
    bench: Bench,
) -> None:
    bench.lease.answers = [True, False]

    assert isinstance(await write(bench, "s1"), Unknown)

    again = await write(bench, "s1")
    assert isinstance(again, Applied)
    assert again.repeated


async def test_given_a_higher_fence_when_written_then_it_stops_for_ever(bench: Bench) -> None:
    Region.open(place(MemoryDisk(bench.store), A), order(2))

    first, waiting = await asyncio.gather(write(bench, "s1"), write(bench, "s2"))
    late = await write(bench, "s3")

    assert isinstance(first, Unknown)
    assert isinstance(waiting, Unknown)
    assert isinstance(late, Conflict)
    assert late.code == "stale-epoch"


async def test_given_a_root_that_is_gone_when_written_then_lost(bench: Bench) -> None:
    await write(bench, "s0")

    bench.store.folders.clear()

    await write(bench, "s1")

    late = await write(bench, "s2")
    assert isinstance(late, MetaError)
    assert late.code == "region-lost"


async def test_given_writes_ahead_when_it_is_closed_then_they_are_answered_first(
    bench: Bench,
) -> None:
    ahead, _ = await asyncio.gather(
        write(bench, "s1"), bench.owner.change(bench.owner.region.close, stops=True)
    )

    assert isinstance(ahead, Applied)
    assert isinstance(await write(bench, "s2"), Conflict)


async def test_given_a_bad_batch_in_a_group_when_applied_then_only_it_is_refused(
    bench: Bench,
) -> None:
    stale = bench.owner.write(header("s2", epoch=7), batch({b"b": (1, "x")}))

    good, bad = await asyncio.gather(write(bench, "s1"), stale, return_exceptions=True)

    assert isinstance(good, Applied)
    assert isinstance(bad, Conflict)


def faulty(batches: Sequence[tuple[BatchHeader, pa.RecordBatch]]) -> list[Any]:
    """A writer with a bug that a batch brings out."""
    raise ZeroDivisionError


async def test_given_a_fault_of_ours_when_written_then_only_this_opening_ends(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.owner.region.writer, "apply", faulty)

    first, second = await asyncio.gather(write(bench, "s1"), write(bench, "s2"))

    assert isinstance(first, Unknown)
    assert isinstance(second, Unknown)
    assert isinstance(await write(bench, "s3"), Unavailable)
