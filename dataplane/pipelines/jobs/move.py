"""A region's borrowed inputs become files of its own: two passes of executors, and their counts.

The first pass copies files and reads what is to be rewritten; the second sorts, reduces and writes.
The driver sees names, counts and checksums, never a row: what was read, what came out of the sort
and what stands in the new files is compared by count and order-independent checksum.
"""

import pickle
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from dataplane.pipelines.jobs.carrier import carried, carrier_ddl, restored
from dataplane.pipelines.jobs.executor import (
    Output,
    Rewritten,
    copy_file,
    digest_input,
    read_input,
    remove_strays,
    write_range,
)
from dataplane.pipelines.jobs.plan import Family, MovePlan, RewriteInput, input_bytes, plan_move
from dataplane.pipelines.tasks import Counter, Watch, guarded, on_executors, unless_failed
from dataplane.region.compaction.kept_versions import KeptVersions
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.format.checksum import RowsDigest
from dataplane.region.format.columns import KEY, VERSION
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.inputs import BorrowedFile
from metasrv_base.wire.node.jobs import MoveJob, MoveResult
from metasrv_base.wire.node.orders import DataFile


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a job; goes with every task. `token` keeps its files apart from any other's."""

    root: str
    attempt: str
    token: str
    plan: MovePlan

    def output(self, task: str) -> Output:
        return Output(LocalDisk(), self.root, f"{self.attempt}/{self.token}-{task}.parquet")

    def task_output(self, task: str) -> Output:
        """For this very attempt of a task: one that Spark runs twice does not meet itself."""
        context = TaskContext.get()
        assert context is not None, "runs on an executor"
        return self.output(f"{task}-{context.taskAttemptId()}")


def move(spark: SparkSession, job: MoveJob, watch: Watch) -> MoveResult:
    """Raises Unavailable: `region-lost` for an input that is gone or damaged, else retryable."""
    plan = plan_move(job.borrowed)
    run = Run(job.borrowed.root, job.attempt, secrets.token_hex(4), plan)
    counter = watch.begin(plan.bytes)
    copied, read = _first_pass(spark, run, counter)
    rows_read = sum(digest.rows for digest in read.values())
    rewritten: list[Rewritten] = []
    for family in plan.families:
        watch.check()
        rewritten += _rewritten(spark, run, counter, family, read)
    files = [*copied, *(one.file for one in rewritten if one.file is not None)]
    watch.check()
    if files:
        names = [file.name for file in files]
        on_executors(spark, partial(_tidy, run, names), [run.token])
    small = sum(isinstance(one, BorrowedFile) for one in plan.rewrites)
    return MoveResult(
        job_id=job.job_id,
        files=files,
        rows_in=sum(file.rows for file in copied) + rows_read,
        rows_out=sum(file.rows for file in files),
        bytes_in=plan.bytes,
        bytes_out=sum(file.bytes for file in files),
        copied_files=len(copied),
        rewritten_segments=len(plan.rewrites) - small,
        rewritten_files=small,
    )


Digests = Mapping[int, RowsDigest]
"""Of what was read, by family."""


def _first_pass(spark: SparkSession, run: Run, counter: Counter) -> tuple[list[DataFile], Digests]:
    """Copies files and reads what is to be rewritten, side by side, one task for each input."""
    work = [*((True, one) for one in run.plan.copies), *((False, one) for one in run.plan.rewrites)]
    done = on_executors(spark, partial(_copy_or_read, run, counter), list(enumerate(work)))
    copied = [one for one in done if isinstance(one, DataFile)]
    read = [one for one in done if not isinstance(one, DataFile)]
    numbers = [family.number for family in run.plan.families]
    return copied, {n: sum((one[n] for one in read), RowsDigest()) for n in numbers}


def _copy_or_read(
    run: Run, counter: Counter, numbered: tuple[int, tuple[bool, RewriteInput]]
) -> DataFile | Digests:
    number, (is_copy, source) = numbered
    if is_copy:
        assert isinstance(source, BorrowedFile)
        copied = copy_file(source, run.task_output(f"copy-{number}"))
        counter.add(input_bytes(source))
        return copied
    return digest_input(LocalDisk(), source, run.plan.families)


def _rewritten(
    spark: SparkSession, run: Run, counter: Counter, family: Family, read: Digests
) -> list[Rewritten]:
    """The second pass over one family. Raises Unavailable if what was sorted is not what was
    read."""
    if not read[family.number].rows:
        return []
    task = partial(_sorted_range, run, counter, family, read)
    rows_read = sum(digest.rows for digest in read.values())
    outputs = run.plan.outputs(read[family.number].rows, rows_read)
    done = _second_pass(spark, run, family, task, outputs)
    received = sum((one.received for one in done), RowsDigest())
    if received != read[family.number]:
        rows = read[family.number].rows
        raise Unavailable("not-ready", rows_read=rows, rows_sorted=received.rows)
    return done


def _second_pass(
    spark: SparkSession,
    run: Run,
    family: Family,
    task: Callable[[Iterator[pa.RecordBatch]], Rewritten],
    outputs: int,
) -> list[Rewritten]:
    """Sorts all rows to rewrite by key, newest first, and writes one file for each range."""
    plan, inputs = run.plan, len(run.plan.rewrites)

    def read_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _carried_inputs(plan, family, batches)

    def write_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        receipt = guarded(task, batches)
        yield pa.RecordBatch.from_pydict({"receipt": [pickle.dumps(receipt)]})

    rows = spark.range(0, inputs, 1, inputs).mapInArrow(read_rows, carrier_ddl(family.columns))
    ranges = rows.repartitionByRange(outputs, KEY) if outputs > 1 else rows.repartition(1)
    by_key = ranges.sortWithinPartitions(col(KEY).asc(), col(VERSION).desc())
    receipts = by_key.mapInArrow(write_rows, "receipt binary").collect()
    return unless_failed([pickle.loads(receipt[0]) for receipt in receipts])


def _carried_inputs(
    plan: MovePlan, family: Family, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for table in read_input(LocalDisk(), plan.rewrites[number], family):
                yield from carried(table)


def _sorted_range(
    run: Run, counter: Counter, family: Family, read: Digests, batches: Iterator[pa.RecordBatch]
) -> Rewritten:
    plan = run.plan
    context = TaskContext.get()
    assert context is not None, "runs on an executor"
    output = run.task_output(f"rows-{family.number}-{context.partitionId()}")
    tables = (restored(batch, family.columns) for batch in batches if batch.num_rows)
    written = write_range(tables, output, family, KeptVersions(plan.marks))
    rows_read = sum(digest.rows for digest in read.values())
    counter.add(plan.rewritten_bytes * written.received.rows // rows_read)
    return written


def _tidy(run: Run, names: Sequence[str], token: str) -> None:
    remove_strays(run.output(""), token, names)
