"""The copy that leads a region next by a planned switch, and the route under a copy. Pure."""

from collections.abc import Mapping, Sequence

from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState
from metasrv_base.errors import Conflict
from metasrv_base.values.frozen import frozen
from procedures.ports import NodeView
from procedures.steps.placing import zone_rank


@frozen
class LeaderChoice:
    """The nodes between which a request leaves the choice, and the zones that go first."""

    to_node: str | None = None
    """The node that is to lead; None: any."""
    spared: str | None = None
    """The node that is to lead nothing; None: none."""
    preferred_zones: Sequence[str] = ()
    """Zones of leaders by the table's placement, the best first."""


def next_leader(
    region: RegionRoute, nodes: Sequence[NodeView], choice: LeaderChoice, group: Mapping[str, int]
) -> RegionCopy:
    """The copy of the set that leads next: the wanted one; else, of those on nodes that answer
    orders and are not cordoned, one in the best of the preferred zones, then one where more of its
    partition *group* is led, then the least loaded.

    Raises Conflict("node-not-eligible") with the reason of each copy that may not.
    """
    views = {node.node_id: node for node in nodes}
    reasons = {copy.node: _why_not(copy, views, choice) for copy in region.copies}
    able = [copy for copy in region.copies if reasons[copy.node] is None]
    if not able:
        if choice.to_node is not None and choice.to_node not in reasons:
            reasons[choice.to_node] = "it has no copy of the region"
        reasons = {node: reason for node, reason in reasons.items() if reason is not None}
        raise Conflict("node-not-eligible", region_id=region.region_id, reasons=reasons)

    def rank(copy: RegionCopy) -> tuple[bool, bool, int, int, int, str]:
        view = views[copy.node]
        in_zone = zone_rank(view.zone, choice.preferred_zones)
        in_group = -group.get(copy.node, 0)
        return not view.answers, view.cordoned, in_zone, in_group, view.regions, copy.node

    return min(able, key=rank)


def _why_not(copy: RegionCopy, views: Mapping[str, NodeView], choice: LeaderChoice) -> str | None:
    view = views.get(copy.node)
    if choice.to_node not in (None, copy.node):
        return f"{choice.to_node} is to lead"
    if copy.node == choice.spared:
        return "it is to lead nothing"
    if copy.role is not CopyRole.IN_SYNC:
        return "its copy is not in sync"
    return "not alive" if view is None or not view.alive else None


def must_be_in_set(region: RegionRoute, node: str, root: str) -> RegionCopy:
    """Returns the copy. Raises Conflict("action-not-allowed") unless it is in sync."""
    for copy in region.copies:
        if (copy.node, copy.root, copy.role) == (node, root, CopyRole.IN_SYNC):
            return copy
    facts = {"region_id": region.region_id, "action": "switch_leader"}
    raise Conflict("action-not-allowed", state=f"the copy on {node} is not in sync", **facts)


def led_by(region: RegionRoute, copy: RegionCopy, *, former: CopyRole) -> RegionRoute:
    """The region under *copy*, which it has in its set, at the next epoch. The leader before is a
    copy of role *former*, with the root that it has."""
    before = RegionCopy(node=region.leader, root=region.root, role=former)
    copies = tuple(before if each == copy else each for each in region.copies)
    return region.with_copies(
        copies,
        leader=copy.node,
        root=copy.root,
        epoch=region.epoch + 1,
        state=RegionState.OPENING,
        announced=True,
        borrows=(),
        unannounced=(),
    )
