"""A datanode's resident memory stays within 1.3 times its budget, with many regions.

The same as `python -m benchmarks.data.memory`, which has more of it, at one budget.
"""

from pathlib import Path

import pytest

from benchmarks.data.memory import BATCH_ROWS, RATIO_MAX
from benchmarks.data.memory_load import Bench, Shape, bench

pytestmark = [pytest.mark.process, pytest.mark.slow]

BUDGET = 256 << 20
BATCHES = {2: 500, 50: 200}
"""By columns: rows for more than the half of its memory for rows, at which a node flushes."""
ONE_ROW = 400
READERS = 8


@pytest.mark.parametrize("columns", sorted(BATCHES))
def test_given_many_regions_when_written_replayed_and_taken_over_then_memory_keeps_to_its_budget(
    columns: int, tmp_path: Path
) -> None:
    with bench(tmp_path, Shape(columns), BUDGET) as one:
        one.make_regions()

        written = one.fill(BATCHES[columns], BATCH_ROWS, readers=READERS)
        one.fill(ONE_ROW, 1)
        assert one.node.metric('datanode_region_files{of="all"}') > 0, "nothing was flushed"
        assert written.scans[b"200"] > READERS
        assert set(written.scans) <= {b"200", b"503"}
        _must_keep(one)
        one.restart()
        _must_keep(one)
        one.take_over()
        one.fill(len(one.regions), 1)
        _must_keep(one)


def _must_keep(one: Bench) -> None:
    assert one.growth.peak <= RATIO_MAX * BUDGET
