"""Limits of keys and rows at a frontend: refused by name."""

import httpx
import pyarrow as pa
import pytest

from dataplane.frontend.planning.row_input import Op
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Refused
from metasrv_base.rows.limited import check_keys, check_rows
from metasrv_base.wire.frontend.feed import FeedTable
from metasrv_base.wire.limits import ENTRY_KEY_BYTES_MAX, KEY_BYTES_MAX, ROW_BYTES_MAX
from tests.dataplane.frontend.bench import Bench, T, running
from tests.dataplane.frontend.tables import A, B, column, feed_table, index

TEXT_KEY = column(1, "id", "string", nullable=False)


def _keyed_by_text() -> FeedTable:
    table = feed_table(A, B)
    return table.model_copy(update={"columns": (TEXT_KEY, *table.columns[1:])})


async def _refused(bench: Bench, row: dict[str, object]) -> Refused:
    with pytest.raises(Refused) as refusal:
        await bench.service.writes.rows(T, Op.INSERT, [row], f"s-{next(bench.statements)}")
    assert refusal.value.code == "limit-exceeded"
    return refusal.value


async def test_given_a_long_key_when_inserted_then_nothing_is_sent() -> None:
    async def meet(request: httpx.Request) -> None:
        raise AssertionError(request.url.path)

    async with running(_keyed_by_text()) as bench:
        bench.way.meet = meet

        error = await _refused(bench, {"id": "k" * KEY_BYTES_MAX})

        assert error.facts["limit"] == "key_bytes"


async def test_given_a_large_row_when_inserted_then_it_is_refused() -> None:
    async with running(feed_table(A, B)) as bench:
        error = await _refused(bench, {"id": 1, "b": "x" * ROW_BYTES_MAX})

        assert error.facts["limit"] == "row_bytes"


@pytest.mark.parametrize("unique", [True, False])
async def test_given_a_long_indexed_value_when_inserted_then_the_index_is_named(
    unique: bool,
) -> None:
    async with running(feed_table(A, B, index(1, 3, 1, unique=unique))) as bench:
        error = await _refused(bench, {"id": 1, "b": "x" * ENTRY_KEY_BYTES_MAX})

        assert (error.facts["limit"], error.facts["index"]) == ("entry_key_bytes", "by_3_1")


async def test_given_a_row_too_long_for_a_new_index_when_deleted_then_it_goes() -> None:
    """It was there before the index, whose job will refuse it: it must be possible to delete it."""
    async with running(feed_table(A, B)) as bench:
        writes = bench.service.writes
        await writes.rows(T, Op.INSERT, [{"id": 1, "b": "x" * ENTRY_KEY_BYTES_MAX}], "s-1")
        state = ElementState.DELETE_ONLY
        for version, one in enumerate((state, ElementState.WRITE_ONLY), start=2):
            await bench.publish(feed_table(A, B, index(1, 3, state=one), schema_version=version))

        done = await writes.rows(T, Op.DELETE, [{"id": 1}], "s-2")

        assert done.rows == 1


def test_given_lengths_at_the_limit_when_checked_then_they_are_taken() -> None:
    check_keys(pa.array([b"k" * KEY_BYTES_MAX, None, b""], pa.binary()))
    row = {"a": pa.array([1]), "b": pa.array(["x" * (ROW_BYTES_MAX - 8)]), "c": pa.array([True])}
    with pytest.raises(Refused):
        check_rows(pa.RecordBatch.from_pydict(row))
