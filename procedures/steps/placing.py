"""Placement of regions: a pure function of the nodes' facts; a refusal gives a reason for every
node."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from immutables import Map

from keys.model.placing.placements import NodeFilter, PlacementInfo
from metasrv_base.engines import LSM
from metasrv_base.errors import Unavailable
from metasrv_base.values.frozen import frozen
from procedures.ports import NodeView

DISK_FREE_MIN_BYTES = 256 << 20  # a node below it takes no new region
NODE_REGIONS_MAX = 90_000
"""Regions that a node leads at most. It opens HEARTBEAT_REGIONS_MAX at most, which its heartbeat
reports: the rest is room for what is placed at the same time, and for regions that it still has to
close."""


ANY_NODE = NodeFilter()


@frozen
class NodeRules:
    """Conditions that nodes meet which lead regions of a table, and the zones that go first."""

    engine: str = LSM
    node_filter: NodeFilter = ANY_NODE
    preferred_zones: Sequence[str] = ()
    """Zones of leaders by the table's placement, the best first."""

    @classmethod
    def of(cls, placement: PlacementInfo, engine: str) -> "NodeRules":
        """The rules of a placement for its tables of that engine."""
        return cls(engine, placement.node_filter, placement.preferred_zones)

    def why_not(self, node: NodeView, excluded: Collection[str] = ()) -> str | None:
        return why_not(node, excluded, self.engine, self.node_filter)


ANY_RULES = NodeRules()
NOWHERE: Mapping[str, int] = Map()


@frozen
class Beside:
    """The regions beside which one is placed; none for one of the tablespace `default`."""

    group: Mapping[str, int] = NOWHERE
    """Node -> regions of its partition group there."""
    tablespace: Mapping[str, int] = NOWHERE
    """Node -> regions of its tablespace there."""


ALONE = Beside()


def zone_rank(zone: str, preferred_zones: Sequence[str]) -> int:
    """The position of a zone among the preferred ones, from 0; all others share the last one. So
    without preferred zones no zone goes before another."""
    for position, preferred in enumerate(preferred_zones):
        if zone == preferred:
            return position
    return len(preferred_zones)


def why_not(
    node: NodeView,
    excluded: Collection[str],
    engine: str = LSM,
    node_filter: NodeFilter = ANY_NODE,
) -> str | None:
    """The reason why *node* cannot take a region of that engine and of a placement with that
    filter; None: it can."""
    if node.node_id in excluded:
        return "excluded"
    if not node.alive:
        return "not alive"
    if node.cordoned:
        return "cordoned"
    if engine not in node.engines:
        return f"without the engine {engine}"
    if (condition := unmet(node, node_filter)) is not None:
        return f"outside the node filter: {condition} wanted"
    if node.regions >= NODE_REGIONS_MAX:
        return _full(node.regions)
    if node.disk_free_bytes < DISK_FREE_MIN_BYTES:
        return f"{node.disk_free_bytes >> 20} MiB of disk free, {DISK_FREE_MIN_BYTES >> 20} needed"
    return None


def unmet(node: NodeView, node_filter: NodeFilter) -> str | None:
    """The first condition of the filter that *node* does not meet, as `label disk=ssd,nvme`; None:
    it meets all of them."""
    if node_filter.zones and node.zone not in node_filter.zones:
        return f"zone {' or '.join(node_filter.zones)}"
    for condition in node_filter.labels:
        if node.labels.get(condition.label) not in condition.values:
            return f"label {condition.label}={','.join(condition.values)}"
    return None


def preference(
    node: NodeView, rules: NodeRules, beside: Beside = ALONE, new: int = 0, added: int = 0
) -> tuple[int, int, int, int, int]:
    """Sorts nodes that can take a region, the best first: one in the best of the preferred zones;
    with most of its partition group; that takes the fewest *new* regions with it; with the fewest
    of its tablespace; with the fewest in all, *added* ones that it does not report yet included.

    Were it the fewest in all at once, a node that has just come back empty would take every region
    of the next tables.
    """
    name, zones = node.node_id, rules.preferred_zones
    return (
        zone_rank(node.zone, zones) if zones else 0,
        -beside.group.get(name, 0),
        new,
        beside.tablespace.get(name, 0),
        node.regions + added,
    )


def place(
    nodes: Iterable[NodeView],
    count: int,
    excluded: Collection[str] = (),
    rules: NodeRules = ANY_RULES,
) -> tuple[NodeView, ...]:
    """A node for each of *count* regions of no partition group. Raises as `place_in_groups`."""
    return place_in_groups(nodes, [{}] * count, excluded, rules)


def place_in_groups(
    nodes: Iterable[NodeView],
    groups: Sequence[Mapping[str, int]],
    excluded: Collection[str] = (),
    rules: NodeRules = ANY_RULES,
    tablespace: Mapping[str, int] = NOWHERE,
) -> tuple[NodeView, ...]:
    """A node for each region of *groups*, by `preference`, and of nodes alike one in the emptiest
    zone. Nodes that answer no orders come last.

    Deterministic: ties go by node id. Raises Unavailable("node-not-eligible") with the reason of
    every node if none can take a region; it may be sent again when a node is back. So does one that
    is full before all of them are placed.

    *groups*: for each region, node -> regions of its group that it leads; empty: it has no group.
    *tablespace*: node -> regions of their tablespace that it leads.
    """
    reasons = {node.node_id: rules.why_not(node, excluded) for node in nodes}
    able = {node.node_id: node for node in nodes if reasons[node.node_id] is None}
    new, added, chosen = dict.fromkeys(able, 0), dict.fromkeys(able, 0), list[NodeView]()
    in_zone = {node.zone: 0 for node in able.values()}
    for group in groups:
        if not able:
            reasons = reasons or {"cluster": "no node registered"}
            raise Unavailable("node-not-eligible", reasons=reasons)
        beside = Beside(group, tablespace)
        best = min(
            able.values(),
            key=lambda node: (
                not node.answers,
                *preference(node, rules, beside, new[node.node_id], added[node.node_id]),
                in_zone[node.zone],
                node.node_id,
            ),
        )
        name = best.node_id
        chosen.append(best)
        new[name] += name not in group
        added[name] += 1
        in_zone[best.zone] += 1
        if best.regions + added[name] >= NODE_REGIONS_MAX:
            reasons[name] = _full(best.regions + added[name])
            del able[name]
    return tuple(chosen)


def _full(regions: int) -> str:
    return f"{regions} regions, {NODE_REGIONS_MAX} at most"


def region_root(node: NodeView, region_id: str, epoch: int) -> str:
    """The folder of a region that *node* comes to lead at *epoch*: a new one at every takeover."""
    return root_under(node.root, region_id, epoch)


def root_under(root: str, region_id: str, epoch: int) -> str:
    return f"{root}/regions/{region_id}-{epoch}"
