"""Adoption of the nodes of a cluster by another one that was restored from its backup."""

from pydantic import Field

from metasrv_base.wire.model import Int64, Listed, WireModel


class AdoptNodeRequest(WireModel):
    """`POST /v1/nodes/{node}/adopt`."""

    address: str | None = Field(default=None, min_length=1, max_length=4_096)
    """Base URL of the node; null: as the backup has it."""
    without: Listed[str] = Field(default=(), max_length=1_024)
    """Nodes that will not come back: regions are opened although their disks were not read."""
    after: Int64 = 0
    """The `next` of the last answer, in a request that goes on."""


class RegionFinding(WireModel):
    """A region that is not where the backup has it, or that no node has; or an index or a column
    that was dropped after the backup."""

    region_id: str | None
    """Null: it is about the table."""
    table: str
    fate: str
    """`moved`, `dropped`, `missing`, `unreadable`, `index-dropped` or `column-dropped`."""
    reason: str


class AdoptionBody(WireModel):
    """The node belongs to this cluster. Regions open once no node is awaited."""

    node_id: str
    awaited: Listed[str]
    """Nodes of the backup that were not adopted yet."""
    opened: Int64
    """Regions that this request has opened, or would."""
    findings: Listed[RegionFinding]
    """The first thousand."""
    findings_total: Int64
    next: Int64 | None = None
    """There is more to do: send the request again with it as `after`."""
