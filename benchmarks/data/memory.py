"""`benchmarks.data.memory`: memory of a datanode above that of an idle one, by its budget.

One datanode, 200 regions, for each budget and each number of columns. It is filled over HTTP with
rows of 8 bytes a column until it has flushed several times what its memory holds, while others scan
its regions; then come one-row statements. It is killed and opens its regions again (replay). A
second node opens them in the place of the first one, which was killed once more (takeover). Peaks
are the kernel's (VmHWM), by phase.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.data.memory_load import Bench, Shape, bench
from benchmarks.report import head

BUDGETS_MIB = (256, 1_024)
COLUMNS = (2, 50)
RATIO_MAX = 1.3
ROW_BYTES = 300
"""The memory that a row of 2 columns takes, about, index and all."""
COLUMN_BYTES = 10
TIMES = 3
"""Rows of the benchmark as a multiple of the rows that the budget could hold."""
BATCH_ROWS = 500
READERS = 8
"""Scans of whole regions under way beside the batches."""


def rows_for(memory_bytes: int, columns: int) -> int:
    return TIMES * memory_bytes // (ROW_BYTES + COLUMN_BYTES * columns)


def measured(one: Bench, memory_bytes: int, statements: int) -> bool:
    """One row of the table for each phase. Returns whether all stayed within RATIO_MAX."""
    name = f"{memory_bytes >> 20} MiB, {one.shape.columns} columns"
    good = True

    def show(phase: str) -> None:
        nonlocal good
        ratio = one.growth.peak / memory_bytes
        good = good and ratio <= RATIO_MAX
        peak, now = one.growth.peak / (1 << 20), one.growth.now / (1 << 20)
        text = f"{name + ': ' + phase:52}{peak:8,.0f} MiB {ratio:6.2f}"
        print(f"{text}   (after it {now:,.0f} MiB)", flush=True)
        one.growth.forget_peak()

    one.make_regions()
    rows = rows_for(memory_bytes, one.shape.columns)
    written = one.fill(rows // BATCH_ROWS, BATCH_ROWS, readers=READERS)
    refused = written.refused
    show(f"{rows:,} rows, batches of {BATCH_ROWS}, {written.scans.total():,} scans")
    refused += one.fill(statements, 1).refused
    show(f"{statements:,} one-row statements")
    one.restart()
    show("replay")
    one.take_over()
    show("takeover")
    refused += one.fill(len(one.regions), 1).refused
    show("a statement for each region")
    print(f"{name + ': answers of 503':52}{refused:12,}", flush=True)
    return good


def main(budgets: list[int], statements: int) -> int:
    head(f"python -m benchmarks.data.memory --statements {statements}", 1)
    print(f"{'peak above an idle datanode, and by the budget':52}  (at most {RATIO_MAX})")
    good = True
    for mib in budgets:
        for columns in COLUMNS:
            with (
                tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder,
                bench(Path(folder), Shape(columns), mib << 20) as one,
            ):
                good = measured(one, mib << 20, statements) and good
    return 0 if good else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.data.memory", description=__doc__)
    parser.add_argument("--mib", type=int, nargs="+", default=list(BUDGETS_MIB))
    parser.add_argument("--statements", type=int, default=20_000, help="of one row, in each run")
    said = parser.parse_args()
    sys.exit(main(said.mib, said.statements))
