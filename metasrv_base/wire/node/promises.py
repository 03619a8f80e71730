"""Messages between the nodes of a region's copies about reads (docs/protocols.md P4.5)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from metasrv_base.wire.model import Int64, PositiveInt64, RegionId, WireModel

PROMISE_REGIONS_MAX = 4_096  # of one request; the promises of others are asked for by another
PROMISES_BYTES_MAX = 8 << 20


class AnswerTime(WireModel):
    """The time at which a node answered, by its own clock. The node that asks repeats it in its
    next request: what that one says was true after this time."""

    incarnation: str
    """The incarnation of the process that answered: another one counts from another start."""
    mono_ms: Int64
    """Milliseconds of CLOCK_BOOTTIME."""


class PromiseRequest(WireModel):
    """`POST /node/v1/copies/promises`: the leaders of one node ask the copies of another for their
    promises, all in one message. Columns have one value per region, in the same order."""

    cluster_id: str
    leader: str
    """The id of the node that asks."""
    node_id: str
    """The id of the node that is asked."""
    region_id: Annotated[list[RegionId], Field(max_length=PROMISE_REGIONS_MAX)]
    epoch: list[PositiveInt64]
    root: list[str]
    """Roots of the copies that are asked: a disk that was replaced is another copy."""
    led_root: list[str]
    """Roots of the copies that lead, on the node that asks."""
    common: list[Int64 | None] = Field(default_factory=list)
    """Sequences up to which every required copy has the leader's records: all that was acknowledged
    before `answered`. Null: the leader may not read now. Empty: nothing is said of any region."""
    answered: AnswerTime | None = None
    """The time of the last answer of the node that is asked; null: there was none."""

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        columns = (self.region_id, self.epoch, self.root, self.led_root)
        if len({len(column) for column in columns}) > 1:
            raise ValueError("every column has one value per region")
        if self.common and (self.answered is None or len(self.common) != len(self.region_id)):
            raise ValueError("common has one value per region, and needs the time of an answer")
        return self


class RefusedPromise(WireModel):
    """A copy that gives no promise."""

    region_id: RegionId
    reason: str
    """`not-here`: the node has no copy of that root, or leads the region. `stale-epoch`: the copy
    has followed, or leads, a higher epoch."""
    epoch: Int64
    """The epoch of the copy; 0: there is none."""


class PromiseAnswer(WireModel):
    """Promises for all regions of the request except those in `refused`. A copy that has promised
    serves nothing as a promoted leader for 1.05 times `promise_ms` after its answer. The leader
    counts `promise_ms`, less 0.1 % for drift, from before it asked."""

    promise_ms: PositiveInt64
    refused: Annotated[list[RefusedPromise], Field(max_length=PROMISE_REGIONS_MAX)]
    answered: AnswerTime | None = None
    """The time of this answer, which the next request repeats."""
