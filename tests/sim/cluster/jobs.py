"""The Jobs port without Spark: the executor's own code, a piece at a time, by one task.

It dies with its server, may fail between any two pieces, and leaves behind what it has written.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa

from dataplane.pipelines.jobs.entry_files import rows_at_mark, write_entries
from dataplane.pipelines.jobs.executor import Output, copy_file, read_input, write_range
from dataplane.pipelines.jobs.plan import MovePlan, RowFamily, plan_move
from dataplane.region.check.row_checks import RowRule, violations
from dataplane.region.check.table_check import entry_faults, merged, row_faults
from dataplane.region.compaction.version_retention import KeptVersions
from dataplane.region.format.columns import KEY, VERSION, ColumnDef, columns_told, file_schema
from dataplane.region.format.families import ENTRY_COLUMNS, ROWS
from dataplane.region.format.key_range import KeyRange
from dataplane.region.indexes.index_entries import IndexDef, duplicates_of, entries_of
from dataplane.region.memory.memtable import sorted_by_key
from metasrv_base.errors import Corrupt, Unavailable
from metasrv_base.wire.node.inputs import Snapshot
from metasrv_base.wire.node.jobs import (
    BackfillJob,
    BackfillResult,
    CheckJob,
    CheckResult,
    Job,
    LoadJob,
    LoadJobResult,
    MoveJob,
    MoveResult,
    RowCheck,
    ValidateJob,
    ValidateResult,
)
from metasrv_base.wire.node.offenders import OFFENDERS_MAX
from metasrv_base.wire.node.orders import DataFile
from procedures.ports import Progress
from tests.sim.cluster.disks import Disks, ProcessDisk
from tests.sim.cluster.message_fates import Weather
from tests.sim.loop import SimClock, SimLoop

PIECE_MS = (5, 50, 500, 6_000)
"""Durations of a piece of a job while there is trouble."""


@dataclass
class SimJobs:
    disks: Disks
    loop: SimLoop
    node: str
    weather: Weather
    _runs: "count[int]" = field(default_factory=lambda: count(1))

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        disk = ProcessDisk(self.disks, self.loop, self.node)
        plan, run = plan_move(job.borrowed), f"{self.node}-{next(self._runs)}".replace("#", "-")

        def output(task: str) -> Output:
            return Output(disk, job.borrowed.root, f"{job.attempt}/{run}-{task}.parquet")

        files: list[DataFile] = []
        for number, source in enumerate(plan.copies):
            await self._trouble(job)
            files.append(await asyncio.to_thread(copy_file, source, output(f"copy-{number}")))
            progress(number + 1, len(plan.copies) + 1, "inputs")
        copied = sum(file.rows for file in files)
        read = 0
        for family in plan.families:
            await self._trouble(job)
            target = Target(disk, plan, output(f"rows-{family.number}"))
            read += await asyncio.to_thread(_rewrite, target, family, files)
        await self._trouble(job)
        self.weather.sometimes["a job that moved a region"] += 1
        return MoveResult(
            job_id=job.job_id,
            files=files,
            rows_in=copied + read,
            rows_out=sum(file.rows for file in files),
            bytes_in=plan.bytes,
            bytes_out=sum(file.bytes for file in files),
            copied_files=len(plan.copies),
            rewritten_segments=len(job.borrowed.segments),
        )

    async def backfill(self, job: BackfillJob, *, progress: Progress) -> BackfillResult:
        disk = ProcessDisk(self.disks, self.loop, self.node)
        columns, asked = columns_told(job.snapshot.columns), job.index
        index = IndexDef.of(asked.id, asked.columns, columns, unique=asked.unique)
        await self._trouble(job)
        rows = await asyncio.to_thread(_rows_of, disk, job.snapshot, index.columns)
        progress(job.snapshot.rows, job.snapshot.rows, "rows")
        parts = [entries_of(part, index) for part in rows]
        empty = file_schema(ENTRY_COLUMNS).empty_table()
        entries = sorted_by_key(pa.concat_tables([empty, *parts]))
        files: list[DataFile] = []
        if entries.num_rows:
            await self._trouble(job)
            run = f"{self.node}-{next(self._runs)}".replace("#", "-")
            output = Output(disk, job.snapshot.root, f"{job.attempt}/{run}.parquet")
            files = [await asyncio.to_thread(write_entries, entries, output, asked.id)]
        await self._trouble(job)
        found, total = duplicates_of(entries, index, OFFENDERS_MAX) if asked.unique else ((), 0)
        self.weather.sometimes["a job that made entries"] += 1
        return BackfillResult(
            job_id=job.job_id,
            files=files,
            rows_in=entries.num_rows,
            entries=entries.num_rows,
            bytes_in=job.snapshot.bytes,
            bytes_out=sum(file.bytes for file in files),
            duplicates=list(found),
            duplicates_total=total,
        )

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        disk = ProcessDisk(self.disks, self.loop, self.node)
        columns = columns_told(job.snapshot.columns)
        row_rules = [RowRule.of(check, columns) for check in job.checks]
        await self._trouble(job)
        rows = await asyncio.to_thread(_rows_of, disk, job.snapshot, columns)
        progress(job.snapshot.rows, job.snapshot.rows, "rows")
        await self._trouble(job)
        found, total = violations(pa.concat_tables(rows), row_rules, OFFENDERS_MAX)
        return ValidateResult(
            job_id=job.job_id,
            rows_in=sum(part.num_rows for part in rows),
            violations=list(found),
            violations_total=total,
        )

    async def check(self, job: CheckJob, *, progress: Progress) -> CheckResult:
        """Without a look at names and footers: rows and entries are what changes meanwhile."""
        disk = ProcessDisk(self.disks, self.loop, self.node)
        columns = columns_told(job.snapshot.columns)
        required = [RowCheck(constraint=id, kind="not-null", columns=[id]) for id in job.required]
        await self._trouble(job)
        rows = pa.concat_tables(
            await asyncio.to_thread(_rows_of, disk, of_family(job.snapshot, ROWS), columns)
        )
        row_rules = [[RowRule.of(one, columns) for one in some] for some in (required, job.checks)]
        parts = [row_faults(rows, *row_rules)]
        entries = 0
        for one in job.indexes:
            index = IndexDef.of(one.id, one.columns, columns, unique=one.unique)
            held = of_family(job.snapshot, one.id)
            stored = pa.concat_tables(await asyncio.to_thread(_rows_of, disk, held, ENTRY_COLUMNS))
            entries += stored.num_rows
            expected = entries_of(rows, index)
            parts.append(entry_faults(expected, stored, index, complete=one.complete))
        await self._trouble(job)
        return CheckResult(
            job_id=job.job_id, rows_in=rows.num_rows, entries=entries, faults=merged(parts)
        )

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        from tests.sim.plots.reshaped.loads import MemoryLoad  # with Spark's own modules: a second

        disk = ProcessDisk(self.disks, self.loop, self.node)
        run = f"{self.node}-{next(self._runs)}".replace("#", "-")
        await self._trouble(job)
        loading = MemoryLoad(job, self.disks.inputs, run)
        numbers = await asyncio.to_thread(loading.read)
        for done, number in enumerate(numbers, start=1):
            await self._trouble(job)
            await asyncio.to_thread(loading.write, number, disk)
            progress(done, len(numbers), "outputs")
        await self._trouble(job)
        self.weather.sometimes["a job that loaded files"] += 1
        return loading.result()

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        """Each of these jobs is over at once."""

    async def _trouble(self, job: Job) -> None:
        """Beside statements that go on, for long now and then."""
        if self.weather.job_fails:
            await SimClock(self.loop).sleep_ms(self.weather.random.choice(PIECE_MS))
        if self.weather.random.random() < self.weather.job_fails:
            self.weather.sometimes["a job that died half way"] += 1
            raise Unavailable(what="job", name=job.job_id)


@dataclass(frozen=True)
class Target:
    disk: ProcessDisk
    plan: MovePlan
    output: Output


def _rewrite(target: Target, family: RowFamily, files: list[DataFile]) -> int:
    """Adds the file, if any row is to be kept; how many were read."""
    inputs = target.plan.rewrites
    try:
        found = [table for one in inputs for _, table in read_input(target.disk, one, [family])]
    except Corrupt as error:
        raise Unavailable("region-lost", detail=str(error)) from error
    if not sum(table.num_rows for table in found):
        return 0
    rows = pa.concat_tables(found).sort_by([(KEY, "ascending"), (VERSION, "descending")])
    written = write_range(iter([rows]), target.output, family, KeptVersions(target.plan.marks))
    if written.file is not None:
        files.append(written.file)
    return int(rows.num_rows)


def of_family(snapshot: Snapshot, family: int) -> Snapshot:
    files = [one for one in snapshot.files if one.file.family == family]
    return snapshot.model_copy(update={"files": files})


def _rows_of(disk: ProcessDisk, snapshot: Snapshot, columns: Sequence[ColumnDef]) -> list[pa.Table]:
    empty = file_schema(columns).empty_table()
    try:
        return [empty, *rows_at_mark(disk, snapshot, KeyRange(), columns)]
    except Corrupt as error:
        raise Unavailable("region-lost", detail=str(error)) from error
