"""The status of a node as the leader knows it: registration, last report, and suspicion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from keys.model.cluster import NodeRecord, Removal, RemovedNode
from metasrv.nodes.detector import PHI_IN_TIME_MAX, PhiDetector
from metasrv.nodes.flapping import Returns
from metasrv.nodes.heartbeats.region_report import RegionReport
from metasrv.nodes.heartbeats.standing_answer import StandingAnswer
from metasrv_base.values.frozen import frozen
from metasrv_base.wire.node.nodes import NodeResources, RefusedStat, RegionStat

SUSPECT_PHI = 1.0  # one chance in ten that it is merely late


class NodeState(StrEnum):
    ALIVE = "alive"
    SUSPECT = "suspect"
    DEAD = "dead"
    OFFLINE = "offline"
    """Dead for longer than `safe_lost_time_ms`."""
    REMOVED = "removed"
    """Registered no more."""


GONE = frozenset({NodeState.DEAD, NodeState.OFFLINE})
"""States in which a node was silent for so long that its regions are opened elsewhere."""


SILENT_MS = 10_000
"""The time for which a node has answered no order until new regions are placed elsewhere."""
KEPT_MS = 60_000
"""The time after the last order behind which it is tried again."""


@frozen
class OrderSilence:
    """Orders that came to nothing since a node last answered one; times of one monotonic clock.

    Its heartbeats may come: a firewall, a wrong address or a process that is hung in part does
    that, and nobody detects it but who sends orders."""

    sent_ms: int
    """The time at which the first of them was sent."""
    failed_ms: int
    """The time at which the last of them had failed."""

    def until(self, failed_ms: int) -> "OrderSilence":
        """The silence, to which one more order has come that had failed then."""
        return OrderSilence(self.sent_ms, max(self.failed_ms, failed_ms))

    def lasts(self, now_ms: int) -> bool:
        """Whether the node is taken for one that answers no orders."""
        is_long = self.failed_ms - self.sent_ms >= SILENT_MS
        return is_long and now_ms - self.failed_ms < KEPT_MS


@dataclass(slots=True)
class NodeEntry:
    """One node of this term. Owned by the NodeLiveness."""

    node: NodeRecord
    detector: PhiDetector
    sequence: int = -1
    """The sequence of the last heartbeat heard from this incarnation; -1: none yet."""
    heard_ms: int | None = None
    has_registered: bool = False
    """Whether this incarnation has registered with this leader."""
    is_met: bool = False
    """Whether this leader has heard a process of the node, or was the first to register one."""
    resources: NodeResources | None = None
    regions: Mapping[str, RegionStat] = field(default_factory=dict)
    kept: tuple[int, RegionReport] | None = None
    """The sequence of the heartbeat that brought `regions`, and they: changes since it are applied
    to them. None: none is kept."""
    standing: StandingAnswer | None = None
    """An answer to this incarnation that is given again by its number, while its basis stands."""
    reported: Mapping[str, int] = field(default_factory=dict)
    """Counts of these regions, by state: kept, so that a list of nodes looks at no region."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """Region id -> epoch of regions that it reports as lost: all, since a region that is not among
    them is taken for sound."""
    restarted: Mapping[str, int] = field(default_factory=dict)
    """The same of regions that it led, and that need a new epoch since it has started again."""
    refused: Sequence[RefusedStat] = ()
    """Requests refused by its regions since it started, as last reported."""
    order_silence: OrderSilence | None = None
    """Orders that have come to nothing since it last answered one; None: it answered the last."""
    returns: Returns = field(default_factory=Returns)
    instructions_from: int = 0
    """The start of its next InstructionWindow."""
    is_offline: bool = False
    """Once it is dead. Set by the ticker that removes nodes (metasrv/leadership/retirement.py)."""

    def succeeds(self, before: "NodeEntry", now_ms: int) -> None:
        """Takes over what outlives a process. One that registers has as long for its first
        heartbeat as a node has between two, and so have those that register after it while it may
        still come: else a node that only registers would never be dead."""
        self.returns, self.is_offline = before.returns, before.is_offline
        self.is_met = before.is_met
        awaits_first = before.has_registered and before.heard_ms is None
        if awaits_first and not before.detector.is_dead(now_ms):
            self.detector = before.detector

    def has_answered(self) -> None:
        """Notes that the node has answered orders, whatever it said."""
        self.order_silence = None

    def has_not_answered(self, sent_ms: int, now_ms: int) -> None:
        """Notes that orders which were sent at *sent_ms* have come to nothing."""
        silence = self.order_silence or OrderSilence(sent_ms, now_ms)
        self.order_silence = silence.until(now_ms)

    def answers_orders(self, now_ms: int) -> bool:
        return self.order_silence is None or not self.order_silence.lasts(now_ms)

    def hears(self, sequence: int, now_ms: int) -> bool:
        """Notes a heartbeat. Returns whether this incarnation was dead until then."""
        was_dead = self.heard_ms is not None and self.detector.is_dead(now_ms)
        self.detector.heard(now_ms)
        self.sequence, self.heard_ms, self.is_met = sequence, now_ms, True
        return was_dead

    def silent_ms(self, now_ms: int) -> int | None:
        """The time since this leader last heard a process of the node, or first registered one,
        without the stalls of this server. None: it has done neither."""
        return now_ms - self.detector.last_ms if self.is_met else None

    def takes(self, report: RegionReport) -> None:
        """Notes what it reports; costs nothing where no region's state has changed."""
        if report is not self.regions:
            self.regions, self.reported = report, report.counts()
            self.lost = report.in_state("lost")
            self.restarted = report.in_state("restarted")


@dataclass(frozen=True, slots=True)
class Hold:
    """The reason why dead nodes are not failed over at this moment."""

    reason: str
    ends: str
    """The condition that ends the hold, as text for people."""
    until_ms: int | None = None
    """The time at which it ends by itself, wall clock; None: that is not known."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A dead node that leads regions, and whose failover is held back."""

    hold: Hold
    since_ms: int
    """Wall clock."""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A node at one moment."""

    node: NodeRecord
    state: NodeState
    phi: float
    heard_ms_ago: int | None
    """The age of the last heartbeat; None if this leader has heard none."""
    lease_left_ms: int
    """The time until no lease that this leader granted can be alive."""
    resources: NodeResources | None
    regions: Mapping[str, RegionStat]
    """Regions by id, as last reported."""
    reported: Mapping[str, int] = field(default_factory=dict)
    """Counts of these regions, by state."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """Region id -> epoch of regions that it reports as lost."""
    restarted: Mapping[str, int] = field(default_factory=dict)
    """The same of regions that it led, and that need a new epoch since it has started again."""
    held: HeldBack | None = None
    """Its failover is due, and held back."""
    removal: Removal | None = None
    """The removal of a removed node; None for a registered one."""


def state_at(entry: NodeEntry, now_ms: int) -> NodeState:
    threshold = entry.detector.config.threshold
    if threshold > PHI_IN_TIME_MAX and entry.detector.is_in_time(now_ms):
        return NodeState.ALIVE
    phi = entry.detector.phi(now_ms)
    if phi >= threshold:
        return NodeState.OFFLINE if entry.is_offline else NodeState.DEAD
    return NodeState.SUSPECT if phi >= SUSPECT_PHI else NodeState.ALIVE


def status_of(entry: NodeEntry, lease_free_at_ms: int, now_ms: int) -> NodeStatus:
    return NodeStatus(
        node=entry.node,
        state=state_at(entry, now_ms),
        phi=entry.detector.phi(now_ms),
        heard_ms_ago=None if entry.heard_ms is None else now_ms - entry.heard_ms,
        lease_left_ms=max(0, lease_free_at_ms - now_ms),
        resources=entry.resources,
        regions=entry.regions,
        reported=entry.reported,
        lost=entry.lost,
        restarted=entry.restarted,
    )


def status_of_removed(removed: RemovedNode) -> NodeStatus:
    return NodeStatus(
        node=removed.node,
        state=NodeState.REMOVED,
        phi=0.0,
        heard_ms_ago=None,
        lease_left_ms=0,
        resources=None,
        regions={},
        removal=removed.removal,
    )
