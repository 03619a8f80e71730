"""Short work runs on the spot, other work beside the loop."""

import threading

import pytest

from metasrv_base.concurrency.run_in_thread import (
    COLUMNAR_BYTES,
    COLUMNAR_ROWS,
    SHORT_BYTES,
    SHORT_ROWS,
    is_short_columnar,
    is_small,
    run_in_thread,
)


@pytest.mark.parametrize(
    ("rows", "size_bytes", "short"),
    [
        (1, 1, True),
        (SHORT_ROWS, SHORT_BYTES, True),
        (SHORT_ROWS + 1, 0, False),
        (0, SHORT_BYTES + 1, False),
    ],
)
async def test_given_work_when_it_is_offloaded_then_its_size_says_where_it_is_done(
    rows: int, size_bytes: int, short: bool
) -> None:
    where = await run_in_thread(is_small(rows, size_bytes), threading.get_ident)

    assert (where == threading.get_ident()) is short


@pytest.mark.parametrize(
    ("rows", "size_bytes", "short"),
    [
        (COLUMNAR_ROWS, COLUMNAR_BYTES, True),
        (COLUMNAR_ROWS + 1, 0, False),
        (0, COLUMNAR_BYTES + 1, False),
    ],
)
def test_given_work_on_columns_when_it_is_judged_then_more_rows_are_short(
    rows: int, size_bytes: int, short: bool
) -> None:
    assert is_short_columnar(rows, size_bytes) is short


@pytest.mark.parametrize("short", [True, False])
async def test_given_work_that_fails_when_it_is_offloaded_then_its_error_is_raised(
    short: bool,
) -> None:
    with pytest.raises(ValueError, match="base 10"):
        await run_in_thread(short, int, "x")
