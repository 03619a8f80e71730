"""Placement of the copies of new regions: at most one on a node, spread over zones.

A pure function of the nodes' facts, as the placement of leaders (procedures/steps/placing.py).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field

from keys.catalog.tables.partition_groups import Groups
from keys.model.tables import CopyRole, RegionCopy
from metasrv_base.errors import Unavailable
from metasrv_base.values.frozen import frozen
from procedures.ports import NodeView
from procedures.steps.placing import (
    ALONE,
    ANY_RULES,
    NODE_REGIONS_MAX,
    NOWHERE,
    Beside,
    NodeRules,
    preference,
    region_root,
)

Homes = tuple[NodeView, ...]
"""Nodes of the copies of one region; the leader's first."""


@frozen
class CopyRules:
    """Conditions that nodes of copies meet, beside being other than the leader's."""

    replicas: int
    """Copies of each region, the leader's included."""
    nodes: NodeRules = ANY_RULES
    """Preferred zones go before others among those with as few copies of a region: leaders come
    back to a zone only if it has a copy."""
    groups: Groups = field(default_factory=dict)
    """Partition groups of the regions, by all copies."""
    tablespace: Mapping[str, int] = NOWHERE
    """Node -> regions of their tablespace of which it has a copy."""


def new_copies(region_id: str, epoch: int, nodes: Iterable[NodeView]) -> tuple[RegionCopy, ...]:
    """Copies of a region that begins at *epoch*: empty, and so in sync."""
    return tuple(
        RegionCopy(
            node=node.node_id, root=region_root(node, region_id, epoch), role=CopyRole.IN_SYNC
        )
        for node in nodes
    )


def place_copies(
    nodes: Iterable[NodeView], leaders: Sequence[NodeView], rules: CopyRules
) -> tuple[Homes, ...]:
    """The nodes of each region that one of *leaders* leads.

    A zone that has no copy of the region goes before one that has, and then it is as `preference`
    says. Deterministic: ties go by node id. Raises Unavailable("node-not-eligible") with the reason
    of every node that takes none if too few are left.
    """
    nodes = tuple(nodes)
    able = {node.node_id: node for node in nodes if rules.nodes.why_not(node) is None}
    leader_counts = Counter(leader.node_id for leader in leaders)
    placed = []
    for number, leader in enumerate(leaders):
        beside = Beside(rules.groups.get(number, NOWHERE), rules.tablespace)
        homes = _homes(able, leader_counts, leader, rules, beside)
        if len(homes) < rules.replicas:
            raise _too_few(nodes, homes, rules)
        placed.append(homes)
    return tuple(placed)


def one_more(
    holding: Collection[str],
    views: Iterable[NodeView],
    excluded: Collection[str],
    rules: NodeRules,
    beside: Beside = ALONE,
) -> str | None:
    """The node for one more copy of a region with copies on the nodes *holding*: in a zone that has
    none of them, where there is one, and of these by `preference`. None: no node may take it."""
    views = tuple(views)
    zones = {view.zone for view in views if view.node_id in holding and view.alive}
    unable = {*holding, *excluded}
    able = (view for view in views if rules.why_not(view, unable) is None)
    best = min(
        able,
        key=lambda view: (
            view.zone in zones,
            not view.answers,
            *preference(view, rules, beside),
            view.node_id,
        ),
        default=None,
    )
    return None if best is None else best.node_id


def _homes(
    able: Mapping[str, NodeView],
    leader_counts: Counter[str],
    leader: NodeView,
    rules: CopyRules,
    beside: Beside,
) -> Homes:
    """The nodes of one region, fewer if no more can take it. It adds to *leader_counts*, the new
    copies of each node."""
    homes = {leader.node_id: leader}
    for _ in range(rules.replicas - 1):
        zones = Counter(home.zone for home in homes.values())
        free = [
            node
            for name, node in able.items()
            if name not in homes and node.regions + leader_counts[name] < NODE_REGIONS_MAX
        ]
        if not free:
            break
        home = min(
            free,
            key=lambda node: (
                not node.answers,
                zones[node.zone],
                *preference(node, rules.nodes, beside, leader_counts[node.node_id]),
                node.node_id,
            ),
        )
        leader_counts[home.node_id] += 1
        homes[home.node_id] = home
    return tuple(homes.values())


def _too_few(nodes: Iterable[NodeView], homes: Homes, rules: CopyRules) -> Unavailable:
    names = {home.node_id for home in homes}
    reasons = {
        node.node_id: rules.nodes.why_not(node) or "full"
        for node in nodes
        if node.node_id not in names
    }
    facts = {"replicas": rules.replicas, "eligible": len(homes)}
    return Unavailable("node-not-eligible", reasons=reasons, **facts)
