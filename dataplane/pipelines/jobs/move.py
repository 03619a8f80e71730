"""A region's borrowed inputs become files of its own: two passes of executors, and their counts.

The first pass copies files, and leaves the rows of every other input as a sorted run (`shares`);
the second merges the runs and writes. The driver sees names, counts, checksums and some keys: the
rows of the runs and those that were merged are compared by count and order-independent checksum.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from dataplane.pipelines.jobs.executor import (
    Output,
    Rewritten,
    copy_file,
    read_input,
    remove_strays,
    sorted_run,
    write_range,
)
from dataplane.pipelines.jobs.plan import MovePlan, RewriteInput, RowFamily, input_bytes, plan_move
from dataplane.pipelines.jobs.shares import ShareFile, read_shares, write_shares
from dataplane.pipelines.tasks import Counter, Watch, on_executors, own_name, shortly
from dataplane.region.compaction.version_retention import KeptVersions
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.format.checksum import RowsDigest
from dataplane.region.format.columns import KEY, file_schema
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.parts import PartSize, cut
from dataplane.region.format.stored_digest import digest_stored
from dataplane.region.indexes.index_entries import sorted_entries
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.inputs import BorrowedFile
from metasrv_base.wire.node.jobs import MoveJob, MoveResult
from metasrv_base.wire.node.orders import DataFile

CHUNK = PartSize(rows=1 << 20, bytes=4 << 20)
"""The size of a chunk of a run; the first key of each is a sample of the run's keys."""


@dataclass(frozen=True, slots=True)
class MoveRun:
    """One run of a job; goes with every task. `token` keeps its files apart from any other's."""

    root: str
    attempt: str
    token: str
    plan: MovePlan

    def output(self, task: str) -> Output:
        return Output(LocalDisk(), self.root, f"{self.attempt}/{self.token}-{task}")


@dataclass(frozen=True, slots=True)
class Left:
    """The result for one family of one input."""

    read: int
    """Rows read."""
    kept: RowsDigest
    """The rows that are in the run."""
    samples: tuple[bytes, ...]
    """Keys at about equal distances in bytes."""


@dataclass(frozen=True, slots=True)
class LeftRuns:
    """The result of one input."""

    families: tuple[Left, ...]
    """Families in the order of the plan."""
    file: ShareFile


@dataclass(frozen=True, slots=True)
class Part:
    """A range of keys of one family, by its place in the plan."""

    family: int
    keys: KeyRange


def move(spark: SparkSession, job: MoveJob, watch: Watch) -> MoveResult:
    """Raises Unavailable: `region-lost` for an input that is gone or damaged, else retryable."""
    plan = plan_move(job.borrowed)
    run = MoveRun(job.borrowed.root, job.attempt, secrets.token_hex(4), plan)
    counter = watch.begin(plan.bytes)
    work = [*((True, item) for item in plan.copies), *((False, item) for item in plan.rewrites)]
    done = on_executors(spark, partial(_copied_or_left, run, counter), list(enumerate(work)))
    copied = [file for file in done if isinstance(file, DataFile)]
    runs = [left_runs for left_runs in done if isinstance(left_runs, LeftRuns)]
    watch.check()
    rewritten = _merged(spark, run, counter, runs)
    files = [*copied, *(rewrite.file for rewrite in rewritten if rewrite.file is not None)]
    watch.check()
    if work:
        shortly(spark, partial(_tidy, run), [[file.name for file in files]])
    small = sum(isinstance(source, BorrowedFile) for source in plan.rewrites)
    read = sum(left.read for left_runs in runs for left in left_runs.families)
    return MoveResult(
        job_id=job.job_id,
        files=files,
        rows_in=sum(file.rows for file in copied) + read,
        rows_out=sum(file.rows for file in files),
        bytes_in=plan.bytes,
        bytes_out=sum(file.bytes for file in files),
        copied_files=len(copied),
        rewritten_segments=len(plan.rewrites) - small,
        rewritten_files=small,
    )


def _copied_or_left(
    run: MoveRun, counter: Counter, numbered: tuple[int, tuple[bool, RewriteInput]]
) -> DataFile | LeftRuns:
    number, (is_copy, source) = numbered
    if not is_copy:
        return _left(run, number, source)
    assert isinstance(source, BorrowedFile)
    copied = copy_file(source, run.output(f"{own_name(f'copy-{number}')}.parquet"))
    counter.add(input_bytes(source))
    return copied


def _left(run: MoveRun, number: int, source: RewriteInput) -> LeftRuns:
    """Leaves the rows of an input as one sorted run for each family."""
    plan = run.plan
    tables = {
        family.number: [file_schema(family.columns).empty_table()] for family in plan.families
    }
    for family, table in read_input(LocalDisk(), source, plan.families):
        tables[family.number].append(table)
    left: list[Left] = []

    def shares() -> Iterator[tuple[int, pa.Table]]:
        for position, family in enumerate(plan.families):
            family_tables = tables.pop(family.number)
            kept = sorted_run(family_tables, KeptVersions(plan.marks))
            parts = list(cut(kept, CHUNK))
            samples = tuple(part.column(KEY)[0].as_py() for part in parts)
            left.append(Left(sum(map(len, family_tables)), digest_stored(kept), samples))
            yield from ((position, part) for part in parts)

    file = write_shares(run.output(own_name(f"run-{number}")), shares())
    return LeftRuns(tuple(left), file)


def _merged(
    spark: SparkSession, run: MoveRun, counter: Counter, runs: Sequence[LeftRuns]
) -> list[Rewritten]:
    """The second pass. Raises Unavailable if what was merged is not what was left."""
    families = range(len(run.plan.families) if runs else 0)
    kept = [
        sum((left_runs.families[family].kept for left_runs in runs), RowsDigest())
        for family in families
    ]
    total = sum(digest.rows for digest in kept)
    parts = [
        Part(family, keys)
        for family in families
        if kept[family].rows
        for keys in _ranges(run.plan, [left_runs.families[family] for left_runs in runs], total)
    ]
    files = [left_runs.file for left_runs in runs]
    done = on_executors(spark, partial(_merged_part, run, counter, files, total), parts)
    for family in families:
        pairs = zip(parts, done, strict=True)
        merged = sum(
            (rewrite.received for part, rewrite in pairs if part.family == family), RowsDigest()
        )
        if merged != kept[family]:
            raise Unavailable("not-ready", rows_merged=merged.rows, expected=kept[family].rows)
    return done


def _ranges(plan: MovePlan, runs: Sequence[Left], total: int) -> list[KeyRange]:
    """Divides the keys into ranges, one for each file. *total*: rows of all families."""
    samples = sorted(key for left in runs for key in left.samples)
    files = plan.outputs(sum(left.kept.rows for left in runs), total)
    cuts = (samples[len(samples) * number // files] for number in range(1, files))
    bounds = list(dict.fromkeys(cut for cut in cuts if cut > samples[0]))
    return [KeyRange(*pair) for pair in zip([b"", *bounds], [*bounds, None], strict=True)]


def _merged_part(
    run: MoveRun, counter: Counter, files: Sequence[ShareFile], total: int, part: Part
) -> Rewritten:
    family: RowFamily = run.plan.families[part.family]
    tables = [file_schema(family.columns).empty_table()]
    tables += read_shares(LocalDisk(), files, part.family, part.keys)
    kept = KeptVersions(run.plan.marks)
    output = run.output(f"{own_name(f'rows-{family.number}')}.parquet")
    rows = sorted_entries(pa.concat_tables(tables))
    written = write_range(iter([rows]), output, family, kept)
    counter.add(run.plan.rewritten_bytes * written.received.rows // total)
    return written


def _tidy(run: MoveRun, names: Sequence[str]) -> None:
    remove_strays(run.output(""), run.token, names)
