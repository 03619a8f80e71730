"""Rows of Parquet files become sorted files of the regions where they belong.

Executors look at the files, read their row groups, judge the rows, share them out by region and
range of keys, sort, and write. What is shared out stays in files (`shares`). The driver sees names,
counts and some keys. It is content when every row was read once, and has arrived once where it is
written.
"""

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from dataplane.pipelines.jobs.entry_files import is_same
from dataplane.pipelines.jobs.executor import (
    Output,
    mended_by_another_attempt,
    read_back,
    remove_strays,
)
from dataplane.pipelines.jobs.load_input import REGION, InputReader, files_at, look_at
from dataplane.pipelines.jobs.load_plan import (
    Outputs,
    Piece,
    Sample,
    cut_outputs,
    cut_pieces,
    digest_of,
    needs_samples,
)
from dataplane.pipelines.jobs.shares import ShareFile, read_shares, write_shares
from dataplane.pipelines.pace import PaceAddress, PaceClient
from dataplane.pipelines.tasks import Watch, on_executors, own_name, shortly
from dataplane.region.check.row_checks import violations
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format.columns import KEY, OP, PUT, VERSION, file_schema
from dataplane.region.format.key_order import in_key_order, order_of
from dataplane.region.format.key_range import rows_below
from dataplane.region.indexes.index_entries import whole
from dataplane.region.manifests.adoption import data_file
from metasrv_base.errors import Corrupt, Refused, Unavailable
from metasrv_base.wire.node.jobs import LoadedRegion, LoadJob, LoadJobResult, LoadRegion
from metasrv_base.wire.node.offenders import (
    LISTED_CHARS_MAX,
    OFFENDERS_MAX,
    ViolatingRow,
    first_within,
)
from metasrv_base.wire.node.orders import DataFile


@dataclass(frozen=True, slots=True)
class LoadRun:
    """One run of a job; goes with every task. `token` keeps its files apart from any other's."""

    job: LoadJob
    token: str
    outputs: Outputs
    pace: PaceAddress

    def output(self, root: str, task: str) -> Output:
        return Output(LocalDisk(), root, f"{self.job.attempt}/{self.token}-{task}")


@dataclass(frozen=True, slots=True)
class PieceTally:
    """Of one piece."""

    rows: int
    sent: Counter[int]
    """Rows, by output."""
    file: ShareFile
    violations: tuple[ViolatingRow, ...]
    violations_total: int


@dataclass(frozen=True, slots=True)
class LoadReceipt:
    """Of one output that rows were sent to. `file` None: keys stand in it twice."""

    output: int
    rows: int
    file: DataFile | None
    repeated: tuple[str, ...] = ()
    repeated_total: int = 0


def load(spark: SparkSession, job: LoadJob, watch: Watch) -> LoadJobResult:
    """Raises Refused for files that the table cannot take, or that are others than before; else
    Unavailable, retryable."""
    paths = sorted(
        set(chain.from_iterable(shortly(spark, partial(files_at, job.folders), job.paths)))
    )
    files = shortly(spark, partial(look_at, job.columns), paths)
    digest = digest_of(files)
    if job.input_digest not in (None, digest):
        found, expected = "other files", "those of which other regions have the rows"
        raise Refused("invalid-request", pointer="/paths", found=found, expected=expected)
    _ = InputReader(job).judges
    pieces, rows = cut_pieces(files), sum(file.rows for file in files)
    regions = [one.number for one in job.regions]
    at_once = spark.sparkContext.defaultParallelism
    with watch.paced(rows) as pace:
        samples = on_executors(
            spark, partial(_sampled, job), pieces if needs_samples(files, at_once) else ()
        )
        watch.check()
        outputs = cut_outputs(regions, chain.from_iterable(samples), files, at_once)
        run = LoadRun(job, secrets.token_hex(4), outputs, pace)
        tallies, receipts = _receipts(spark, run, pieces, watch)
    if sum(tally.rows for tally in tallies) != rows:
        raise Unavailable("not-ready", rows_read=sum(one.rows for one in tallies), expected=rows)
    watch.check()
    loaded = _by_region(run, receipts)
    shortly(spark, partial(_tidy, run, loaded), job.regions if pieces else ())
    broken = [violation for tally in tallies for violation in tally.violations]
    repeated = [key for receipt in receipts for key in receipt.repeated]
    return LoadJobResult(
        job_id=job.job_id,
        input_digest=digest,
        files_in=len(files),
        rows_in=rows,
        bytes_in=sum(file.bytes for file in files),
        bytes_out=sum(file.bytes for one in loaded for file in one.files),
        regions=loaded,
        repeated=first_within(repeated[:OFFENDERS_MAX], LISTED_CHARS_MAX),
        repeated_total=sum(receipt.repeated_total for receipt in receipts),
        violations=first_within(broken[:OFFENDERS_MAX], LISTED_CHARS_MAX),
        violations_total=sum(tally.violations_total for tally in tallies),
    )


def _sampled(job: LoadJob, piece: Piece) -> list[Sample]:
    return InputReader(job).samples(piece)


def _receipts(
    spark: SparkSession, run: LoadRun, pieces: Sequence[Piece], watch: Watch
) -> tuple[list[PieceTally], list[LoadReceipt]]:
    """Raises Unavailable if not every row has arrived once where it was sent."""
    tallies = on_executors(spark, partial(_shared, run), pieces)
    watch.check()
    sent: Counter[int] = sum((tally.sent for tally in tallies), Counter())
    left = [tally.file for tally in tallies]
    receipts = on_executors(spark, partial(_write, run, left), sorted(sent))
    arrived = Counter({receipt.output: receipt.rows for receipt in receipts})
    if sent != arrived:
        raise Unavailable("not-ready", rows_arrived=arrived.total(), expected=sent.total())
    return tallies, receipts


def _shared(run: LoadRun, piece: Piece) -> PieceTally:
    """Leaves the rows of a piece for the outputs where they belong."""
    reader = InputReader(run.job)
    rows = total = 0
    named: list[ViolatingRow] = []
    sent: Counter[int] = Counter()

    def shares() -> Iterator[tuple[int, pa.Table]]:
        nonlocal rows, total
        for part in reader.rows(piece):
            # A row counts for a half when it is read, and for the other when it is written.
            client.take(_half(part.num_rows))
            rows += part.num_rows
            found, count = violations(part, reader.judges, OFFENDERS_MAX - len(named))
            named.extend(found)
            total += count
            for output, share in parted(part, run.outputs):
                sent[output] += share.num_rows
                yield output, share

    root = run.job.regions[piece.number % len(run.job.regions)].root
    with closing(PaceClient(run.pace)) as client:
        file = write_shares(run.output(root, own_name(f"piece-{piece.number}")), shares())
    return PieceTally(rows, sent, file, tuple(named), total)


def parted(rows: pa.Table, outputs: Outputs) -> Iterator[tuple[int, pa.Table]]:
    """Rows by output, sorted by key; those of regions that have none are left out."""
    ordered = _by_region_and_key(rows)
    numbers = ordered.column(REGION).to_numpy()
    starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    for start, end in pairwise(starts):
        region = int(numbers[start])
        if region not in outputs.bounds:
            continue
        own = ordered.slice(start, end - start).drop_columns([REGION])
        cuts = [0, *(rows_below(own, one) for one in outputs.bounds[region]), own.num_rows]
        for place, (low, high) in enumerate(pairwise(cuts)):
            if low < high:
                yield outputs.first[region] + place, own.slice(low, high - low)


def _by_region_and_key(rows: pa.Table) -> pa.Table:
    numbers = rows.column(REGION).to_numpy()
    if len(numbers) and (numbers == numbers[0]).all():
        return in_key_order(rows, KEY)
    order = order_of(whole(rows.column(KEY)))
    order = order[np.argsort(numbers[order], kind="stable")]
    return rows.combine_chunks().take(pa.array(order))


def _write(run: LoadRun, left: Sequence[ShareFile], number: int) -> LoadReceipt:
    """One file of all rows for an output."""
    rows = pa.concat_tables(read_shares(LocalDisk(), left, number))
    with closing(PaceClient(run.pace)) as client:
        client.take(_half(rows.num_rows))
    rows = in_key_order(rows, KEY)
    repeated, total = repeated_keys(rows)
    if total:
        return LoadReceipt(number, rows.num_rows, None, tuple(repeated), total)
    region = next(one for one in run.job.regions if one.number == run.outputs.regions[number])
    output = run.output(region.root, f"{own_name(f'{number}')}.parquet")
    file = write_sorted(run, rows, output, region.version)
    return LoadReceipt(number, rows.num_rows, file)


def write_sorted(run: LoadRun, rows: pa.Table, output: Output, version: int) -> DataFile:
    """Reads back what it has written."""
    columns = InputReader(run.job).columns
    schema = file_schema(columns)
    count = rows.num_rows
    system = {
        VERSION: pa.repeat(pa.scalar(version, pa.int64()), count),
        OP: pa.repeat(pa.scalar(PUT, pa.uint8()), count),
    }
    table = pa.table(
        [system[name] if name in system else rows.column(name) for name in schema.names],
        schema=schema,
    )
    output.make_folder()
    file = data_file(
        write_rows(FileTarget(output.disk, output.root, output.name, columns), [table])
    )
    output.disk.sync_folder(output.folder)
    with mended_by_another_attempt():
        if not is_same(read_back(output.disk, output.root, file, columns), table):
            raise Corrupt(path=output.path, reason="it reads otherwise than it was written")
    return file


def repeated_keys(rows: pa.Table) -> tuple[list[str], int]:
    """Of rows sorted by key: the first keys that more rows than one have, and how many have."""
    keys = rows.column(KEY).combine_chunks()
    same = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    firsts = np.flatnonzero(same & ~np.concatenate(([False], same[:-1])))
    found: list[bytes] = keys.take(pa.array(firsts[:OFFENDERS_MAX])).to_pylist()
    return [key.hex() for key in found], len(firsts)


def _half(rows: int) -> int:
    return (rows + 1) // 2


def _by_region(run: LoadRun, receipts: Sequence[LoadReceipt]) -> list[LoadedRegion]:
    found: dict[int, list[DataFile]] = {}
    regions = run.outputs.regions
    for receipt in sorted(receipts, key=lambda one: one.output):
        if receipt.file is not None:
            found.setdefault(regions[receipt.output], []).append(receipt.file)
    return [LoadedRegion(number=number, files=files) for number, files in found.items()]


def _tidy(run: LoadRun, loaded: Sequence[LoadedRegion], region: LoadRegion) -> None:
    files = chain.from_iterable(one.files for one in loaded if one.number == region.number)
    remove_strays(run.output(region.root, ""), run.token, [file.name for file in files])
