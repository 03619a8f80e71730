"""All that a region stores as of a mark, held against its table's schema: what does not fit.

Rows are judged where they are read. For each index the entries that rows must have are shared out
by ranges of entry keys, as when the index is filled, and joined there with those that are stored.
Nothing is written but these shares, which go again. Which rules there are:
metasrv_base/wire/node/checks.py.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from dataplane.pipelines.jobs.backfill import BackfillRun as Entries
from dataplane.pipelines.jobs.backfill import Shared, all_shared, entries_shared, joined, tidied
from dataplane.pipelines.jobs.backfill_plan import PIECE_ROWS, Survey, cut_outputs, cut_pieces
from dataplane.pipelines.jobs.entry_files import rows_at_mark, survey_file
from dataplane.pipelines.pace import PaceAddress, PaceClient
from dataplane.pipelines.tasks import Watch, on_executors, shortly
from dataplane.region.check.row_checks import RowRule
from dataplane.region.check.table_check import (
    entry_faults,
    family_faults,
    merged,
    name_faults,
    row_faults,
    value_faults,
)
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.disk.lost import lost_if_missing
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.files.file_reader import FileReader, FileSource
from dataplane.region.files.footer import read_footer
from dataplane.region.format.columns import chosen, columns_told
from dataplane.region.format.families import ENTRY_COLUMNS, ROWS
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.names import ATTEMPTS, DATA
from dataplane.region.indexes.index_entries import IndexDef
from dataplane.region.manifests.adoption import entry_of
from metasrv_base.errors import NotFound, Unavailable
from metasrv_base.wire.node.checks import CheckedIndex, DataFaults
from metasrv_base.wire.node.inputs import BorrowedFile, Snapshot
from metasrv_base.wire.node.jobs import CheckJob, CheckResult, RowCheck


@dataclass(frozen=True, slots=True)
class Rules:
    """The constraints on rows; sent with every task that reads them."""

    rows: Snapshot
    required: tuple[RowRule, ...]
    constraints: tuple[RowRule, ...]
    pace: PaceAddress


@dataclass(frozen=True, slots=True)
class Join:
    """The comparison of one index with its rows; sent with every task."""

    run: Entries
    """The run that makes the entries that rows must have."""
    shared: Sequence[Shared]
    """The files of those entries."""
    stored: Snapshot
    """The snapshot of the entries that the index has."""
    complete: bool


@dataclass(frozen=True, slots=True)
class Looked:
    """The result of one task: what it has read, and the faults that it found."""

    rows_read: int
    """Stored rows, of all versions."""
    entries_read: int
    rows: int
    """Rows as of the mark."""
    entries: int
    faults: DataFaults


def check(spark: SparkSession, job: CheckJob, watch: Watch) -> CheckResult:
    """Raises Unavailable: `region-lost` for an input that is gone or damaged, else retryable.
    Raises Refused for an index or a constraint that makes no sense of the snapshot's columns."""
    snapshot, token = job.snapshot, secrets.token_hex(4)
    rows = of_family(snapshot, ROWS)
    columns = columns_told(snapshot.columns)
    required = [RowCheck(constraint=id, kind="not-null", columns=[id]) for id in job.required]
    indexes = [(spec, _definition(spec, job)) for spec in job.indexes]
    parts = [
        family_faults([item.file for item in snapshot.files], {item.id for item in job.indexes})
    ]
    parts += shortly(spark, partial(_values_of, frozenset(job.owned)), rows.files)
    parts += shortly(spark, _names_of, [snapshot.root])
    stored = {spec.id: of_family(snapshot, spec.id) for spec in job.indexes}
    total = rows.rows * (1 + len(indexes)) + sum(entries.rows for entries in stored.values())
    with watch.paced(total) as pace:
        rules = Rules(
            rows,
            tuple(RowRule.of(rule, columns) for rule in required),
            tuple(RowRule.of(rule, columns) for rule in job.checks),
            pace,
        )
        pieces = cut_pieces(shortly(spark, partial(_survey, None), rows.files), PIECE_ROWS)
        watch.check()
        looked = on_executors(spark, partial(_check_range, rules), pieces)
        _must_be_whole(sum(outcome.rows_read for outcome in looked), rows)
        for spec, index in indexes:
            watch.check()
            bounds = _bounds(spark, rows, index)
            run = Entries(rows, index, f"{ATTEMPTS}/check-{token}", token, pieces, bounds, pace)
            shared = all_shared(spark, run)
            join = Join(run, shared, stored[spec.id], spec.complete)
            joins = on_executors(spark, partial(_joined, join), range(run.outputs))
            _must_be_whole(sum(joined.entries_read for joined in joins), stored[spec.id])
            tidied(spark, run, ())
            looked += joins
    return CheckResult(
        job_id=job.job_id,
        rows_in=sum(outcome.rows for outcome in looked),
        entries=sum(outcome.entries for outcome in looked),
        faults=merged([*parts, *(outcome.faults for outcome in looked)]),
    )


def of_family(snapshot: Snapshot, family: int) -> Snapshot:
    files = [borrowed for borrowed in snapshot.files if borrowed.file.family == family]
    return snapshot.model_copy(update={"files": files})


def _definition(spec: CheckedIndex, job: CheckJob) -> IndexDef:
    return IndexDef.of(
        spec.id, spec.columns, columns_told(job.snapshot.columns), unique=spec.unique
    )


def _must_be_whole(read: int, snapshot: Snapshot) -> None:
    """Every stored row or entry is read once, or nothing is said."""
    if read != snapshot.rows:
        raise Unavailable("not-ready", rows_read=read, expected=snapshot.rows)


def _survey(index: IndexDef | None, borrowed: BorrowedFile) -> Survey:
    return survey_file(LocalDisk(), borrowed, index)


# Files ------------------------------------------------------------------------------------------


def _values_of(owned: frozenset[int], borrowed: BorrowedFile) -> DataFaults:
    """The number of rows of the file that have a value in each column, by the footer."""
    disk, entry = LocalDisk(), entry_of(borrowed.file, borrowed.root)
    path = FileReader(FileSource(disk, borrowed.root, BlockCache()), entry).path
    with lost_if_missing(borrowed.root, entry.name):
        metadata = read_footer(disk, path, entry).metadata
    counts: dict[int, int] = {}
    for position in range(metadata.num_columns):
        name = metadata.schema.column(position).path
        if not (name[:1] == "c" and name[1:].isdigit()):
            continue
        groups = (metadata.row_group(group) for group in range(metadata.num_row_groups))
        nulls = [(group.num_rows, group.column(position).statistics) for group in groups]
        counts[int(name[1:])] = sum(
            rows - (stats.null_count if stats is not None else 0) for rows, stats in nulls
        )
    return value_faults(borrowed.file.name, counts, owned)


def _names_of(root: str) -> DataFaults:
    return name_faults(dict(_sizes(LocalDisk(), root)))


def _sizes(disk: Disk, root: str, folder: str = "") -> Iterator[tuple[str, int]]:
    """The path and size of every file; one that is removed meanwhile is left out."""
    for name in disk.list(f"{root}/{folder}".rstrip("/")):
        path = f"{folder}{name}"
        if path in (DATA, ATTEMPTS) or folder == f"{ATTEMPTS}/":
            yield from _sizes(disk, root, f"{path}/")
            continue
        try:
            yield path, disk.size(f"{root}/{path}")
        except NotFound:
            continue


# Rows and entries -------------------------------------------------------------------------------


def _check_range(rules: Rules, keys: KeyRange) -> Looked:
    named = {c.id for rule in (*rules.required, *rules.constraints) for c in rule.columns}
    columns = chosen(columns_told(rules.rows.columns), named)
    read = rows = 0
    faults = []
    with closing(PaceClient(rules.pace)) as client:

        def seen(count: int) -> None:
            nonlocal read
            client.take(count)
            read += count

        for part in rows_at_mark(LocalDisk(), rules.rows, keys, columns, seen):
            rows += part.num_rows
            faults.append(row_faults(part, rules.required, rules.constraints))
    return Looked(read, 0, rows, 0, merged(faults))


def _bounds(spark: SparkSession, rows: Snapshot, index: IndexDef) -> tuple[bytes, ...]:
    surveys = shortly(spark, partial(_survey, index), rows.files)
    return cut_outputs(surveys, rows.rows, spark.sparkContext.defaultParallelism)


def _joined(join: Join, number: int) -> Looked:
    """Compares the entries of one range of entry keys."""
    run, read = join.run, 0
    ends = (b"", *run.bounds, None)
    keys = KeyRange(ends[number] or b"", ends[number + 1])
    expected = entries_shared(join.shared, number)
    with closing(PaceClient(run.pace)) as client:

        def seen(count: int) -> None:
            nonlocal read
            client.take(count)
            read += count

        stored = joined(rows_at_mark(LocalDisk(), join.stored, keys, ENTRY_COLUMNS, seen))
    faults = entry_faults(expected, stored, run.index, complete=join.complete)
    return Looked(0, read, 0, stored.num_rows, faults)
