"""Messages between metasrv and a Spark driver process: one line of JSON each."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter

from metasrv_base.schema.partition import PartitionRule
from metasrv_base.wire.model import Int64, PositiveInt64, SignedInt64, WireModel
from metasrv_base.wire.node.checks import CheckedIndex, DataFaults
from metasrv_base.wire.node.inputs import Borrowed, Snapshot
from metasrv_base.wire.node.offenders import OFFENDERS_MAX, Duplicate, ViolatingRow
from metasrv_base.wire.node.orders import DataFile, RegionColumn


class MoveJob(WireModel):
    """Bring a region's borrowed inputs into `{borrowed.root}/{attempt}`."""

    op: Literal["move"] = "move"
    job_id: str
    procedure: str
    attempt: str
    """Folder of this attempt alone, relative to the region's root."""
    borrowed: Borrowed

    @property
    def region_id(self) -> str:
        return self.borrowed.region_id


class JobIndex(WireModel):
    """The index whose entries a job makes."""

    id: Int64
    columns: list[Int64] = Field(min_length=1)
    """Column ids, in the order of the entries' keys."""
    unique: bool = False


class BackfillJob(WireModel):
    """Write the entries that an index has of a region's rows into `{snapshot.root}/{attempt}`."""

    op: Literal["backfill"] = "backfill"
    job_id: str
    procedure: str
    attempt: str
    """Folder of this attempt alone, relative to the region's root."""
    snapshot: Snapshot
    index: JobIndex
    rows_per_s: PositiveInt64 | None = None
    """Limit of the read rate of all jobs of its procedure together, from now on; null:
    unlimited."""

    @property
    def region_id(self) -> str:
        return self.snapshot.region_id


class RowCheck(WireModel):
    """A condition that every row must satisfy."""

    constraint: SignedInt64
    """Number by which violations name the check."""
    kind: Literal["not-null", "check", "convertible"]
    """Convertible: each value of the one column is a value of another type, too."""
    columns: list[Int64]
    """Column ids."""
    expression: str | None = None
    """Expression of a check."""
    to_type: str | None = None
    """Type to which values must convert."""


class ValidateJob(WireModel):
    """Look whether the rows of a region, as of a mark, satisfy constraints. Writes nothing."""

    op: Literal["validate"] = "validate"
    job_id: str
    procedure: str
    snapshot: Snapshot
    checks: list[RowCheck] = Field(min_length=1)
    rows_per_s: PositiveInt64 | None = None

    @property
    def region_id(self) -> str:
        return self.snapshot.region_id


class CheckJob(WireModel):
    """Hold all that a region stores as of a mark against the table's schema. Writes nothing."""

    op: Literal["check"] = "check"
    job_id: str
    procedure: str
    snapshot: Snapshot
    """Snapshot with files of every family that the region lists."""
    owned: list[Int64]
    """Column ids that the table has or had."""
    required: list[Int64]
    """Column ids without a null."""
    indexes: list[CheckedIndex]
    checks: list[RowCheck]
    """Public constraints."""
    rows_per_s: PositiveInt64 | None = None

    @property
    def region_id(self) -> str:
        return self.snapshot.region_id


class LoadColumn(WireModel):
    """A column of the rows that are brought."""

    stored: RegionColumn
    name: str | None
    """The name in the files; null if users do not know it."""
    otherwise: JsonValue = None
    """Value of rows whose file does not have the column, in JSON form."""


class LoadRegion(WireModel):
    """A region that is given rows."""

    number: Int64
    root: str
    """The region's own, under which the job's attempt folder lies."""
    version: Int64
    """Row version that the loaded rows get."""


class LoadJob(WireModel):
    """Write the rows of Parquet files into `{root}/{attempt}` of the regions where they belong."""

    op: Literal["load"] = "load"
    job_id: str
    procedure: str
    attempt: str
    """Folder of this attempt alone, relative to each region's root."""
    paths: list[str] = Field(min_length=1)
    """Absolute, as executors see them: files, or folders of files."""
    folders: list[str] = Field(default=[])
    """Only what lies below one of them is read, wherever links lead."""
    columns: list[LoadColumn]
    """All that the table stores."""
    key: list[Int64]
    """Ids of the columns of the primary key, in its order."""
    partition: PartitionRule
    checks: list[RowCheck]
    regions: list[LoadRegion]
    """Rows of others are read, and left out."""
    input_digest: str | None = None
    """Digest of the files as an earlier job found them; null: any."""
    rows_per_s: PositiveInt64 | None = None

    @property
    def region_id(self) -> None:
        """Always None: the job is not about one region."""


class ThrottleJob(WireModel):
    """From now on a job, and the others of its procedure with it, reads so many rows a second; one
    that is not known is left alone."""

    op: Literal["throttle"] = "throttle"
    job_id: str
    rows_per_s: PositiveInt64 | None = None
    """Null: as fast as it goes."""


class CancelJob(WireModel):
    """The job ends soon, and says so by `JobFailed`; a job that is not known is left alone."""

    op: Literal["cancel"] = "cancel"
    job_id: str


class DriverReady(WireModel):
    """The first line: the session is up, and an executor has run Python."""

    op: Literal["ready"] = "ready"
    pid: Int64
    master: str
    spark: str
    java: str


class JobProgress(WireModel):
    op: Literal["progress"] = "progress"
    job_id: str
    done: Int64
    total: Int64
    unit: str


class MoveResult(WireModel):
    """The job's own counts; `rows_in` and `rows_out` differ by superseded versions."""

    op: Literal["moved"] = "moved"
    job_id: str
    files: list[DataFile]
    rows_in: Int64
    rows_out: Int64
    bytes_in: Int64
    bytes_out: Int64
    copied_files: Int64
    rewritten_segments: Int64
    rewritten_files: Int64 = 0
    """Files too small to be worth keeping, merged with the log."""


class BackfillResult(WireModel):
    op: Literal["backfilled"] = "backfilled"
    job_id: str
    files: list[DataFile]
    """Files of the index's family, each sorted by key, with disjoint key ranges; every entry has
    the version of its row."""
    rows_in: Int64
    """Rows as of the mark."""
    entries: Int64
    bytes_in: Int64
    bytes_out: Int64
    duplicates: list[Duplicate] = Field(default_factory=list, max_length=OFFENDERS_MAX)
    """Suspected duplicates of a unique index, as of the mark: rows may have changed since. Their
    entries are in the files; the region decides when it ingests them."""
    duplicates_total: Int64 = 0


class ValidateResult(WireModel):
    op: Literal["validated"] = "validated"
    job_id: str
    rows_in: Int64
    """Rows as of the mark."""
    violations: list[ViolatingRow] = Field(default_factory=list, max_length=OFFENDERS_MAX)
    """Violating rows in order of row key."""
    violations_total: Int64 = 0


class CheckResult(WireModel):
    op: Literal["checked"] = "checked"
    job_id: str
    rows_in: Int64
    """Rows as of the mark."""
    entries: Int64
    """Entries of all indexes, as of the mark."""
    faults: DataFaults


class LoadedRegion(WireModel):
    number: Int64
    files: list[DataFile]
    """Files of rows, each sorted by key, with disjoint key ranges, all of the version requested."""


class LoadJobResult(WireModel):
    """Offenders of any kind: what was written is not to be taken."""

    op: Literal["loaded"] = "loaded"
    job_id: str
    input_digest: str
    """Digest of the names, sizes and times of the files."""
    files_in: Int64
    rows_in: Int64
    bytes_in: Int64
    bytes_out: Int64
    regions: list[LoadedRegion]
    """Regions that receive rows."""
    repeated: list[str] = Field(default_factory=list, max_length=OFFENDERS_MAX)
    """Row keys that stand in the files more than once, hexadecimal."""
    repeated_total: Int64 = 0
    """Number of repeated keys."""
    violations: list[ViolatingRow] = Field(default_factory=list, max_length=OFFENDERS_MAX)
    """Violations of constraints; constraint 0: a null in a column that is not nullable."""
    violations_total: Int64 = 0


class JobFailed(WireModel):
    op: Literal["failed"] = "failed"
    job_id: str
    code: str
    """A code of metasrv_base/wire/problem/problems.py."""
    detail: str
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    """Facts of a refusal: the reason."""


Job = MoveJob | BackfillJob | ValidateJob | CheckJob | LoadJob
JobResult = MoveResult | BackfillResult | ValidateResult | CheckResult | LoadJobResult
Request = Job | ThrottleJob | CancelJob
Answer = DriverReady | JobProgress | JobResult | JobFailed
REQUEST: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="op")])
ANSWER: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, Field(discriminator="op")])
