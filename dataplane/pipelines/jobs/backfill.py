"""A region's rows as of a mark become the sorted entries of an index, in files of their own.

Executors look at the files, read ranges of rows, share their entries out by ranges of entry keys,
sort and write. What is shared out stays in files (`shares`). The driver sees names, counts and some
keys. It is content when every stored row has been read once, and every entry has arrived once.
"""

import secrets
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import pyarrow as pa
from pyspark.sql import SparkSession

from dataplane.pipelines.jobs.backfill_plan import Survey, cut_outputs, cut_pieces, piece_rows
from dataplane.pipelines.jobs.entry_files import rows_at_mark, survey_file, write_entries
from dataplane.pipelines.jobs.executor import Output, remove_strays
from dataplane.pipelines.jobs.shares import ShareFile, read_shares, write_shares
from dataplane.pipelines.pace import PaceAddress, PaceClient
from dataplane.pipelines.tasks import Watch, on_executors, own_name, shortly
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
class BackfillRun:
    """One run of a job; goes with every task. `token` keeps its files apart from any other's."""

    snapshot: Snapshot
    index: IndexDef
    attempt: str
    token: str
    pieces: tuple[KeyRange, ...]
    bounds: tuple[bytes, ...]
    """Keys between the entries of one file and the next."""
    pace: PaceAddress

    @property
    def outputs(self) -> int:
        return len(self.bounds) + 1

    def output(self, task: str) -> Output:
        return Output(LocalDisk(), self.snapshot.root, f"{self.attempt}/{self.token}-{task}")


@dataclass(frozen=True, slots=True)
class Shared:
    """The result of one piece: the number of rows read, and the entries written for each output."""

    read: int
    """Stored rows."""
    entries: tuple[int, ...]
    file: ShareFile


@dataclass(frozen=True, slots=True)
class BackfillReceipt:
    """The result of one output. `file` None: there were no entries for it."""

    entries: int
    file: DataFile | None
    duplicates: tuple[Duplicate, ...]
    duplicates_total: int


def backfill(spark: SparkSession, job: BackfillJob, watch: Watch) -> BackfillResult:
    """Raises Unavailable: `region-lost` for an input that is gone or damaged, else retryable.
    Raises Refused for an index of columns that the snapshot does not have."""
    snapshot, spec = job.snapshot, job.index
    index = IndexDef.of(spec.id, spec.columns, columns_told(snapshot.columns), unique=spec.unique)
    with watch.paced(snapshot.rows) as pace:
        if not snapshot.files:
            return BackfillResult(
                job_id=job.job_id, files=[], rows_in=0, entries=0, bytes_in=0, bytes_out=0
            )
        surveys = shortly(spark, partial(_survey, index), snapshot.files)
        watch.check()
        run = BackfillRun(
            snapshot,
            index,
            job.attempt,
            secrets.token_hex(4),
            cut_pieces(surveys, piece_rows(surveys)),
            cut_outputs(surveys, snapshot.rows, spark.sparkContext.defaultParallelism),
            pace,
        )
        shared = all_shared(spark, run)
        watch.check()
        receipts = on_executors(spark, partial(_written, run, shared), range(run.outputs))
    watch.check()
    files = [receipt.file for receipt in receipts if receipt.file is not None]
    tidied(spark, run, files)
    entries = sum(receipt.entries for receipt in receipts)
    duplicates = [duplicate for receipt in receipts for duplicate in receipt.duplicates]
    return BackfillResult(
        job_id=job.job_id,
        files=files,
        rows_in=entries,
        entries=entries,
        bytes_in=snapshot.bytes,
        bytes_out=sum(file.bytes for file in files),
        duplicates=first_within(duplicates[:OFFENDERS_MAX], LISTED_CHARS_MAX),
        duplicates_total=sum(receipt.duplicates_total for receipt in receipts),
    )


def _survey(index: IndexDef, borrowed: BorrowedFile) -> Survey:
    return survey_file(LocalDisk(), borrowed, index)


def all_shared(spark: SparkSession, run: BackfillRun) -> list[Shared]:
    """The entries of all pieces. Raises Unavailable if not every stored row was read once."""
    shared = on_executors(spark, partial(_shared, run), range(len(run.pieces)))
    read = sum(share.read for share in shared)
    if read != run.snapshot.rows:
        raise Unavailable("not-ready", rows_read=read, expected=run.snapshot.rows)
    return shared


def _shared(run: BackfillRun, piece: int) -> Shared:
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
    file = write_shares(run.output(own_name(f"piece-{piece}")), enumerate(parts))
    return Shared(read, tuple(part.num_rows for part in parts), file)


def entries_shared(shared: Sequence[Shared], number: int) -> pa.Table:
    """All entries for one output, sorted. Raises Unavailable if they are not as many as were left
    for it."""
    entries = joined(read_shares(LocalDisk(), [share.file for share in shared], number))
    expected = sum(share.entries[number] for share in shared)
    if entries.num_rows != expected:
        raise Unavailable("not-ready", entries=entries.num_rows, expected=expected)
    return sorted_entries(entries)


def _written(run: BackfillRun, shared: Sequence[Shared], number: int) -> BackfillReceipt:
    """One file of all its shares."""
    entries = entries_shared(shared, number)
    if not entries.num_rows:
        return BackfillReceipt(0, None, (), 0)
    limit = max(OFFENDERS_MAX // run.outputs, 1)
    duplicates, total = duplicates_of(entries, run.index, limit) if run.index.unique else ((), 0)
    output = run.output(f"{own_name(f'{number}')}.parquet")
    file = write_entries(entries, output, run.index.family)
    return BackfillReceipt(entries.num_rows, file, duplicates, total)


def tidied(spark: SparkSession, run: BackfillRun, files: Sequence[DataFile]) -> None:
    """Deletes what the run has written, but those files."""
    shortly(spark, partial(_tidy, run), [[file.name for file in files]])


def _tidy(run: BackfillRun, names: list[str]) -> None:
    remove_strays(run.output(""), run.token, names)


def joined(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables([file_schema(ENTRY_COLUMNS).empty_table(), *tables])
