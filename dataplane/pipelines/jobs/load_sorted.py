"""Files of a load, written: from rows that others have sorted, or straight from sorted input.

Input that is in order of keys and belongs to one region is read once and written once, piece by
piece, without shares. Whether it is in order is known for sure only when it has been read: pieces
say so, each before it writes anything, and the driver compares their ends. What turns out not to
be is loaded as any other input.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from dataplane.pipelines.jobs.entry_files import is_same
from dataplane.pipelines.jobs.executor import Output, mended_by_another_attempt, read_back
from dataplane.pipelines.jobs.load_input import REGION, InputReader
from dataplane.pipelines.jobs.load_plan import Piece
from dataplane.pipelines.pace import PaceAddress, PaceClient
from dataplane.pipelines.tasks import on_executors, own_name
from dataplane.region.check.row_checks import violations
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format.columns import KEY, OP, PUT, VERSION, file_schema
from dataplane.region.manifests.adoption import data_file
from metasrv_base.errors import Corrupt
from metasrv_base.wire.node.jobs import LoadJob
from metasrv_base.wire.node.offenders import OFFENDERS_MAX, ViolatingRow
from metasrv_base.wire.node.orders import DataFile


@dataclass(frozen=True, slots=True)
class LoadRun:
    """One run of a job; goes with every task. `token` keeps its files apart from any other's."""

    job: LoadJob
    token: str
    pace: PaceAddress

    def output(self, root: str, task: str) -> Output:
        return Output(LocalDisk(), root, f"{self.job.attempt}/{self.token}-{task}")


@dataclass(frozen=True, slots=True)
class SortedPiece:
    """A piece whose keys rise, written as a file."""

    rows: int
    low: bytes
    """The first key."""
    high: bytes
    file: DataFile
    violations: tuple[ViolatingRow, ...]
    violations_total: int


def write_straight(
    spark: SparkSession, run: LoadRun, pieces: Sequence[Piece]
) -> list[SortedPiece] | None:
    """Pieces by key; None: their rows are in another order, or a key stands twice."""
    parts = on_executors(spark, partial(_written, run), pieces)
    whole = sorted((piece for piece in parts if piece is not None), key=lambda piece: piece.low)
    if len(whole) < len(parts) or any(prior.high >= after.low for prior, after in pairwise(whole)):
        return None
    return whole


def _written(run: LoadRun, piece: Piece) -> SortedPiece | None:
    """Writes a piece whose keys rise; returns None, with nothing written, if they do not."""
    reader = InputReader(run.job)
    named: list[ViolatingRow] = []
    total, last, parts = 0, b"", list[pa.Table]()
    with closing(PaceClient(run.pace)) as client:
        for part in reader.rows(piece):
            keys = part.column(KEY).combine_chunks()
            if (parts and keys[0].as_py() <= last) or not _rise(keys):
                return None
            last = keys[-1].as_py()
            client.take(part.num_rows)
            some, count = violations(part, reader.row_rules, OFFENDERS_MAX - len(named))
            named.extend(some)
            total += count
            parts.append(part.drop_columns([REGION]))
    rows = pa.concat_tables(parts)
    (region,) = run.job.regions
    output = run.output(region.root, f"{own_name(f'piece-{piece.number}')}.parquet")
    file = write_sorted(run, rows, output, region.version)
    low = parts[0].column(KEY)[0].as_py()
    return SortedPiece(rows.num_rows, low, last, file, tuple(named), total)


def _rise(keys: pa.BinaryArray) -> bool:
    falls: int = pc.greater_equal(keys[:-1], keys[1:]).true_count
    return falls == 0


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
            raise Corrupt(
                path=output.path, reason="it reads back differently from what was written"
            )
    return file
