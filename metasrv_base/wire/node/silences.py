"""A copy of a region reports a leader that is silent (docs/protocols.md P4.5)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from metasrv_base.wire.model import Int64, PositiveInt64, RegionId, WireModel
from metasrv_base.wire.node.copy_changes import CopyChangesRequest
from metasrv_base.wire.node.nodes import HeartbeatRequest

SILENT_REGIONS_MAX = 4_096  # of one report; the next ones have the others


class SilenceReport(WireModel):
    """`POST /internal/v1/nodes/{node_id}/silent-leaders`, of a node that follows the regions."""

    format: PositiveInt64 = 1
    cluster_id: str
    node_id: str
    incarnation: str
    leader: str
    """The node that has asked for no promise."""
    silent_ms: Int64
    region_id: Annotated[list[RegionId], Field(min_length=1, max_length=SILENT_REGIONS_MAX)]
    epoch: list[PositiveInt64]
    """The epochs at which the leader led, in the order of the regions."""

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        if len(self.region_id) != len(self.epoch):
            raise ValueError("every region has one epoch")
        return self


NodeRequest = HeartbeatRequest | CopyChangesRequest | SilenceReport
"""Messages of a node whose process is registered."""


class SilenceAnswer(WireModel):
    """The result of one probe of the leader. A copy that still hears nothing reports it again."""

    verdict: Literal["over", "held", "alive", "promote"]
    """`over`: another node leads the regions, or will. `held`: no promotion: maintenance, too many
    nodes that look dead, or another probe of this leader. `alive`: metasrv or another
    copy hears the leader. `promote`: copies lead next."""
    procedure_ids: list[str]
    """The promotions, one for each table."""


class LeaderHeard(WireModel):
    """The answer of another copy that is asked whether it hears a leader."""

    silent_ms: Int64 | None
    """The time since the leader asked for a promise; null: the node follows no region of it."""
