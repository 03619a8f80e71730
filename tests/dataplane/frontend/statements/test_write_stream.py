"""The error of a stream of batches of which some were applied."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pyarrow as pa
import pytest

from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements.write_stream import Batches, WriteStream
from dataplane.frontend.statements.writes import StatementTimes
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable, Unknown
from metasrv_base.wire.node.orders import CloseRegion
from tests.dataplane.frontend.bench import Bench, T, running
from tests.dataplane.frontend.statements.calls import ROWS
from tests.dataplane.frontend.tables import feed_table

Event = Callable[[Bench], Awaitable[None]]
ANSWER_MS = 300


async def close_regions(bench: Bench) -> None:
    """As while they move."""
    for region in bench.table.regions:
        order = CloseRegion(number=9, region_id=region.region_id, epoch=region.epoch)
        await bench.node.carry_out(order)


async def drop(bench: Bench) -> None:
    await bench.drop()


async def error_of(bench: Bench, batches: Batches) -> MetaError:
    times = StatementTimes(answer_by_ms=bench.clock.mono_ms() + ANSWER_MS)
    with pytest.raises(MetaError) as told:
        await WriteStream(bench.service.writes, Op.INSERT, "a", times).run(T, batches)
    return told.value


def batches_around(bench: Bench, event: Event, applied: int) -> Batches:
    """*applied* rows, *event*, and a batch of one row."""

    async def come(left_s: object) -> AsyncIterator[pa.RecordBatch]:
        if applied:
            yield pa.RecordBatch.from_pylist(ROWS[:applied])
        await event(bench)
        yield pa.RecordBatch.from_pylist(ROWS[applied : applied + 1])

    return come


@pytest.mark.parametrize(
    ("event", "reason"), [(close_regions, "not-ready"), (drop, "table-not-found")]
)
async def test_given_a_batch_that_was_applied_when_the_next_cannot_be_then_it_is_unknown(
    event: Event, reason: str
) -> None:
    async with running(feed_table(regions=2)) as bench:
        error = await error_of(bench, batches_around(bench, event, applied=5))

    regions = error.facts["regions"]
    assert isinstance(error, Unknown), error
    assert (error.facts["reason"], error.facts["rows_applied"]) == (reason, 5)
    assert isinstance(regions, list)
    assert sorted(region["outcome"] for region in regions) == ["applied", "not-applied"]
    assert sum(region["rows_applied"] for region in regions) == 5


async def test_given_no_batch_that_was_applied_when_the_first_cannot_be_then_none_was_tried() -> (
    None
):
    async with running(feed_table(regions=2)) as bench:
        error = await error_of(bench, batches_around(bench, close_regions, applied=0))

    assert isinstance(error, Unavailable | NotFound), error
    assert error.facts["rows_applied"] == 0


async def test_given_a_batch_that_was_applied_when_the_client_leaves_then_regions_tell_of_it() -> (
    None
):
    async def leave(bench: Bench) -> None:
        raise Unavailable("request-timeout", reason="the client went away")

    async with running(feed_table(regions=1)) as bench:
        error = await error_of(bench, batches_around(bench, leave, applied=2))

    assert isinstance(error, Unknown), error
    assert [
        (region["outcome"], region["rows_applied"])
        for region in error.facts["regions"]  # type: ignore[attr-defined]
    ] == [("applied", 2)]


async def test_given_a_batch_that_was_applied_when_the_next_conflicts_then_both_are_told() -> None:
    async def come(left_s: object) -> AsyncIterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist(ROWS[:2])
        yield pa.RecordBatch.from_pylist(ROWS[:1])

    async with running(feed_table(regions=1)) as bench:
        error = await error_of(bench, come)

    assert (type(error), error.code) == (Conflict, "already-exists")
    assert [
        (region["outcome"], region["code"], region["rows_applied"])
        for region in error.facts["regions"]  # type: ignore[attr-defined]
    ] == [("not-applied", "already-exists", 2)]
