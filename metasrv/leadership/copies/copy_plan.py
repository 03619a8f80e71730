"""Selection of copies to add and to remove, from routes, tables and nodes. Pure.

A copy is lost when its node has been dead for `safe_lost_time_ms`, or is registered no more. Until
then nothing is done for it: its node may come back with its disk, as a learner that has to catch
up. One is added before another goes, and goes once as many as the table is to have are in sync.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState, TableInfo
from procedures.kinds.copies.add_copy import AddCopy
from procedures.kinds.copies.remove_copy import RemoveCopy
from procedures.ports import NodeView
from procedures.steps.copies.copy_placing import one_more
from procedures.steps.placing import ANY_RULES, NodeRules, unmet, zone_rank

PLANNED_MAX = 32  # procedures of one plan
LEARNERS_MAX = 4
"""Learners that a node has at most when it is given one more: each takes its disk and its network
until it has caught up."""

CopyWork = AddCopy | RemoveCopy


@dataclass(frozen=True, slots=True)
class CopiedRegion:
    """A region, and what its table says of copies."""

    info: TableInfo
    region: RegionRoute
    rules: NodeRules = ANY_RULES
    """The rules of its table's placement."""


@dataclass(frozen=True, slots=True)
class CopyNodes:
    """The nodes at one moment."""

    views: Mapping[str, NodeView]
    """The registered nodes, by id."""
    offline: Collection[str] = ()
    """Ids of nodes that have been dead for `safe_lost_time_ms`."""
    learners: Mapping[str, int] = field(default_factory=dict)
    """Node -> learners that it has."""

    def is_lost(self, node: str) -> bool:
        return node in self.offline or node not in self.views


@dataclass(frozen=True, slots=True)
class Need:
    """The next change of one region's copies."""

    copied: CopiedRegion
    living_in_sync: int
    """Copies of the set whose disks are not lost: of a region with one, the next loss is its
    last."""
    missing: int = 0
    """Copies that are to be added."""
    unmade: RegionCopy | None = None
    """A learner that its node does not have: it is made anew there."""
    surplus: RegionCopy | None = None
    """A copy that is to go."""

    @property
    def urgency(self) -> tuple[bool, int, int, str]:
        """Sorts the most endangered region first; what only goes comes last."""
        is_surplus = self.surplus is not None
        return is_surplus, self.living_in_sync, -self.missing, self.copied.region.region_id


def need_of(copied: CopiedRegion, nodes: CopyNodes, unmade: Collection[str] = ()) -> Need | None:
    """The next change that the region needs; None: it has what its table says, its leader is a
    failover's, or it waits for copies on their way.

    *unmade*: roots of learners that living nodes do not have, although they were told to.
    """
    info, region = copied.info, copied.region
    if info.is_volatile or region.unverified or region.state is not RegionState.OPEN:
        return None
    if nodes.is_lost(region.leader):
        return None
    sound = [copy for copy in region.copies if _is_sound(copy, copied, nodes)]
    living = sum(not nodes.is_lost(node) for node in region.in_sync)
    missing = info.replicas - 1 - len(sound)
    surplus = len(region.copies) + 1 - info.replicas
    if missing > 0 and surplus <= 0:
        return Need(copied, living, missing=missing)
    for copy in region.copies:
        if copy.role is CopyRole.LEARNER and copy.root in unmade:
            return Need(copied, living, unmade=copy)
    if surplus > 0 and (going := _going(copied, nodes, missing > 0)) is not None:
        return Need(copied, living, surplus=going)
    return None


def _is_sound(copy: RegionCopy, copied: CopiedRegion, nodes: CopyNodes) -> bool:
    """Whether it stays where it is: its disk is not lost, and its node is one of the placement."""
    return not nodes.is_lost(copy.node) and _fits(copy, copied, nodes)


def _fits(copy: RegionCopy, copied: CopiedRegion, nodes: CopyNodes) -> bool:
    view = nodes.views.get(copy.node)
    return view is not None and unmet(view, copied.rules.node_filter) is None


def _going(copied: CopiedRegion, nodes: CopyNodes, makes_room: bool) -> RegionCopy | None:
    """The copy that goes first. One of the set goes if as many as there are to be are in sync
    without it; a learner once as many stay in sync; a lost learner also where another has no room
    to be added. Of copies alike one outside the preferred zones goes: leaders come back to a zone
    only if it has a copy."""
    region, count = copied.region, copied.info.replicas
    sound = [copy for copy in region.copies if _is_sound(copy, copied, nodes)]
    is_settled = 1 + sum(copy.role is CopyRole.IN_SYNC for copy in sound) >= count

    def may_go(copy: RegionCopy) -> bool:
        is_lost = nodes.is_lost(copy.node)
        if copy.role is CopyRole.LEARNER:
            return is_settled or (makes_room and is_lost)
        return sum(not nodes.is_lost(node) for node in region.in_sync) - (not is_lost) >= count

    def rank(copy: RegionCopy) -> tuple[bool, bool, bool, int, int, str]:
        view, zones = nodes.views.get(copy.node), copied.rules.preferred_zones
        return (
            not nodes.is_lost(copy.node),
            copy.role is CopyRole.IN_SYNC,
            _fits(copy, copied, nodes) and not (view is not None and view.cordoned),
            0 if view is None else -zone_rank(view.zone, zones),
            0 if view is None else -view.regions,
            copy.node,
        )

    return min(filter(may_go, region.copies), key=rank, default=None)


def plan_copies(needs: Iterable[Need], nodes: CopyNodes) -> tuple[CopyWork, ...]:
    """The procedures to submit now, the most urgent first, at most PLANNED_MAX. A region for which
    no node has room waits."""
    views, learners = dict(nodes.views), Counter(nodes.learners)
    planned: list[CopyWork] = []
    for need in sorted(needs, key=lambda need: need.urgency):
        if len(planned) >= PLANNED_MAX:
            break
        if need.surplus is not None:
            planned.append(_removal(need, need.surplus, nodes))
            continue
        chosen = _target(need, list(views.values()), learners)
        if chosen is None:
            continue
        views[chosen] = replace(views[chosen], regions=views[chosen].regions + 1)
        learners[chosen] += need.unmade is None
        planned.append(_addition(need, chosen))
    return tuple(planned)


def _target(need: Need, views: Sequence[NodeView], learners: Mapping[str, int]) -> str | None:
    """The node for one more copy: in a zone that has none of them, where there is one."""
    copied = need.copied
    if need.unmade is not None:
        here = [view for view in views if view.node_id == need.unmade.node]
        is_able = any(copied.rules.why_not(view) is None for view in here)
        return need.unmade.node if is_able else None
    full = {node for node, count in learners.items() if count >= LEARNERS_MAX}
    return one_more(copied.region.nodes, views, full, copied.rules)


def _addition(need: Need, node: str) -> AddCopy:
    info, region = need.copied.info, need.copied.region
    copies = f"{len(region.copies) + 1} of {info.replicas} copies"
    reason = copies if need.unmade is None else f"{node} does not have its copy"
    return AddCopy(
        table_id=info.table_id,
        name=info.full_name,
        region_id=region.region_id,
        node=node,
        reason=reason,
        replaces=None if need.unmade is None else need.unmade.root,
    )


def _removal(need: Need, copy: RegionCopy, nodes: CopyNodes) -> RemoveCopy:
    info, region = need.copied.info, need.copied.region
    is_lost = nodes.is_lost(copy.node)
    reason = f"{copy.node} is lost" if is_lost else f"the table has {info.replicas} copies"
    return RemoveCopy(
        table_id=info.table_id,
        name=info.full_name,
        region_id=region.region_id,
        node=copy.node,
        root=copy.root,
        reason=reason,
    )
