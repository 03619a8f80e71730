"""The cluster itself: identity, election, nodes, settings and the sequences of ids."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from keys.key import Key
from keys.value import StoredModel, StoredPart, is_none
from metasrv_base.engines import LSM


class RestoredFrom(StoredPart):
    """The backup from which a cluster was restored."""

    cluster_id: str
    """The cluster of which the backup is: nodes of it may be adopted, and no others."""
    revision: int
    """The revision of that cluster's store."""
    made_at_ms: int


class ClusterRecord(StoredModel):
    """Written once, by the first leader of an empty prefix, or by a restore."""

    cluster_id: str
    created_at_ms: int
    restored: RestoredFrom | None = Field(default=None, exclude_if=is_none)
    """The backup that it was restored from; None if it was not restored."""


@dataclass(frozen=True, slots=True)
class ClusterKey(Key[ClusterRecord]):
    template: ClassVar[str] = "__cluster"
    value_type: ClassVar[type[StoredModel]] = ClusterRecord


class RestoreMark(StoredModel):
    """Written before the first restored key, compared by every transaction of the restore, and
    deleted by the last one, which writes the identity of the cluster."""

    restore_id: str
    """The run: another run that takes over writes its own."""
    source: RestoredFrom
    begun_at_ms: int


@dataclass(frozen=True, slots=True)
class RestoreMarkKey(Key[RestoreMark]):
    template: ClassVar[str] = "__restore"
    value_type: ClassVar[type[StoredModel]] = RestoreMark


class Sequence(StoredModel):
    next: int
    """The lowest id that nobody has reserved."""


@dataclass(frozen=True, slots=True)
class SequenceKey(Key[Sequence]):
    template: ClassVar[str] = "__sequence/{name}"
    value_type: ClassVar[type[StoredModel]] = Sequence

    name: str


class LeaderRecord(StoredModel):
    """The current leader. The key's revision is the term and the fence; its lease ends both."""

    server: str
    url: str
    lease: str
    """etcd lease id, decimal: settles a campaign whose answer was lost."""


@dataclass(frozen=True, slots=True)
class LeaderKey(Key[LeaderRecord]):
    template: ClassVar[str] = "__election/leader"
    value_type: ClassVar[type[StoredModel]] = LeaderRecord


class Candidate(StoredModel):
    server: str
    url: str
    version: str


@dataclass(frozen=True, slots=True)
class CandidateKey(Key[Candidate]):
    template: ClassVar[str] = "__election/candidate/{server}"
    value_type: ClassVar[type[StoredModel]] = Candidate

    server: str


_FIRST = (LSM,)
DATANODE = "datanode"
"""The role of every node that registers."""


class Resources(StoredPart):
    """Totals of one machine."""

    cpu_cores: int
    memory_bytes: int
    disk_bytes: int


class Cordon(StoredPart):
    """The cordon of a node: it takes no new regions and continues to lead those that it has."""

    reason: str
    by: str
    at_ms: int


class Removal(StoredPart):
    """The removal of a node from the cluster."""

    at_ms: int
    by: str
    """The requester of the removal; `metasrv` if the node's retention was over."""
    reason: str
    lost: bool = False
    """Whether its disk is gone: files of dropped tables and borrowed files on it then do not
    keep it."""


class Returned(StoredPart):
    """A node that was removed, and has registered again as a new one."""

    removal: Removal
    folders: tuple[str, ...] = ()
    """Folders of regions that the node found on its disk when it registered: the first ones by
    name. The folders are in quarantine: the node neither serves nor deletes them."""
    folder_count: int = 0


class NodeRecord(StoredModel):
    """A registered node. Durable, without an etcd lease: it is removed only by a decision."""

    node_id: str
    role: str
    address: str
    """Base URL."""
    zone: str
    root: str
    """Absolute folder under which its regions lie."""
    version: str
    incarnation: str
    """New at every start of the process; only the newest registered one is heard."""
    resources: Resources
    registered_at_ms: int
    cordon: Cordon | None = None
    """Outlives its process: a restart of the node does not lift it."""
    dead_since_ms: int | None = None
    """Wall clock, about; None: it is heard. Stored, so that a new leader knows it."""
    returned: Returned | None = None
    """The removal before it registered again; None if no node of this id was ever removed."""
    engines: tuple[str, ...] = Field(default=_FIRST, exclude_if=lambda engines: engines == _FIRST)
    """Names of the region engines that it has; one that registered before they were told has
    `lsm` alone."""
    principal: str | None = None
    """The holder of the token by which it registered: only that holder speaks for this node. None:
    it registered where nobody asks for tokens."""
    labels: dict[str, str] = Field(default_factory=dict, exclude_if=lambda labels: not labels)
    """Set by operators, matched by node filters of placements. They outlive its process."""
    restored_from: str | None = Field(default=None, exclude_if=is_none)
    """The cluster that it belongs to until it is adopted (docs/protocols.md P8). None: this one."""


@dataclass(frozen=True, slots=True)
class NodeKey(Key[NodeRecord]):
    template: ClassVar[str] = "__node/{role}/{node}"
    value_type: ClassVar[type[StoredModel]] = NodeRecord

    role: str
    node: str


class RemovedNode(StoredModel):
    """The record of a removed node, kept until a node with the same id registers again."""

    node: NodeRecord
    removal: Removal


@dataclass(frozen=True, slots=True)
class RemovedNodeKey(Key[RemovedNode]):
    template: ClassVar[str] = "__removed-__node/{role}/{node}"
    value_type: ClassVar[type[StoredModel]] = RemovedNode

    role: str
    node: str


class SettingRecord(StoredModel):
    """A setting that operators can change while the service runs."""

    name: str
    value: Any
    version: int
    changed_by: str
    changed_at_ms: int


@dataclass(frozen=True, slots=True)
class SettingKey(Key[SettingRecord]):
    template: ClassVar[str] = "__setting/{name}"
    value_type: ClassVar[type[StoredModel]] = SettingRecord

    name: str
