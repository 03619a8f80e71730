"""A load without Spark and without files of users: the product's own reader, plan and writer, over
tables in memory."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dataplane.pipelines.jobs.executor import Output
from dataplane.pipelines.jobs.load import parted, repeated_keys
from dataplane.pipelines.jobs.load_input import InputReader
from dataplane.pipelines.jobs.load_plan import (
    InputFile,
    Piece,
    cut_outputs,
    cut_pieces,
    digest_of,
)
from dataplane.pipelines.jobs.load_sorted import LoadRun, write_sorted
from dataplane.pipelines.pace import PaceAddress
from dataplane.region.check.row_checks import violations
from dataplane.region.format.columns import KEY
from dataplane.region.format.key_order import in_key_order
from metasrv_base.errors import Refused
from metasrv_base.wire.node.jobs import LoadedRegion, LoadJob, LoadJobResult
from metasrv_base.wire.node.offenders import OFFENDERS_MAX, ViolatingRow
from metasrv_base.wire.node.orders import DataFile
from tests.sim.cluster.disks import ProcessDisk

UNPACED = PaceAddress("nowhere", 0, "")


@dataclass(frozen=True)
class MemoryReader(InputReader):
    tables: Mapping[str, pa.Table]
    """By path."""

    def _batches(self, piece: Piece, names: list[str] | None) -> Iterator[pa.RecordBatch]:
        table = self.tables[piece.file.path]
        yield from (table if names is None else table.select(names)).to_batches()


class MemoryLoad:
    """One run of a job. `token` keeps its files apart from any other's."""

    def __init__(self, job: LoadJob, tables: Mapping[str, pa.Table], token: str) -> None:
        """Raises Refused for other files than those of which regions have rows."""
        self.job = job
        self._run = LoadRun(job, token, UNPACED)
        self._reader = MemoryReader(job, tables)
        self._files = [_file_of(path, tables[path]) for path in job.paths]
        self._digest = digest_of(self._files)
        if job.input_digest not in (None, self._digest):
            raise Refused("invalid-request", pointer="/paths", found="other files")
        self._outputs = cut_outputs([one.number for one in job.regions], (), self._files, 1)
        self._shares: dict[int, list[pa.Table]] = defaultdict(list)
        self._written: list[tuple[int, DataFile]] = []
        self._repeated: list[str] = []
        self._violations: list[ViolatingRow] = []

    def read(self) -> Sequence[int]:
        """Returns the numbers of the outputs that receive rows."""
        for piece in cut_pieces(self._files):
            for part in self._reader.rows(piece):
                self._violations += violations(part, self._reader.row_rules, OFFENDERS_MAX)[0]
                for output, share in parted(part, self._outputs):
                    self._shares[output].append(share)
        return sorted(self._shares)

    def write(self, number: int, disk: ProcessDisk) -> None:
        """One file of all rows for an output."""
        rows = in_key_order(pa.concat_tables(self._shares[number]), KEY)
        repeated, _ = repeated_keys(rows)
        if repeated:
            self._repeated += repeated
            return
        wanted = self._outputs.regions[number]
        region = next(one for one in self.job.regions if one.number == wanted)
        name = f"{self.job.attempt}/{self._run.token}-{number}.parquet"
        file = write_sorted(self._run, rows, Output(disk, region.root, name), region.version)
        self._written.append((region.number, file))

    def result(self) -> LoadJobResult:
        return LoadJobResult(
            job_id=self.job.job_id,
            input_digest=self._digest,
            files_in=len(self._files),
            rows_in=sum(file.rows for file in self._files),
            bytes_in=sum(file.bytes for file in self._files),
            bytes_out=sum(file.bytes for _, file in self._written),
            regions=[LoadedRegion(number=number, files=[one]) for number, one in self._written],
            repeated=self._repeated,
            repeated_total=len(self._repeated),
            violations=self._violations,
            violations_total=len(self._violations),
        )


def _file_of(path: str, table: pa.Table) -> InputFile:
    return InputFile(path, table.nbytes, 1, (table.num_rows,), table.nbytes)
