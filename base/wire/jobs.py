"""What metasrv and a Spark driver process say to each other: one line of JSON per message."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from base.wire.inputs import Borrowed
from base.wire.model import WireModel
from base.wire.orders import DataFile


class MoveJob(WireModel):
    """Bring a region's borrowed inputs into `{borrowed.root}/{attempt}`."""

    op: Literal["move"] = "move"
    job_id: str
    procedure: str
    attempt: str
    """Folder of this attempt alone, relative to the region's root."""
    borrowed: Borrowed


class CancelJob(WireModel):
    """The job ends soon, and says so by `JobFailed`; a job that is not known is left alone."""

    op: Literal["cancel"] = "cancel"
    job_id: str


class DriverReady(WireModel):
    """The first line: the session is up, and an executor has run Python."""

    op: Literal["ready"] = "ready"
    pid: int
    master: str
    spark: str
    java: str


class JobProgress(WireModel):
    op: Literal["progress"] = "progress"
    job_id: str
    done: int
    total: int
    unit: str


class MoveResult(WireModel):
    """The job's own counts; `rows_in` and `rows_out` differ by superseded versions."""

    op: Literal["moved"] = "moved"
    job_id: str
    files: list[DataFile]
    rows_in: int
    rows_out: int
    bytes_in: int
    bytes_out: int
    copied_files: int
    rewritten_segments: int
    rewritten_files: int = 0
    """Files too small to be worth keeping, merged with the log."""


class JobFailed(WireModel):
    op: Literal["failed"] = "failed"
    job_id: str
    code: str
    """A code of base/wire/problems.py."""
    detail: str


DriverRequest = Annotated[MoveJob | CancelJob, Field(discriminator="op")]
DriverAnswer = Annotated[
    DriverReady | JobProgress | MoveResult | JobFailed, Field(discriminator="op")
]
REQUEST: TypeAdapter[MoveJob | CancelJob] = TypeAdapter(DriverRequest)
ANSWER: TypeAdapter[DriverReady | JobProgress | MoveResult | JobFailed] = TypeAdapter(DriverAnswer)
