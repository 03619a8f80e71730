"""The leader that a promotion has replaced, in case that the promoted copy never serves. Pure.

A region that is alone in its set serves under a lease, which nobody grants before the route says
that it is open. So until then the former leader has every acknowledged row, and every row that was
read. If the promoted copy is lost, or its node dies, the former leader leads again; its role, a
learner, does not tell that it may.

One of the two leads next, or nobody: no other node borrows the root of the promoted copy, which may
not have heard of its promotion, and follow the former leader still.
"""

from collections.abc import Iterable, Sequence

from keys.model.tables import RegionCopy, RegionRoute, RegionState
from procedures.machine import ProcedureState
from procedures.ports import NodeView


class FormerLeader(ProcedureState):
    """A leader that the only other copy of its set has replaced."""

    region_id: str
    root: str
    epoch: int
    """The epoch of the promotion, and the version of the copies that it made: a region of others
    may have acknowledged something since."""
    copies_version: int

    def is_of(self, region: RegionRoute) -> bool:
        identity = self.region_id, self.epoch, self.copies_version
        return identity == (region.region_id, region.epoch, region.copies_version)


def noted(
    before: RegionRoute, after: RegionRoute, former: Iterable[FormerLeader]
) -> FormerLeader | None:
    """The former leader of a region whose route was *before* and is *after* now; None: it may not
    lead again. *former*: those that were noted."""
    if len(after.in_sync) > 1:
        return None
    roots = {each.root for each in former if _may_lead(each, before)}
    if after.root == before.root:  # the same copy leads again, and has not served in between
        root = next(iter(roots), None)
    elif after.root in roots or (_is_replaced(before, after) and not before.borrows):
        root = before.root  # it has all rows too, if its files come back
    else:
        root = None
    if root is None:
        return None
    return FormerLeader(
        region_id=after.region_id,
        root=root,
        epoch=after.epoch,
        copies_version=after.copies_version,
    )


def _is_replaced(before: RegionRoute, after: RegionRoute) -> bool:
    """Whether a copy that has every acknowledged row leads in the place of another that has."""
    return len(before.in_sync) > 1 or any(copy.root == after.root for copy in before.eligible)


def former_leader(
    region: RegionRoute, former: Iterable[FormerLeader], nodes: Sequence[NodeView]
) -> RegionCopy | None:
    """The copy that leads again; None: there is none that is alive and has its files."""
    if not has_not_served(region, former):
        return None
    roots = {each.root for each in former if _may_lead(each, region)}
    able = {node.node_id for node in nodes if node.alive and region.region_id not in node.lost}
    copies = (copy for copy in region.copies if copy.root in roots and copy.node in able)
    return next(copies, None)


def has_not_served(region: RegionRoute, former: Iterable[FormerLeader]) -> bool:
    """Whether its leader is a promoted copy that is alone, and has not served yet."""
    return any(_may_lead(each, region) for each in former)


def _may_lead(former: FormerLeader, region: RegionRoute) -> bool:
    return former.is_of(region) and region.state is not RegionState.OPEN
