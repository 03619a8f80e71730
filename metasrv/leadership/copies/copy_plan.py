"""Selection of copies to add and to remove, from routes, tables and nodes. Pure.

A copy is lost when its node has been dead for `safe_lost_time_ms`, or is registered no more. Until
then nothing is done for it: its node may come back with its disk, as a learner that has to catch
up. One is added before another goes, and goes once as many as the table is to have are in sync.

An eligible copy of a leader that is alone in its set (docs/protocols.md P5.12) stays in its place
while its node does not have it: another one is added. If no node has room for that, it is given up
after the same time as the copy of a dead node, and made anew; its folder stays.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState, TableInfo
from procedures.kinds.copies.add_copy import AddCopy
from procedures.kinds.copies.remove_copy import RemoveCopy
from procedures.ports import NodeView
from procedures.steps.copies.copy_placing import one_more
from procedures.steps.copies.neighbours import Neighbours
from procedures.steps.placing import ANY_RULES, Beside, NodeRules, unmet, zone_rank

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
    safe_lost_time_ms: int = 3_600_000
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
    """A learner that its node does not have: it is made anew there. If copies are missing too, only
    where no node has room for one more."""
    surplus: RegionCopy | None = None
    """A copy that is to go."""

    @property
    def urgency(self) -> tuple[bool, int, int, str]:
        """Sorts the most endangered region first; what only goes comes last."""
        is_surplus = self.surplus is not None
        return is_surplus, self.living_in_sync, -self.missing, self.copied.region.region_id


def need_of(
    copied: CopiedRegion,
    nodes: CopyNodes,
    unmade: Collection[str] = (),
    given_up: Collection[str] = (),
) -> Need | None:
    """The next change that the region needs; None: it has what its table says, its leader is a
    failover's, or it waits for copies on their way.

    *unmade*: roots of learners that living nodes do not have, although they were told to;
    *given_up*: those of them that they have not had for `safe_lost_time_ms`.
    """
    info, region = copied.info, copied.region
    if info.is_volatile or region.unverified or region.state is not RegionState.OPEN:
        return None
    if nodes.is_lost(region.leader):
        return None
    absent = [copy for copy in region.copies if copy.root in unmade]
    kept = [copy for copy in absent if region.would_lead(copy.root)]
    sound = [copy for copy in region.copies if _is_sound(copy, copied, nodes) and copy not in kept]
    living = sum(not nodes.is_lost(node) for node in region.in_sync)
    missing = info.replicas - 1 - len(sound)
    surplus = len(region.copies) + 1 - info.replicas
    replaceable = (copy for copy in absent if copy not in kept or copy.root in given_up)
    replaced = next((copy for copy in replaceable if copy.role is CopyRole.LEARNER), None)
    if missing > 0 and surplus <= 0:
        return Need(copied, living, missing=missing, unmade=replaced)
    if replaced is not None:
        return Need(copied, living, unmade=replaced)
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
    to be added; one that may lead if the leader is lost never goes. Of copies alike one outside the
    preferred zones goes: leaders come back to a zone only if it has a copy."""
    region, count = copied.region, copied.info.replicas
    sound = [copy for copy in region.copies if _is_sound(copy, copied, nodes)]
    is_settled = 1 + sum(copy.role is CopyRole.IN_SYNC for copy in sound) >= count

    def may_go(copy: RegionCopy) -> bool:
        is_lost = nodes.is_lost(copy.node)
        if region.would_lead(copy.root):
            return False
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


def plan_copies(
    needs: Iterable[Need], nodes: CopyNodes, neighbours: Neighbours
) -> tuple[CopyWork, ...]:
    """The procedures to submit now, the most urgent first, at most PLANNED_MAX. A region for which
    no node has room waits. *neighbours*: by all copies; those that are chosen are added."""
    views, learners = dict(nodes.views), Counter(nodes.learners)
    planned: list[CopyWork] = []
    for need in sorted(needs, key=lambda need: need.urgency):
        if len(planned) >= PLANNED_MAX:
            break
        if need.surplus is not None:
            planned.append(_removal(need, need.surplus, nodes))
            continue
        copied = need.copied
        beside = neighbours.beside(copied.info, copied.region.number)
        addition = _addition(need, list(views.values()), learners, beside)
        if addition is None:
            continue
        chosen = addition.node
        views[chosen] = replace(views[chosen], regions=views[chosen].regions + 1)
        if addition.replaces is None:
            learners[chosen] += 1
            neighbours.note(copied.info, copied.region.number, chosen)
        planned.append(addition)
    return tuple(planned)


def _addition(
    need: Need, views: Sequence[NodeView], learners: Mapping[str, int], beside: Beside
) -> AddCopy | None:
    """One more copy, where `one_more` says; else one that is made anew in its place. None: no node
    has room."""
    copied, replaced = need.copied, need.unmade
    if need.missing:
        full = {node for node, count in learners.items() if count >= LEARNERS_MAX}
        node = one_more(copied.region.nodes, views, full, copied.rules, beside)
        if node is not None:
            return _copy_on(copied, node, None)
    if replaced is None:
        return None
    here = [view for view in views if view.node_id == replaced.node]
    is_able = any(copied.rules.why_not(view) is None for view in here)
    return _copy_on(copied, replaced.node, replaced) if is_able else None


def _copy_on(copied: CopiedRegion, node: str, replaced: RegionCopy | None) -> AddCopy:
    info, region = copied.info, copied.region
    copies = f"{len(region.copies) + 1} of {info.replicas} copies"
    reason = copies if replaced is None else f"{node} does not have its copy"
    return AddCopy(
        table_id=info.table_id,
        name=info.full_name,
        region_id=region.region_id,
        node=node,
        reason=reason,
        replaces=None if replaced is None else replaced.root,
        gives_up=replaced is not None and region.would_lead(replaced.root),
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
