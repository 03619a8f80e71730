"""What a node says of itself over HTTP, beside the models of metasrv_base/wire."""

from metasrv_base.wire.model import WireModel
from metasrv_base.wire.node.nodes import RegionStat


class RegionBody(WireModel):
    """One region as this node has it."""

    stat: RegionStat
    root: str
    schema_floor: int
    schema_version: int
    """The newest that it knows."""
    lease_left_ms: int
    """What is left of the lease by this node's clock; 0: none is held."""
    queued: int
    """Writes and changes that wait."""
    groups: int
    """Groups of batches written since it was opened; each was one sync."""


class NodeRegions(WireModel):
    node_id: str
    incarnation: str
    cluster_id: str | None
    """None: not registered yet."""
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
