"""The cluster as clients see it: who leads, the nodes and their regions, maintenance, health."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from metasrv_base.token import HOLDER
from metasrv_base.wire.api.placing.placements import LABELS_MAX
from metasrv_base.wire.api.tables import RegionRouteBody
from metasrv_base.wire.model import Int64, Listed, RegionId, WireModel
from metasrv_base.wire.node.nodes import NodeResources, RegionStat, SettingBody

LABELS_PATCHED_MAX = 2 * LABELS_MAX
"""The most labels of one request: all that a node may have, in exchange for all that it has."""


class LeaderBody(WireModel):
    id: str
    url: str
    term: Int64 | None
    """Rises at every election; null: this server follows and has not heard it."""


class MetasrvBody(WireModel):
    """A metasrv that is up."""

    id: str
    url: str
    version: str
    leads: bool


class MaintenanceBody(WireModel):
    """While it is enabled nothing is failed over automatically; requests by hand need `force`."""

    enabled: bool
    reason: str | None
    changed_by: str | None
    changed_at: str | None
    """RFC 3339; null: it was never changed."""
    expires_at: str | None
    """RFC 3339, by the leader's clock; null: not by itself."""
    version: Int64


class MaintenanceRequest(WireModel):
    """`PUT /v1/cluster/maintenance`."""

    enabled: bool
    reason: str | None = Field(default=None, max_length=500)
    expires_in_s: int | None = Field(default=None, ge=1, le=31_536_000)
    """Then it is off by itself; null: it stays on until it is switched off."""


class PauseBody(WireModel):
    """While procedures are paused, none begins a step; the step in flight of each ends."""

    paused: bool
    reason: str | None
    changed_by: str | None
    changed_at: str | None
    """RFC 3339; null: it was never changed."""
    version: Int64


class PauseRequest(WireModel):
    """`PUT /v1/cluster/procedures`: pauses all of them, failovers too, or lets them go on."""

    paused: bool
    reason: str | None = Field(default=None, max_length=500)


class SettingRequest(WireModel):
    """`PUT /v1/settings/{name}`."""

    value: Any
    expected_version: Int64 | None = None
    """Refused with 412 if it is at another one by now."""


class ClusterBody(WireModel):
    """Answer of `GET /v1/cluster`: of any server, also while nobody leads."""

    cluster_id: str | None
    """Null until the first leader has made it."""
    server_id: str
    """The server that answers."""
    leader: LeaderBody | None
    metasrvs: Listed[MetasrvBody]
    """Servers by id; only this one while the store is silent."""
    catalog_version: Int64
    stale: bool
    """This server has not heard from the store for longer than a lease."""
    version: str


class CordonBody(WireModel):
    """The cordon of a node: it takes no new regions."""

    reason: str
    by: str
    at: str
    """RFC 3339."""


class CordonRequest(WireModel):
    """`POST /v1/nodes/{node}/cordon`."""

    reason: str = Field(min_length=1, max_length=500)


class NodePatch(WireModel):
    """`PATCH /v1/nodes/{node}`: labels that are not named stay."""

    labels: dict[str, str | None] = Field(
        min_length=1, max_length=LABELS_PATCHED_MAX, examples=[{"disk": "ssd", "rack": None}]
    )
    """Label -> value; null removes it. Node filters of placements go by them."""


DroppedTables = Literal["move", "wait", "purge", "keep"]


class DrainRequest(WireModel):
    """`POST /v1/nodes/{node}/drain`."""

    reason: str = Field(min_length=1, max_length=500)
    targets: Listed[str] = Field(default=(), max_length=1_024)
    """Nodes that may take the regions; empty: any."""
    dropped: DroppedTables = "move"
    """Regions of dropped tables. `move`: they move like others, and an undrop finds them. `wait`:
    the drain ends once they are purged, or undropped and moved. `purge`: it purges those tables
    before their time, so that nothing undrops them. `keep`: they stay on the node."""


class DecommissionRequest(WireModel):
    """`POST /v1/nodes/{node}/decommission`."""

    reason: str = Field(min_length=1, max_length=500)
    lost: bool = False
    """Whether its disk is gone. Dropped tables there, and regions that still read from it, then
    do not keep it in the cluster. It must be dead."""


class ReleaseRequest(WireModel):
    """`POST /v1/nodes/{node}/release`."""

    reason: str = Field(min_length=1, max_length=500)


class RebindRequest(WireModel):
    """`POST /v1/nodes/{node}/rebind`."""

    principal: str = Field(pattern=f"^{HOLDER}$")
    """The name of the token by which the node registers and reports from now on."""


class RemovalBody(WireModel):
    """The removal of a node from the cluster."""

    reason: str
    by: str
    at: str
    """RFC 3339."""
    lost: bool


NodeState = Literal["alive", "suspect", "dead", "offline", "removed"]


class FailoverHeldBody(WireModel):
    """The hold on the failover of a dead node: it has not begun, although the node leads
    regions."""

    reason: str
    since: str
    """RFC 3339."""
    until: str | None
    """RFC 3339; null: when it ends is not known."""
    ends: str
    """The condition that ends the hold, as text for people."""


class NodeBody(WireModel):
    """A registered node, as the leader sees it."""

    id: str
    role: str
    state: NodeState
    address: str
    zone: str
    root: str
    version: str
    incarnation: str
    """New at every start of its process."""
    registered_at: str
    """RFC 3339."""
    phi: float
    """Suspicion: -log10 of the chance that it is merely late. Dead from the threshold on."""
    heard_ms_ago: Int64 | None
    """Null: not heard by this leader."""
    lease_left_ms: Int64
    """Time until it surely holds no lease."""
    cordon: CordonBody | None
    """Null: it takes new regions."""
    labels: Mapping[str, str] = {}
    """Set by operators; node filters of placements go by them."""
    dead_since: str | None = None
    """RFC 3339, about; null: it is heard, or was until a moment ago."""
    principal: str | None = None
    """The holder of the token that speaks for it; null: nobody asked for tokens when it came."""
    removal: RemovalBody | None = None
    """The removal of a node that is removed, or that was removed and has registered again."""
    quarantined: Listed[str] = ()
    """Folders of regions that a node which was removed still holds: neither served nor deleted.
    The first thousand."""
    failover_held: FailoverHeldBody | None = None
    """Null: nothing holds a failover of it back."""
    resources: NodeResources | None
    """Resources as last reported."""
    leads: Int64
    """Regions it leads, by the catalog."""
    reported: Mapping[str, Int64] = {}
    """Counts of the regions that it last reported, by state."""


class NodeDetailBody(NodeBody):
    """A node, with regions that it reports."""

    regions: Listed[RegionStat]
    """Regions as last reported, by id; the first thousand. `GET /v1/regions?node=` lists all it
    leads."""


class NodeList(WireModel):
    """All nodes, by id."""

    nodes: Listed[NodeBody]


class RegionBody(RegionRouteBody):
    """A region: where it is by the catalog, and what its leader last reported."""

    table_id: Int64
    table: str
    """Full name of its table."""
    root: str
    """Folder of its files, on the leader's storage."""
    stat: RegionStat | None
    """Null: its leader has not reported it."""


class RegionList(WireModel):
    """A page of regions of living tables, by id, all at one version of the catalog."""

    regions: Listed[RegionBody]
    catalog_version: Int64
    next_page_token: str | None = None
    """Opaque; null on the last page."""


class SettingList(WireModel):
    """Settings that operators can change while the service runs."""

    settings: Listed[SettingBody]


class UnclaimedFolder(WireModel):
    """A region's folder on a node that no route names."""

    root: str
    """Absolute."""
    region_id: str | None
    """The region in its name; null for a name that no region's folder has."""
    epoch: Int64
    """The highest epoch of its name, its fences and its manifest."""
    fenced_at: str | None
    """Time at which its highest fence was raised, by the node's clock."""
    proof: str | None
    """`no-table`, `no-region`, `old-epoch` or `other-root`: it is an orphan. Null: see `wait`."""
    wait: str | None
    """Reason for which it cannot be judged: `busy`, `borrowed`, `catalog-older`, `lost`,
    `unverified`, `restored`, `unreadable`, `readers`, `young` or `name`."""


class QuarantinedFolder(WireModel):
    """A region's folder that a node keeps in quarantine."""

    root: str
    """The root that it was. An order to open the region there puts it back."""
    path: str
    """The folder's path in quarantine."""
    region_id: str
    quarantined_at: str
    deleted_after: str
    """Time before which it is not deleted, by the setting `orphan_retention_ms` of now."""
    bytes: Int64
    """Size of all its files."""
    proof: str | None
    """The proof, as for folders elsewhere. Null: it stays, see `wait`."""
    wait: str | None
    """`claimed`: a route names it again. Otherwise a reason as for folders elsewhere."""


class OrphanList(WireModel):
    """`GET /v1/nodes/{node}/orphans`: folders without a claim, and those in quarantine."""

    node_id: str
    catalog_version: Int64
    """The version of the catalog that they were compared with."""
    folders: Listed[UnclaimedFolder]
    """Sorted by region. Folders that a route names are left out."""
    quarantined: Listed[QuarantinedFolder] = ()
    """Folders in quarantine, sorted by region."""
    next: RegionId | None = None
    """The `first` of the next page; null: this is the last one."""


class Health(WireModel):
    """`/livez` and `/readyz`."""

    status: Literal["ok"] = "ok"


class VersionBody(WireModel):
    """`/version`."""

    name: Literal["metasrv"] = "metasrv"
    version: str
    server_id: str
    cluster_id: str | None
