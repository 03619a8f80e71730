"""`benchmarks.data.region_costs`: processor time of a region's own work, per unit.

One process, no network, files on the disk that holds temporary files. Processor time (the kernel's
for us included) is counted, since the machine's load changes wall time and not that. Each figure is
the median of the rounds; each round has a region of its own.
"""

import argparse
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from benchmarks.report import head, line
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.engine.region import Region
from dataplane.region.format.columns import ColumnDef, RegionSpec
from dataplane.region.place import OpenOrder, RegionLimits, RegionPlace
from metasrv_base.clock import SystemClock
from metasrv_base.errors import MetaError
from metasrv_base.wire.node.batches import BatchHeader

ROUNDS = 3
TABLE_ID = 1024
REGION_ID = TABLE_ID << 32
COLUMNS = tuple(ColumnDef(id=number, type="int64", nullable=True) for number in range(1, 11))
PAIR = (
    ColumnDef(id=1, type="int64", nullable=False),
    ColumnDef(id=2, type="string", nullable=True),
)
GROUP = 64  # statements that share an fsync
STATEMENTS = 64 * 40
LOGGED = 20_000  # statements in the log of a region that is opened
FILES = 8
FILE_ROWS = 20_000
MERGED_ROWS = 200_000
LIMITS = RegionLimits(memtable_bytes=256 << 20)

Batch = tuple[BatchHeader, pa.RecordBatch]


def header(name: str) -> BatchHeader:
    return BatchHeader(
        table_id=TABLE_ID, schema_version=1, epoch=1, statement_id=name, maintains_indexes=True
    )


def key(number: int) -> bytes:
    """Returns a key; keys are in no order, like hashes."""
    return b"%016x" % (number * 0x9E3779B97F4A7C15 % 2**64)


Columns = tuple[ColumnDef, ...]


def rows(columns: Columns, numbers: Sequence[int], *, absent: bool) -> pa.RecordBatch:
    """*absent*: each key is expected to have no row."""
    count = len(numbers)
    given = {
        "_key": pa.array(map(key, numbers), pa.binary()),
        "_op": pa.array([0] * count, pa.uint8()),
    }
    if absent:
        given["_expect"] = pa.array([0] * count, pa.int64())
    values = {
        "int64": pa.array(numbers, pa.int64()),
        "string": pa.array([f"value {number}" for number in numbers]),
    }
    return pa.RecordBatch.from_pydict(given | {f"c{one.id}": values[one.type] for one in columns})


class Bench:
    """One region in a folder of its own."""

    def __init__(self, folder: Path, columns: Columns) -> None:
        self.columns = columns
        self.place = RegionPlace(LocalDisk(), str(folder / "region"), SystemClock(), LIMITS)
        spec = RegionSpec(region_id=REGION_ID, columns=columns)
        self.region = Region.create(self.place, spec, epoch=1)
        self._statements = 0

    def batch(self, numbers: Sequence[int], *, absent: bool = False) -> Batch:
        self._statements += 1
        return header(f"statement-{self._statements:08d}"), rows(
            self.columns, numbers, absent=absent
        )

    def apply_all(self, groups: Iterable[Sequence[Batch]]) -> None:
        """Each group shares an fsync."""
        for group in groups:
            for answer in self.region.writer.apply(group):
                assert not isinstance(answer, MetaError), answer

    def statements(self, count: int) -> Iterator[list[Batch]]:
        """Groups of one-row statements."""
        for start in range(0, count, GROUP):
            yield [self.batch([number]) for number in range(start, min(start + GROUP, count))]

    def load(self, numbers: Sequence[int]) -> None:
        """Into memory."""
        for start in range(0, len(numbers), 1_000):
            self.apply_all([[self.batch(numbers[start : start + 1_000])]])

    def reopen(self, *added: ColumnDef) -> None:
        self.region.close()
        self.columns = (*self.columns, *added)
        self.region = Region.open(self.place, OpenOrder(REGION_ID, 1, columns=self.columns))

    def log_bytes(self) -> int:
        return self.region.stats().wal_bytes


def spent_us(work: Callable[[], object]) -> float:
    """Processor time of this process."""
    began = _processor_s()
    work()
    return (_processor_s() - began) * 1e6


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def one_row_statements(bench: Bench) -> dict[str, float]:
    groups = list(bench.statements(STATEMENTS))
    before = bench.log_bytes()
    spent = spent_us(lambda: bench.apply_all(groups))
    return {
        "one-row statement of 10 columns, us": spent / STATEMENTS,
        "its bytes in the log, groups of 64, B": (bench.log_bytes() - before) / STATEMENTS,
    }


def opening(bench: Bench) -> dict[str, float]:
    bench.apply_all(bench.statements(LOGGED))
    return {"opening with 20,000 statements in the log, ms": spent_us(bench.reopen) / 1000}


def expected_absent(bench: Bench) -> dict[str, float]:
    """New keys between those of eight files, each expected to have no row."""
    for number in range(FILES):
        bench.load(range(number, FILES * FILE_ROWS * 2, FILES * 2))
        bench.region.maintenance.flush()
    span = FILES * FILE_ROWS * 2
    new = [range(8 + 16 * start, span, span // 1_000) for start in range(8)]
    batches = [bench.batch(list(numbers), absent=True) for numbers in new]
    spent = spent_us(lambda: bench.apply_all([[one] for one in batches]))
    return {"insert of a key that must be absent, 8 files, us a row": spent / (1_000 * len(new))}


def flush_and_merge(bench: Bench) -> dict[str, float]:
    """Rows written by a flush, and again by a merge."""
    spent = written = 0.0
    for number in range(FILES // 2):
        bench.load(range(number, MERGED_ROWS, FILES // 2))
        spent += spent_us(bench.region.maintenance.flush)
        written += MERGED_ROWS / (FILES // 2)
    merged = spent_us(lambda: all(iter(bench.region.maintenance.compact, False)))
    return {"flush and merge, us a row written": (spent + merged) / (written + MERGED_ROWS)}


def origin_default(bench: Bench) -> dict[str, float]:
    """Time in us that a column with an origin default, absent from the files, adds to each row of a
    scan."""
    bench.load(range(MERGED_ROWS))
    bench.region.maintenance.flush()
    added = ColumnDef(id=3, type="int64", nullable=False, origin_default=7)
    without = _scan_us(bench)
    bench.reopen(added)
    return {"column with an origin default, us a row read": _scan_us(bench) - without}


def _scan_us(bench: Bench) -> float:
    def scan() -> None:
        assert sum(part.num_rows for part in bench.region.reader.scan()) == MERGED_ROWS

    scan()
    return min(spent_us(scan) for _ in range(3)) / MERGED_ROWS


WORK = {
    one_row_statements: COLUMNS,
    opening: COLUMNS,
    expected_absent: PAIR,
    flush_and_merge: PAIR,
    origin_default: PAIR,
}


def main() -> int:
    argparse.ArgumentParser(prog="benchmarks.data.region_costs", description=__doc__).parse_args()
    found: dict[str, list[float]] = {}
    for work, columns in WORK.items():
        for _ in range(ROUNDS):
            folder = Path(tempfile.mkdtemp(prefix="metasrv-bench-"))
            try:
                for name, value in work(Bench(folder, columns)).items():
                    found.setdefault(name, []).append(value)
            finally:
                shutil.rmtree(folder)
    head("python -m benchmarks.data.region_costs", ROUNDS)
    for name, values in found.items():
        line(name, values, "", 3)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
