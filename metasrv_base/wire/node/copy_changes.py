"""A region's leader has copies join its set, or leave it (docs/protocols.md P5.10)."""

from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from metasrv_base.wire.model import Int64, PositiveInt64, RegionId, WireModel
from metasrv_base.wire.node.orders import OrderError

CHANGES_MAX = 256  # of one request; a leader of more regions sends several
REASON_CHARS_MAX = 200


class CopyChange(WireModel):
    """One copy joins or leaves. The same change, sent again, is done once."""

    region_id: RegionId
    epoch: Int64
    """The epoch of the leader that asks. Another one is refused: `stale-epoch`."""
    copies_version: Int64
    """The version of the copies from which the leader computed the change (`RegionCopies.version`).
    Another one is refused: `version-mismatch`."""
    change: Literal["join", "leave"]
    """Join: a learner that has all records up to the common position becomes in sync; the leader
    has required it since before it asked. Leave: a copy in sync becomes a learner."""
    node: str
    root: str
    """The root of the copy: another disk of its node is another copy."""
    eligible: bool = Field(default=False, exclude_if=not_)
    """The copy that leaves has all records up to the common position, which includes those with
    which the leader opened its epoch. If the set is below the minimum then, the copy is eligible
    (docs/protocols.md P5.12). A server that does not know the field refuses the request."""
    reason: Annotated[str, Field(min_length=1, max_length=REASON_CHARS_MAX)]
    """The reason that the history shows, such as `no answer for 10 s`."""


class CopyChangesRequest(WireModel):
    """`POST /internal/v1/nodes/{node_id}/copies`, of the node that leads the regions."""

    format: PositiveInt64 = 1
    cluster_id: str
    node_id: str
    incarnation: str
    changes: Annotated[list[CopyChange], Field(min_length=1, max_length=CHANGES_MAX)]


class CopyChangeResult(WireModel):
    """The state of one change: done, refused permanently, or, with neither version nor error, under
    way."""

    region_id: RegionId
    procedure_id: str | None = None
    """Null: it was done or refused without a procedure."""
    copies_version: Int64 | None = None
    """The version of the copies that the change has made, if it is done. The leader uses the set of
    that version or of a higher one."""
    eligible: bool = Field(default=False, exclude_if=not_)
    """The copy that has left is eligible. Only in answers to changes with `eligible`."""
    error: OrderError | None = None
    """`stale-epoch`: another node leads now, or will. `version-mismatch`: the copies have changed
    since, and this request neither makes the change nor will; the copies of version `found` or
    higher show whether an earlier copy of the request made it. `object-locked`: another change of
    the same version is under way. Any other error: the change may still be made; send the request
    again."""


class CopyChangesAnswer(WireModel):
    results: list[CopyChangeResult]
    """Results in the order of the request."""
