"""The leader that a promotion has replaced, in case that the promoted copy never serves. Pure.

A region that is alone in its set serves under a lease, which nobody grants before the route says
that it is open. So until then the former leader has every acknowledged row, and every row that was
read. If the promoted copy is lost, or its node dies, the former leader leads again; its role, a
learner, does not tell that it may.

One of the two leads next, or nobody: no other node borrows the root of the promoted copy, which may
not have heard of its promotion, and follow the former leader still.
"""

from collections.abc import Iterable, Sequence

from pydantic import Field

from keys.model.tables import RegionCopy, RegionRoute, RegionState
from procedures.machine import ProcedureState
from procedures.ports import NodeView


class FormerLeader(ProcedureState):
    """A leader that the only other copy of its set has replaced."""

    region_id: str
    root: str
    epoch: int
    """The epoch of the promotion: at another one a copy may have acknowledged something since."""
    copies_version: int
    """The version of the copies that it made: servers before decision 0415 compare it."""
    may_lead: bool = Field(default=True, exclude_if=bool)
    """Whether it has every acknowledged row itself. If it borrows some it does not lead again."""

    def is_of(self, region: RegionRoute) -> bool:
        """Whether its successor leads the region alone, and has not served: no copy joins before
        the route says that the region is open. A new minimum changes nothing of that."""
        return (
            (self.region_id, self.epoch) == (region.region_id, region.epoch)
            and region.state is not RegionState.OPEN
            and len(region.in_sync) == 1
            and self.root in region.roots
        )


def noted(
    before: RegionRoute, after: RegionRoute, former: Iterable[FormerLeader]
) -> FormerLeader | None:
    """The former leader of a region whose route was *before* and is *after* now; None: there is
    none that may have to be waited for. *former*: those that were noted, one of each region."""
    if len(after.in_sync) > 1:
        return None
    note = next((each for each in former if each.is_of(before)), None)
    if after.root == before.root:  # the same copy leads again, and has not served in between
        if note is None:
            return None
        root, may_lead = note.root, note.may_lead
    elif note is not None and note.may_lead and after.root == note.root:
        root, may_lead = before.root, True  # it has all rows too, if its files come back
    elif _is_replaced(before, after):
        root, may_lead = before.root, not before.borrows
    else:
        return None
    return FormerLeader(
        region_id=after.region_id,
        root=root,
        epoch=after.epoch,
        copies_version=after.copies_version,
        may_lead=may_lead,
    )


def _is_replaced(before: RegionRoute, after: RegionRoute) -> bool:
    """Whether a copy that has every acknowledged row leads in the place of another that has."""
    return len(before.in_sync) > 1 or any(copy.root == after.root for copy in before.eligible)


def former_leader(
    region: RegionRoute, former: Iterable[FormerLeader], nodes: Sequence[NodeView]
) -> RegionCopy | None:
    """The copy that leads again; None: there is none that is alive and has its files."""
    roots = {each.root for each in former if each.may_lead and each.is_of(region)}
    able = {node.node_id for node in nodes if node.alive and region.region_id not in node.lost}
    copies = (copy for copy in region.copies if copy.root in roots and copy.node in able)
    return next(copies, None)


def has_not_served(region: RegionRoute, former: Iterable[FormerLeader]) -> bool:
    """Whether its leader is a promoted copy that is alone, and has not served yet."""
    return any(each.is_of(region) for each in former)
