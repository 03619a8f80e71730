"""Everything that exists only while this server leads: made at election, gone with the term."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from keys.commit.committer import Committer
from keys.commit.sequence import Sequences
from keys.store.kv import Compare
from metasrv.holders.sync import HolderSync
from metasrv.leadership.snapshot_requests import SnapshotRequests
from metasrv.leadership.tally import HistoryTally
from metasrv.nodes.copy_changes import CopyChanges
from metasrv.nodes.copy_risk import CopyRisk
from metasrv.nodes.node_liveness import NodeLiveness
from metasrv.nodes.quarantined import QuarantinedFolders
from metasrv.settings.settings import SettingsStore
from metasrv_base.wire.node.adoption import AdoptAnswer, AdoptRequest, Inventory
from metasrv_base.wire.node.silences import LeaderHeard
from procedures.context import Ports
from procedures.scheduling.manager import Manager


class NodeAdopter(Protocol):
    """Calls to nodes by their address. They raise as the node answers, and Unavailable."""

    async def adopt(self, address: str, request: AdoptRequest) -> AdoptAnswer: ...

    async def inventory(self, address: str, first: int, last: int) -> Inventory: ...

    async def log_ends(self, address: str, region_id: int) -> Inventory: ...


class SilenceProbePort(Protocol):
    """A call to a node by its address. Raises as the node answers, and Unavailable."""

    async def silence_at(self, address: str, leader: str, deadline_ms: int) -> LeaderHeard: ...


@dataclass(frozen=True, slots=True)
class Term:
    """One term of this server."""

    cluster_id: str
    fence: Compare
    committer: Committer
    sequences: Sequences
    manager: Manager
    ports: Ports
    nodes: NodeLiveness
    holders: HolderSync
    settings: SettingsStore
    tally: HistoryTally
    ready: asyncio.Event
    """Set once every record has been read and its locks computed; nothing is admitted before."""
    background: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = ()
    """Coroutines that adapters of this term run while it lasts."""
    snapshot_requests: SnapshotRequests = field(default_factory=SnapshotRequests)
    copy_changes: CopyChanges = field(default_factory=CopyChanges)
    copy_risk: CopyRisk = field(default_factory=CopyRisk)
    """Counted at least every ten seconds (metasrv/leadership/copies/copy_keeper.py)."""
    quarantined: QuarantinedFolders = field(default_factory=QuarantinedFolders)
    """Counted every few minutes (metasrv/leadership/orphans/orphan_keeper.py)."""
    adopter: NodeAdopter | None = None
    """The way to nodes that another cluster is to adopt."""
    probe: SilenceProbePort | None = None
    """The way to leaders that are reported as silent. None: none is promoted for that."""
    looked_at: set[str] = field(default_factory=set)
    """Leaders that are being looked at."""

    @property
    def number(self) -> int:
        return self.fence.mod_revision
