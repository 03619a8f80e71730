"""`benchmarks.data.job_costs`: processor time of what a job does with rows, without Spark.

One process, one thread's work: keys are put in order, and beside them by Arrow; a sorted file is
written, synced, and read back; a file is copied to another root and compared with its manifest.
Processor time counts, the kernel's for us included, since a busy machine changes wall time alone.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.data.region_costs import spent_us
from benchmarks.report import head, line
from dataplane.pipelines.jobs.entry_files import is_same
from dataplane.pipelines.jobs.executor import Output, copy_file, read_back
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format.columns import ColumnDef, file_schema
from dataplane.region.format.key_order import in_key_order
from dataplane.region.manifests.adoption import data_file
from metasrv_base.wire.node.inputs import BorrowedFile

ROUNDS = 5
ROWS = 500_000
KEY_BYTES = 24
NAME = "rows.parquet"
COLUMNS = (
    ColumnDef(id=1, type="int64", nullable=False),
    ColumnDef(id=2, type="int32", nullable=False),
    ColumnDef(id=3, type="float64", nullable=False),
    ColumnDef(id=4, type="string", nullable=False),
)
Figures = dict[str, list[float]]


def unordered(rows: int) -> pa.Table:
    """Rows whose keys are random bytes."""
    random = np.random.default_rng(1)
    data = pa.py_buffer(random.integers(0, 256, rows * KEY_BYTES, np.uint8).tobytes())
    keys = pa.Array.from_buffers(pa.binary(KEY_BYTES), rows, [None, data]).cast(pa.binary())
    numbers = np.arange(rows)
    values = [
        pa.array(numbers),
        pa.array((numbers % 1000).astype(np.int32)),
        pa.array(numbers * 0.5),
        pa.array([f"tag of row {number:010d}" for number in range(rows)]),
    ]
    versions = pa.repeat(pa.scalar(1, pa.int64()), rows)
    ops = pa.repeat(pa.scalar(0, pa.uint8()), rows)
    return pa.table([keys, versions, ops, *values], schema=file_schema(COLUMNS))


def measure(folder: Path, rows: pa.Table, found: Figures) -> None:
    """One round."""

    def add(name: str, work: Callable[[], object]) -> None:
        found.setdefault(name, []).append(spent_us(work) / rows.num_rows)

    disk, root = LocalDisk(), str(folder)
    keys = rows.column("_key")
    ordered = in_key_order(rows, "_key")
    add("keys put in order, us a row", lambda: in_key_order(rows.select(["_key"]), "_key"))
    add("the same by Arrow, us a row", lambda: keys.take(pc.sort_indices(keys)))
    target = FileTarget(disk, root, NAME, COLUMNS)
    add("a sorted file written, us a row", lambda: write_rows(target, [ordered]))
    (folder / NAME).unlink()
    file = data_file(write_rows(target, [ordered]))
    add("read back, us a row", lambda: is_same(read_back(disk, root, file, COLUMNS), ordered))
    (folder / "own").mkdir()
    output = Output(disk, str(folder / "own"), NAME)
    copied = spent_us(lambda: copy_file(BorrowedFile(root=root, file=file), output))
    found.setdefault("a file copied and compared, ns a byte", []).append(copied * 1000 / file.bytes)


def main(rows: int) -> int:
    found: Figures = {}
    table = unordered(rows)
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as name:
            os.sync()
            measure(Path(name), table, found)
    head(f"python -m benchmarks.data.job_costs --rows {rows}", ROUNDS)
    for name, values in found.items():
        line(name, values, "", 3)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.data.job_costs", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    raise SystemExit(main(parser.parse_args().rows))
