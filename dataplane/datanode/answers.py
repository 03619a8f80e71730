"""The bodies with which a node describes itself over HTTP, beside the models of
metasrv_base/wire."""

from metasrv_base.wire.model import WireModel
from metasrv_base.wire.node.copies import CopyStanding
from metasrv_base.wire.node.copy_sessions import FetchBody
from metasrv_base.wire.node.nodes import RegionStat


class RegionBody(WireModel):
    """One region as this node has it: what its heartbeats report of it, `stat`, and what they do
    not, since it changes without a change of the region."""

    stat: RegionStat
    role: CopyStanding | None
    """The copy of this node, as it was told last: it leads, is in the set, or is to catch up; null:
    the region has no such copy any more."""
    takes_writes: bool
    """Whether a write that comes now is ordered, if there is room for it. False at copies, and at a
    leader that is opening or stopped, has no lease, no promise of a copy or too few copies, waits
    for a group that hangs, or hands its region over."""
    root: str
    schema_floor: int
    schema_version: int
    """The newest schema version that it knows."""
    lease_left_ms: int
    """The time until the lease ends by this node's clock, in ms; 0: none is held."""
    queued: int
    """The number of writes and changes that wait."""
    groups: int
    """Groups of batches written since it was opened; each was one sync."""
    fetch: FetchBody | None = None
    """The files that this copy fetches now; null: none."""


class NodeRegions(WireModel):
    node_id: str
    incarnation: str
    cluster_id: str | None
    """The cluster; None before the node has registered."""
    term: int
    regions: list[RegionBody]


class Alive(WireModel):
    status: str = "ok"


class VersionBody(WireModel):
    name: str = "datanode"
    version: str
    node_id: str
    incarnation: str
    cluster_id: str | None
    term: int
