"""Regions with copies, and nodes in zones, for tests of the plan."""

from collections.abc import Iterable

from keys.catalog.catalog import Catalog
from keys.model.log import CatalogUpdate, Entry
from keys.model.placing.placements import NodeFilter
from keys.model.tables import CopyRole, RegionCopy, RegionRoute
from metasrv.leadership.copies.copy_plan import CopiedRegion, CopyNodes, CopyWork
from procedures.kinds.copies.add_copy import AddCopy
from procedures.ports import NodeView
from procedures.steps.copies.copy_routes import copy_root, without_copy
from procedures.steps.copies.neighbours import Neighbours
from procedures.steps.placing import NodeRules
from tests.procedures.harness.copies.copied_tables import copied, copied_info
from tests.procedures.harness.tables import table_route

IN_SYNC, LEARNER = CopyRole.IN_SYNC, CopyRole.LEARNER
TABLE = 1024


def view(name: str, zone: str = "", regions: int = 0, **facts: bool) -> NodeView:
    return NodeView(
        node_id=name,
        zone=zone or name,
        root=f"/disks/{name}",
        alive=facts.get("alive", True),
        regions=regions,
        disk_free_bytes=1 << 40,
        cordoned=facts.get("cordoned", False),
    )


def nodes_of(*views: NodeView, offline: Iterable[str] = ()) -> CopyNodes:
    return CopyNodes({each.node_id: each for each in views}, frozenset(offline))


def no_neighbours() -> Neighbours:
    """The neighbours in a cluster without tablespaces."""
    return Neighbours(Catalog().copy_groups)


def region_of(
    *copies: tuple[str, CopyRole], replicas: int = 2, number: int = 0, zones: Iterable[str] = ()
) -> CopiedRegion:
    """A region that dn-1 leads, and *copies*."""
    info = copied_info(TABLE, "t", 8, replicas)
    region = copied(table_route(TABLE, ("dn-1",) * 8).region_routes[number], copies)
    return CopiedRegion(info, region, NodeRules(node_filter=NodeFilter(zones=tuple(zones))))


def carried_out(region: RegionRoute, work: CopyWork) -> RegionRoute:
    """The region behind a procedure that the plan submits."""
    if not isinstance(work, AddCopy):
        return without_copy(region, work.root)
    kept = tuple(copy for copy in region.copies if copy.root != work.replaces)
    root = copy_root(f"/disks/{work.node}", region, region.copies_version + 1)
    return region.with_copies((*kept, RegionCopy(node=work.node, root=root, role=LEARNER)))


def roles(region: RegionRoute) -> dict[str, str]:
    return {copy.node: copy.role.value for copy in region.copies}


def applied(catalog: Catalog, *entries: Entry) -> Catalog:
    version = catalog.version + 1
    update = CatalogUpdate(version=version, at_ms=1, procedure=None, entries=entries)
    return catalog.apply(update, version)
