"""A region's rows as of a mark are looked at, range by range: which of them break a constraint."""

from contextlib import closing
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from dataplane.pipelines.jobs.backfill_plan import PIECE_ROWS, Survey, cut_pieces
from dataplane.pipelines.jobs.entry_files import rows_at_mark, survey_file
from dataplane.pipelines.pace import PaceAddress, PaceClient
from dataplane.pipelines.tasks import Watch, on_executors, shortly
from dataplane.region.check.row_checks import RowRule, violations
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.format.columns import ColumnDef, chosen, columns_told
from dataplane.region.format.key_range import KeyRange
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.inputs import BorrowedFile, Snapshot
from metasrv_base.wire.node.jobs import ValidateJob, ValidateResult
from metasrv_base.wire.node.offenders import (
    LISTED_CHARS_MAX,
    OFFENDERS_MAX,
    ViolatingRow,
    first_within,
)


@dataclass(frozen=True, slots=True)
class ValidateRun:
    """Goes with every task."""

    snapshot: Snapshot
    row_rules: tuple[RowRule, ...]
    pace: PaceAddress

    @property
    def columns(self) -> tuple[ColumnDef, ...]:
        """The columns that the constraints name."""
        named = {column.id for rule in self.row_rules for column in rule.columns}
        return chosen(columns_told(self.snapshot.columns), named)


@dataclass(frozen=True, slots=True)
class RangeVerdict:
    """The result for one range of rows."""

    read: int
    """Stored rows."""
    rows: int
    violations: tuple[ViolatingRow, ...]
    total: int


def validate(spark: SparkSession, job: ValidateJob, watch: Watch) -> ValidateResult:
    """Raises Unavailable: `region-lost` for an input that is gone or damaged, else retryable.
    Raises Refused for a constraint that makes no sense of the snapshot's columns."""
    snapshot = job.snapshot
    columns = columns_told(snapshot.columns)
    row_rules = tuple(RowRule.of(check, columns) for check in job.checks)
    with watch.paced(snapshot.rows) as pace:
        surveys = shortly(spark, _survey, snapshot.files)
        watch.check()
        pieces = cut_pieces(surveys, PIECE_ROWS) if snapshot.files else ()
        verdicts = on_executors(
            spark, partial(_validate_range, ValidateRun(snapshot, row_rules, pace)), pieces
        )
    read = sum(verdict.read for verdict in verdicts)
    if read != snapshot.rows:
        raise Unavailable("not-ready", rows_read=read, expected=snapshot.rows)
    violating = [violation for verdict in verdicts for violation in verdict.violations]
    return ValidateResult(
        job_id=job.job_id,
        rows_in=sum(verdict.rows for verdict in verdicts),
        violations=first_within(violating[:OFFENDERS_MAX], LISTED_CHARS_MAX),
        violations_total=sum(verdict.total for verdict in verdicts),
    )


def _survey(borrowed: BorrowedFile) -> Survey:
    return survey_file(LocalDisk(), borrowed, None)


def _validate_range(run: ValidateRun, keys: KeyRange) -> RangeVerdict:
    read = rows = total = 0
    named: list[ViolatingRow] = []
    with closing(PaceClient(run.pace)) as client:

        def seen(count: int) -> None:
            nonlocal read
            client.take(count)
            read += count

        for part in rows_at_mark(LocalDisk(), run.snapshot, keys, run.columns, seen):
            rows += part.num_rows
            violating, count = violations(part, run.row_rules, OFFENDERS_MAX - len(named))
            named += violating
            total += count
    return RangeVerdict(read, rows, tuple(named), total)
