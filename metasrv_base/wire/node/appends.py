"""The answer of a node whose copies were sent records by their leader (docs/protocols.md P5.9)."""

from metasrv_base.wire.model import Int64, RegionId, WireModel
from metasrv_base.wire.node.orders import OrderError


class AppendedPart(WireModel):
    """One region of the request: either `durable` or `error` is set."""

    region_id: RegionId
    durable: Int64 | None = None
    """The sequence up to which the copy has the log durably, at the epoch of the request. If it
    does not rise, the copy lacks earlier records, or has no free memory at present."""
    error: OrderError | None = None
    """`stale-epoch`: the copy follows the leader of a higher epoch. `not-found`: no copy is in that
    root. Any other error: it acknowledges no record; the same part may be sent
    again."""


class AppendAnswer(WireModel):
    parts: list[AppendedPart]
    """Parts in the order of the request."""
