"""A region's rows as of a mark become the sorted entries of an index, in files of their own.

Executors look at the files, read ranges of rows, share their entries out by ranges of entry keys,
sort and write. What is shared out travels as whole Arrow batches, so that Spark moves a few large
values and no rows. The driver sees names, counts and some keys. It is content when every stored row
has been read once, and every share has arrived once and whole.
"""

import secrets
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from dataplane.pipelines.jobs.backfill_plan import Survey, cut_outputs, cut_pieces
from dataplane.pipelines.jobs.entry_files import rows_at_mark, survey_file, write_entries
from dataplane.pipelines.jobs.executor import Output, remove_strays
from dataplane.pipelines.pace import PaceAddress, PaceClient
from dataplane.pipelines.shares import Packed, packed, unpacked
from dataplane.pipelines.tasks import Failure, Watch, guarded, on_executors, unless_failed
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.format.columns import columns_told, file_schema
from dataplane.region.format.families import ENTRY_COLUMNS
from dataplane.region.format.key_range import KeyRange, rows_below
from dataplane.region.indexes.index_entries import (
    IndexDef,
    duplicates_of,
    entries_as_read,
    sorted_entries,
)
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.inputs import BorrowedFile, Snapshot
from metasrv_base.wire.node.jobs import BackfillJob, BackfillResult
from metasrv_base.wire.node.offenders import (
    LISTED_CHARS_MAX,
    OFFENDERS_MAX,
    Duplicate,
    first_within,
)
from metasrv_base.wire.node.orders import DataFile


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a job; goes with every task. `token` keeps its files apart from any other's."""

    snapshot: Snapshot
    index: IndexDef
    attempt: str
    token: str
    pieces: tuple[KeyRange, ...]
    bounds: tuple[bytes, ...]
    """Between the entries of one file and the next."""
    pace: PaceAddress

    @property
    def outputs(self) -> int:
        return len(self.bounds) + 1

    def output(self, task: str) -> Output:
        return Output(LocalDisk(), self.snapshot.root, f"{self.attempt}/{self.token}-{task}")


@dataclass(frozen=True, slots=True)
class Share:
    """Entries of one piece for one file."""

    piece: int
    read: int
    """Stored rows of the piece."""
    entries: Packed


@dataclass(frozen=True, slots=True)
class Receipt:
    """Of one file; None: there were no entries for it."""

    read: int
    """Stored rows of all pieces that it has a share of."""
    entries: int
    file: DataFile | None
    duplicates: tuple[Duplicate, ...]
    duplicates_total: int


def backfill(spark: SparkSession, job: BackfillJob, watch: Watch) -> BackfillResult:
    """Raises Unavailable: `region-lost` for an input that is gone or damaged, else retryable.
    Raises Refused for an index of columns that the snapshot does not have."""
    snapshot, asked = job.snapshot, job.index
    index = IndexDef.of(
        asked.id, asked.columns, columns_told(snapshot.columns), unique=asked.unique
    )
    with watch.paced(snapshot.rows) as pace:
        surveys = on_executors(spark, partial(_survey, index), snapshot.files)
        watch.check()
        run = Run(
            snapshot,
            index,
            job.attempt,
            secrets.token_hex(4),
            cut_pieces(surveys),
            cut_outputs(surveys, snapshot.rows, spark.sparkContext.defaultParallelism),
            pace,
        )
        receipts = _receipts(spark, run) if snapshot.files else []
    watch.check()
    files = [receipt.file for receipt in receipts if receipt.file is not None]
    if files:
        on_executors(spark, partial(_tidy, run, [file.name for file in files]), [run.token])
    entries = sum(receipt.entries for receipt in receipts)
    found = [one for receipt in receipts for one in receipt.duplicates]
    return BackfillResult(
        job_id=job.job_id,
        files=files,
        rows_in=entries,
        entries=entries,
        bytes_in=snapshot.bytes,
        bytes_out=sum(file.bytes for file in files),
        duplicates=first_within(found[:OFFENDERS_MAX], LISTED_CHARS_MAX),
        duplicates_total=sum(receipt.duplicates_total for receipt in receipts),
    )


def _survey(index: IndexDef, one: BorrowedFile) -> Survey:
    return survey_file(LocalDisk(), one, index)


def _receipts(spark: SparkSession, run: Run) -> list[Receipt]:
    """In order of entries. Raises Unavailable if not every stored row was read exactly once."""
    pieces = spark.sparkContext.parallelize(range(len(run.pieces)), len(run.pieces))
    shares = pieces.flatMap(partial(shared_out, run)).partitionBy(run.outputs, int)
    receipts = unless_failed(shares.mapPartitions(partial(_written, run)).collect())
    for receipt in receipts:
        if receipt.read != run.snapshot.rows:
            raise Unavailable("not-ready", rows_read=receipt.read, expected=run.snapshot.rows)
    return receipts


def shared_out(run: Run, piece: int) -> list[tuple[int, Share | Failure]]:
    """The entries of a piece of the rows, one share for each file, also if it is empty."""
    shares = guarded(partial(_shares, run), piece)
    if isinstance(shares, Failure):
        return [(number, shares) for number in range(run.outputs)]
    return list(enumerate(shares))


def _shares(run: Run, piece: int) -> list[Share]:
    read = 0
    with closing(PaceClient(run.pace)) as client:

        def seen(rows: int) -> None:
            nonlocal read
            client.take(rows)
            read += rows

        keys, columns = run.pieces[piece], run.index.columns
        rows = rows_at_mark(LocalDisk(), run.snapshot, keys, columns, seen)
        entries = sorted_entries(joined(entries_as_read(part, run.index) for part in rows))
    cuts = [0, *(rows_below(entries, bound) for bound in run.bounds), entries.num_rows]
    parts = [entries.slice(low, high - low) for low, high in pairwise(cuts)]
    return [Share(piece, read, packed(part)) for part in parts]


def _written(run: Run, shares: Iterable[tuple[int, Share | Failure]]) -> list[Receipt | Failure]:
    """One file of all its shares."""
    got = [share for _, share in shares]
    for share in got:
        if isinstance(share, Failure):
            return [share]
    return [guarded(partial(_write, run), [share for share in got if isinstance(share, Share)])]


def _write(run: Run, shares: list[Share]) -> Receipt:
    if sorted(share.piece for share in shares) != list(range(len(run.pieces))):
        raise Unavailable("not-ready", shares=len(shares), expected=len(run.pieces))
    entries = sorted_entries(joined(unpacked(share.entries) for share in shares))
    read = sum(share.read for share in shares)
    if not entries.num_rows:
        return Receipt(read, 0, None, (), 0)
    limit = max(OFFENDERS_MAX // run.outputs, 1)
    found, total = duplicates_of(entries, run.index, limit) if run.index.unique else ((), 0)
    context = TaskContext.get()
    assert context is not None, "runs on an executor"
    task = f"{context.partitionId()}-{context.taskAttemptId()}.parquet"
    file = write_entries(entries, run.output(task), run.index.family)
    return Receipt(read, entries.num_rows, file, found, total)


def _tidy(run: Run, names: list[str], token: str) -> None:
    remove_strays(run.output(""), token, names)


def joined(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables([file_schema(ENTRY_COLUMNS).empty_table(), *tables])
