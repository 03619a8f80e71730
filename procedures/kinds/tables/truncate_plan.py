"""Selection of the leaders and roots with which the regions of a table begin anew. Pure.

A region with copies begins anew at all of them, each in a root of its own. Its roles stay: a copy
of the set, and no other, may lead it next (docs/protocols.md P4.5).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from keys.catalog.tables.partition_groups import Groups, counts_of
from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState
from metasrv_base.errors import Unavailable
from procedures.ports import NodeView
from procedures.steps.placing import ANY_RULES, NodeRules, place_in_groups, region_root, zone_rank
from procedures.steps.region_cleanup import leaving

Views = Mapping[str, NodeView]


@dataclass(frozen=True, slots=True)
class NewHomes:
    """Rules by which regions whose leader is gone get new nodes."""

    rules: NodeRules = ANY_RULES
    """The rules of the table's placement."""
    groups: Groups = field(default_factory=dict)
    """Partition groups of the regions of the table."""


ANYWHERE = NewHomes()


@dataclass(frozen=True, slots=True)
class Cut:
    """A region with a new, empty root."""

    region: RegionRoute
    before: RegionRoute

    @property
    def is_promoted(self) -> bool:
        """Whether another copy of its set leads it now. No lease is waited for then, since the old
        leader reads under the promises of its set, and that copy waits for its own."""
        return len(self.before.in_sync) > 1 and self.region.leader != self.before.leader

    @property
    def leaves(self) -> tuple[str, ...]:
        """Folders that the new leader deletes."""
        own = () if self._is_left_there else (self.before.root,)
        return tuple(leaving(self.before, root) for root in (*self.before.borrows, *own))

    @property
    def copies_left(self) -> tuple[str, ...]:
        """Folders of copies, `region_id node root`, which each node deletes itself, whether or not
        it serves the region: a leader that has started again serves it at no epoch of before."""
        left = [(copy.node, copy.root) for copy in self.before.copies]
        if self._is_left_there:
            left.append((self.before.leader, self.before.root))
        return tuple(leaving(self.before, f"{node} {root}") for node, root in left)

    @property
    def _is_left_there(self) -> bool:
        return self.region.needs_copies_format and self.before.leader in self.region.nodes


def cut_plan(
    regions: Sequence[RegionRoute],
    nodes: Sequence[NodeView],
    *,
    again: bool,
    homes: NewHomes = ANYWHERE,
) -> tuple[Cut, ...]:
    """All of *regions*; *again*: only those whose leader is gone, before it was announced. One that
    answers no orders is gone if other nodes can take its regions.

    Raises Unavailable("node-not-eligible") with the reason of every node if there is no room, or if
    no copy of the set of a region is alive.
    """
    able = [replace(node, alive=node.takes_orders) for node in nodes]
    try:
        return _cut_plan(regions, able, again=again, homes=homes)
    except Unavailable:
        return _cut_plan(regions, nodes, again=again, homes=homes)


def _cut_plan(
    regions: Sequence[RegionRoute], nodes: Sequence[NodeView], *, again: bool, homes: NewHomes
) -> tuple[Cut, ...]:
    alive = {node.node_id: node for node in nodes if node.alive}
    gone = [region for region in regions if region.leader not in alive]
    alone = [region for region in gone if len(region.in_sync) == 1]
    groups = [homes.groups.get(region.number, {}) for region in alone]
    chosen = place_in_groups(nodes, groups, (), homes.rules, counts_of(homes.groups))
    leaders = {region.region_id: node for region, node in zip(alone, chosen, strict=True)}
    for region in gone:
        if region.region_id not in leaders:
            leaders[region.region_id] = _successor(region, alive, homes.rules)
    views = {node.node_id: node for node in nodes}
    return tuple(
        Cut(_anew(region, leaders.get(region.region_id) or alive[region.leader], views), region)
        for region in regions
        if region.region_id in leaders or not again
    )


def _successor(region: RegionRoute, alive: Views, rules: NodeRules) -> NodeView:
    """The node of a living copy of the set: one that is not cordoned, in the best of the preferred
    zones, the least loaded."""
    candidates = [alive[node] for node in region.in_sync if node in alive]
    if not candidates:
        reasons = dict.fromkeys(region.in_sync, "not alive")
        raise Unavailable("node-not-eligible", reasons=reasons)

    def rank(node: NodeView) -> tuple[bool, int, int, str]:
        in_zone = zone_rank(node.zone, rules.preferred_zones)
        return node.cordoned, in_zone, node.regions, node.node_id

    return min(candidates, key=rank)


def _anew(region: RegionRoute, node: NodeView, views: Views) -> RegionRoute:
    epoch = region.epoch + 1
    update = {
        "leader": node.node_id,
        "epoch": epoch,
        "state": RegionState.OPENING,
        "root": region_root(node, region.region_id, epoch),
        "announced": False,
        "borrows": (),
        "unannounced": (),
        "unverified": False,
    }
    if not region.needs_copies_format:
        return region.model_copy(update=update)
    others = [(copy.node, copy.role) for copy in region.copies if copy.node != node.node_id]
    if node.node_id in region.in_sync and node.node_id != region.leader:
        others.append((region.leader, CopyRole.LEARNER))
    copies = tuple(
        RegionCopy(node=name, root=region_root(views[name], region.region_id, epoch), role=role)
        for name, role in others
        if name in views
    )
    return region.with_copies(copies, **update)
