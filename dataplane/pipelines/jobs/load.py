"""Rows of Parquet files become sorted files of the regions where they belong.

Executors look at the files, read their row groups, judge the rows, share them out by region and
range of keys, sort, and write. What is shared out stays in files (`shares`). The driver sees names,
counts and some keys. It is content when every row was read once, and has arrived once where it is
written.
"""

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from dataplane.pipelines.jobs.executor import (
    remove_strays,
)
from dataplane.pipelines.jobs.load_input import REGION, InputReader, found_at, look_at
from dataplane.pipelines.jobs.load_plan import (
    InputFile,
    Outputs,
    Piece,
    Sample,
    cut_outputs,
    cut_pieces,
    digest_of,
    needs_samples,
    straight_pieces,
)
from dataplane.pipelines.jobs.load_sorted import LoadRun, write_sorted, write_straight
from dataplane.pipelines.jobs.shares import ShareFile, read_shares, write_shares
from dataplane.pipelines.pace import PaceClient
from dataplane.pipelines.tasks import Watch, on_executors, own_name, shortly
from dataplane.region.check.row_checks import violations
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.format.columns import KEY
from dataplane.region.format.key_order import in_key_order, order_of
from dataplane.region.format.key_range import rows_below
from dataplane.region.indexes.index_entries import whole
from metasrv_base.errors import Refused, Unavailable
from metasrv_base.wire.node.jobs import LoadedRegion, LoadJob, LoadJobResult, LoadRegion
from metasrv_base.wire.node.offenders import (
    LISTED_CHARS_MAX,
    OFFENDERS_MAX,
    ViolatingRow,
    first_within,
)
from metasrv_base.wire.node.orders import DataFile


@dataclass(frozen=True, slots=True)
class PieceTally:
    """The result of one piece."""

    rows: int
    sent: Counter[int]
    """Rows, by output."""
    file: ShareFile
    violations: tuple[ViolatingRow, ...]
    violations_total: int


@dataclass(frozen=True, slots=True)
class LoadReceipt:
    """The result of one output that rows were sent to. `file` None: some keys stand in it twice."""

    output: int
    rows: int
    file: DataFile | None
    repeated: tuple[str, ...] = ()
    repeated_total: int = 0


@dataclass(frozen=True, slots=True)
class Loaded:
    """Files with all rows, by region, and the faults of these rows."""

    rows: int
    files: Mapping[int, list[DataFile]]
    violations: Sequence[ViolatingRow]
    violations_total: int
    repeated: Sequence[str] = ()
    repeated_total: int = 0


def load(spark: SparkSession, job: LoadJob, watch: Watch) -> LoadJobResult:
    """Raises Refused for files that the table cannot take, or that are others than before; else
    Unavailable, retryable."""
    files = _files_of(spark, job)
    digest = digest_of(files)
    if job.input_digest not in (None, digest):
        given, expected = "other files", "those of which other regions have the rows"
        raise Refused("invalid-request", pointer="/paths", found=given, expected=expected)
    _ = InputReader(job).row_rules
    rows = sum(file.rows for file in files)
    with watch.paced(rows) as pace:
        run = LoadRun(job, secrets.token_hex(4), pace)
        loaded = _straight(spark, run, files, watch) or _by_shares(spark, run, files, watch)
    if loaded.rows != rows:
        raise Unavailable("not-ready", rows_read=loaded.rows, expected=rows)
    watch.check()
    names = {region: [file.name for file in some] for region, some in loaded.files.items()}
    shortly(spark, partial(_tidy, run, names), job.regions if rows else ())
    return LoadJobResult(
        job_id=job.job_id,
        input_digest=digest,
        files_in=len(files),
        rows_in=rows,
        bytes_in=sum(file.bytes for file in files),
        bytes_out=sum(file.bytes for some in loaded.files.values() for file in some),
        regions=[LoadedRegion(number=region, files=some) for region, some in loaded.files.items()],
        repeated=first_within(loaded.repeated[:OFFENDERS_MAX], LISTED_CHARS_MAX),
        repeated_total=loaded.repeated_total,
        violations=first_within(loaded.violations[:OFFENDERS_MAX], LISTED_CHARS_MAX),
        violations_total=loaded.violations_total,
    )


def _files_of(spark: SparkSession, job: LoadJob) -> list[InputFile]:
    """Input files by path. One task lists a folder, and several look at its files."""
    listings = shortly(spark, partial(found_at, job.columns, job.folders), job.paths)
    files = {file.path: file for file in listings if isinstance(file, InputFile)}
    listed = {path for paths in listings if not isinstance(paths, InputFile) for path in paths}
    rest = shortly(spark, partial(look_at, job.columns), sorted(listed - files.keys()))
    files |= {file.path: file for file in rest}
    return [files[path] for path in sorted(files)]


def _straight(
    spark: SparkSession, run: LoadRun, files: Sequence[InputFile], watch: Watch
) -> Loaded | None:
    """Loads an input that is in key order without a sort; returns None if it is not known to be in
    order, or is not."""
    if len(run.job.regions) != 1 or not InputReader(run.job).has_one_region:
        return None
    pieces = straight_pieces(files, spark.sparkContext.defaultParallelism)
    written = write_straight(spark, run, pieces) if pieces else None
    watch.check()
    if written is None:
        return None
    (region,) = run.job.regions
    return Loaded(
        sum(piece.rows for piece in written),
        {region.number: [piece.file for piece in written]},
        [violation for piece in written for violation in piece.violations],
        sum(piece.violations_total for piece in written),
    )


def _by_shares(
    spark: SparkSession, run: LoadRun, files: Sequence[InputFile], watch: Watch
) -> Loaded:
    pieces, at_once = cut_pieces(files), spark.sparkContext.defaultParallelism
    sampled = pieces if needs_samples(files, at_once) else ()
    samples = on_executors(spark, partial(_sampled, run.job), sampled)
    watch.check()
    regions = [region.number for region in run.job.regions]
    outputs = cut_outputs(regions, chain.from_iterable(samples), files, at_once)
    tallies, receipts = _receipts(spark, run, outputs, pieces, watch)
    written: dict[int, list[DataFile]] = {}
    for receipt in sorted(receipts, key=lambda receipt: receipt.output):
        if receipt.file is not None:
            written.setdefault(outputs.regions[receipt.output], []).append(receipt.file)
    return Loaded(
        sum(tally.rows for tally in tallies),
        written,
        [violation for tally in tallies for violation in tally.violations],
        sum(tally.violations_total for tally in tallies),
        [key for receipt in receipts for key in receipt.repeated],
        sum(receipt.repeated_total for receipt in receipts),
    )


def _sampled(job: LoadJob, piece: Piece) -> list[Sample]:
    return InputReader(job).samples(piece)


def _receipts(
    spark: SparkSession, run: LoadRun, outputs: Outputs, pieces: Sequence[Piece], watch: Watch
) -> tuple[list[PieceTally], list[LoadReceipt]]:
    """Raises Unavailable if not every row has arrived once where it was sent."""
    tallies = on_executors(spark, partial(_shared, run, outputs), pieces)
    watch.check()
    sent: Counter[int] = sum((tally.sent for tally in tallies), Counter())
    left = [tally.file for tally in tallies]
    receipts = on_executors(spark, partial(_write, run, outputs, left), sorted(sent))
    arrived = Counter({receipt.output: receipt.rows for receipt in receipts})
    if sent != arrived:
        raise Unavailable("not-ready", rows_arrived=arrived.total(), expected=sent.total())
    return tallies, receipts


def _shared(run: LoadRun, outputs: Outputs, piece: Piece) -> PieceTally:
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
            violating, count = violations(part, reader.row_rules, OFFENDERS_MAX - len(named))
            named.extend(violating)
            total += count
            for output, share in parted(part, outputs):
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
        cuts = [0, *(rows_below(own, bound) for bound in outputs.bounds[region]), own.num_rows]
        for offset, (low, high) in enumerate(pairwise(cuts)):
            if low < high:
                yield outputs.first[region] + offset, own.slice(low, high - low)


def _by_region_and_key(rows: pa.Table) -> pa.Table:
    numbers = rows.column(REGION).to_numpy()
    if len(numbers) and (numbers == numbers[0]).all():
        return in_key_order(rows, KEY)
    order = order_of(whole(rows.column(KEY)))
    order = order[np.argsort(numbers[order], kind="stable")]
    return rows.combine_chunks().take(pa.array(order))


def _write(run: LoadRun, outputs: Outputs, left: Sequence[ShareFile], number: int) -> LoadReceipt:
    """One file of all rows for an output."""
    rows = pa.concat_tables(read_shares(LocalDisk(), left, number))
    with closing(PaceClient(run.pace)) as client:
        client.take(_half(rows.num_rows))
    rows = in_key_order(rows, KEY)
    repeated, total = repeated_keys(rows)
    if total:
        return LoadReceipt(number, rows.num_rows, None, tuple(repeated), total)
    region = next(region for region in run.job.regions if region.number == outputs.regions[number])
    output = run.output(region.root, f"{own_name(f'{number}')}.parquet")
    file = write_sorted(run, rows, output, region.version)
    return LoadReceipt(number, rows.num_rows, file)


def repeated_keys(rows: pa.Table) -> tuple[list[str], int]:
    """Returns the first keys, as hex, that more than one row has, and the number of all such keys.
    Rows are sorted by key."""
    keys = rows.column(KEY).combine_chunks()
    same = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    firsts = np.flatnonzero(same & ~np.concatenate(([False], same[:-1])))
    repeated: list[bytes] = keys.take(pa.array(firsts[:OFFENDERS_MAX])).to_pylist()
    return [key.hex() for key in repeated], len(firsts)


def _half(rows: int) -> int:
    return (rows + 1) // 2


def _tidy(run: LoadRun, names: Mapping[int, Sequence[str]], region: LoadRegion) -> None:
    remove_strays(run.output(region.root, ""), run.token, names.get(region.number, ()))
