"""Parts of tables: bounded by rows and by bytes, with every row once and in order."""

import pyarrow as pa
import pytest

from dataplane.region.format.parts import PartSize, cut, gathered

WIDTHS = [1, 5_000, 3, 0, 900, 900, 900, 20_000, 7, 7, 7]


def table(widths: list[int]) -> pa.Table:
    return pa.table({"c": pa.array([b"x" * width for width in widths], pa.binary())})


def widths(parts: list[pa.Table]) -> list[int]:
    return [len(value) for part in parts for value in part.column("c").to_pylist()]


@pytest.mark.parametrize("size", [PartSize(3, 1 << 20), PartSize(100, 2_000), PartSize(2, 1_000)])
@pytest.mark.parametrize("split", [0, 1, 4, 11])
def test_given_rows_of_all_widths_when_cut_or_gathered_then_no_part_is_too_large(
    size: PartSize, split: int
) -> None:
    whole = table(WIDTHS)
    tables = [whole.slice(0, split), whole.slice(split)]

    for parts in (list(cut(whole, size)), list(gathered(tables, size))):
        assert widths(parts) == WIDTHS
        for part in parts:
            assert part.num_rows <= size.rows
            assert part.nbytes <= size.bytes or part.num_rows == 1


def test_given_many_small_tables_when_gathered_then_parts_are_as_large_as_may_be() -> None:
    tables = [table([100]) for _ in range(40)]

    parts = list(gathered(tables, PartSize(rows=16, bytes=1 << 20)))

    assert [part.num_rows for part in parts] == [16, 16, 8]
    assert list(gathered([], PartSize(1, 1))) == []
