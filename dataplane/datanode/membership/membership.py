"""The state of this process in its cluster: its identity, the leader's last answer, its
heartbeats."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dataplane.datanode.membership.reports import NodeReports
from metasrv_base.engines import LSM
from metasrv_base.wire.node.nodes import (
    FOLDERS_MAX,
    NodeResources,
    RefusedStat,
    RegionStat,
    RegisterAnswer,
    RegisterRequest,
)
from metasrv_base.wire.node.nodes import HeartbeatRequest as Heartbeat

VERSION = "0.1.0"


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Fixed for the life of the process. `incarnation` is new at every start."""

    node_id: str
    incarnation: str
    address: str
    zone: str
    root: str
    engines: tuple[str, ...] = (LSM,)
    """Names of the region engines that it has."""


@dataclass(slots=True)
class Membership:
    """Changed by the heartbeat task alone."""

    identity: NodeIdentity
    cluster_id: str | None
    sequence: int = 0
    """The sequence of the last heartbeat sent."""
    heartbeat_ms: int = 2000
    is_registered: bool = False
    heard_ms: int | None = None
    """The time at which the last answered heartbeat was sent, in ms."""
    lease_ms: int = 0
    settings_version: int = 0
    catalog_version: int = 0
    refused_by: str | None = field(default=None)
    """Code of the last refusal; None: the last call was answered."""
    reports: NodeReports = field(default_factory=NodeReports)

    @property
    def node_id(self) -> str:
        return self.identity.node_id

    def joined(self, answer: RegisterAnswer) -> None:
        assert self.cluster_id in (None, answer.cluster_id)
        self.cluster_id = answer.cluster_id
        self.heartbeat_ms = answer.heartbeat_ms
        self.lease_ms = answer.lease_ms
        self.settings_version = answer.settings_version
        self.is_registered = True
        self.reports.begin_anew()

    def adopted(self, cluster_id: str) -> None:
        """Moves the node to another cluster, where it registers next."""
        self.cluster_id = cluster_id
        self.is_registered, self.heard_ms, self.refused_by = False, None, None

    def is_heard(self, now_ms: int) -> bool:
        """Whether the leader has answered within one lease: ready to be given work."""
        return self.heard_ms is not None and now_ms - self.heard_ms < self.lease_ms

    def registration(self, resources: NodeResources, folders: Sequence[str]) -> RegisterRequest:
        """Returns the request to register. *folders* are of regions, as they lie on its disk."""
        me = self.identity
        return RegisterRequest(
            cluster_id=self.cluster_id,
            node_id=me.node_id,
            incarnation=me.incarnation,
            address=me.address,
            zone=me.zone,
            root=me.root,
            version=VERSION,
            resources=resources,
            folders=sorted(folders)[:FOLDERS_MAX],
            folder_count=len(folders),
            engines=list(me.engines),
        )

    def heartbeat(
        self,
        term: int,
        resources: NodeResources,
        regions: list[RegionStat],
        refused: list[RefusedStat],
        addresses_digest: str | None = None,
    ) -> Heartbeat:
        assert self.cluster_id is not None, "only a registered node has a heart"
        me = self.identity
        return Heartbeat(
            cluster_id=self.cluster_id,
            node_id=me.node_id,
            incarnation=me.incarnation,
            sequence=self.sequence,
            address=me.address,
            zone=me.zone,
            version=VERSION,
            term=term,
            resources=resources,
            refused=refused,
            addresses_digest=addresses_digest,
            **self.reports.facts(self.sequence, regions),
        )
