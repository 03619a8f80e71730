"""A region of one copy, and the same one with two more, and their route."""

from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState, TableRoute

FIRST = RegionRoute(
    region_id="4398046511104",
    leader="dn-1",
    epoch=3,
    state=RegionState.OPEN,
    root="/dn-1/a-3",
    announced=True,
)
IN_SYNC = RegionCopy(node="dn-2", root="/dn-2/a-3", role=CopyRole.IN_SYNC)
LEARNER = RegionCopy(node="dn-3", root="/dn-3/a-1", role=CopyRole.LEARNER)
COPIED = FIRST.model_copy(update={"copies": (IN_SYNC, LEARNER)})
ROUTE = TableRoute(table_id=1024, version=1, region_routes=(FIRST,))
