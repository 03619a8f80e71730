"""Placement of regions: a pure function of the nodes' facts; a refusal gives a reason for every
node."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

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


def place(
    nodes: Iterable[NodeView],
    count: int,
    excluded: Collection[str] = (),
    rules: NodeRules = ANY_RULES,
) -> tuple[NodeView, ...]:
    """A node for each of *count* regions: in the best of the preferred zones with a node that can
    take it, the one with fewest of them, then with fewest in all, then in the emptiest zone. Nodes
    that answer no orders come last. Were
    it the fewest in all at once, a node that has just come back empty would take every region of
    the next tables.

    Deterministic: ties go by node id. Raises Unavailable("node-not-eligible") with the reason of
    every node if none can take a region; it may be sent again when a node is back. So does one that
    is full before all of them are placed.
    """
    reasons = {node.node_id: rules.why_not(node, excluded) for node in nodes}
    able = {node.node_id: node for node in nodes if reasons[node.node_id] is None}
    ranks = {name: zone_rank(node.zone, rules.preferred_zones) for name, node in able.items()}
    load = {name: node.regions for name, node in able.items()}
    region_counts = dict.fromkeys(able, 0)
    in_zone: dict[str, int] = {}
    chosen = []
    for _ in range(count):
        if not able:
            reasons = reasons or {"cluster": "no node registered"}
            raise Unavailable("node-not-eligible", reasons=reasons)
        name = min(
            able,
            key=lambda name: (
                not able[name].answers,
                ranks[name],
                region_counts[name],
                load[name],
                in_zone.get(able[name].zone, 0),
                name,
            ),
        )
        load[name] += 1
        region_counts[name] += 1
        in_zone[able[name].zone] = in_zone.get(able[name].zone, 0) + 1
        chosen.append(able[name])
        if load[name] >= NODE_REGIONS_MAX:
            reasons[name] = _full(load[name])
            del able[name]
    return tuple(chosen)


def place_in_groups(
    nodes: Iterable[NodeView],
    groups: Sequence[Mapping[str, int]],
    excluded: Collection[str] = (),
    rules: NodeRules = ANY_RULES,
) -> tuple[NodeView, ...]:
    """A node for each region of *groups*: of those that lead regions of its group and can take it,
    the one with most of them, unless a node in a better zone can take it too. Other regions as
    `place`. Deterministic; raises as `place`.

    *groups*: for each region, node -> regions of its group that it leads; empty: it has no group.
    """
    views = {node.node_id: node for node in nodes}
    chosen = list[str | None]()
    for group in groups:
        best = _best_rank(views.values(), excluded, rules) if group else 0
        beside = sorted(group.keys() & views.keys(), key=lambda name: (-group[name], name))
        free = (
            name
            for name in beside
            if views[name].answers
            and zone_rank(views[name].zone, rules.preferred_zones) <= best
            and rules.why_not(views[name], excluded) is None
        )
        name = next(free, None)
        if name is not None:
            views[name] = replace(views[name], regions=views[name].regions + 1)
        chosen.append(name)
    alone = chosen.count(None)
    others = iter(place(views.values(), alone, excluded, rules) if alone else ())
    return tuple(next(others) if name is None else views[name] for name in chosen)


def _best_rank(nodes: Iterable[NodeView], excluded: Collection[str], rules: NodeRules) -> int:
    """The rank of the best preferred zone with a node that can take a region."""
    if not rules.preferred_zones:
        return 0
    ranks = (
        zone_rank(node.zone, rules.preferred_zones)
        for node in nodes
        if rules.why_not(node, excluded) is None
    )
    return min(ranks, default=len(rules.preferred_zones))


def _full(regions: int) -> str:
    return f"{regions} regions, {NODE_REGIONS_MAX} at most"


def region_root(node: NodeView, region_id: str, epoch: int) -> str:
    """The folder of a region that *node* comes to lead at *epoch*: a new one at every takeover."""
    return root_under(node.root, region_id, epoch)


def root_under(root: str, region_id: str, epoch: int) -> str:
    return f"{root}/regions/{region_id}-{epoch}"
