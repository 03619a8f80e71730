"""Routes of regions whose copies change. Pure."""

from keys.model.tables import RegionRoute, TableRoute
from metasrv_base.errors import NotFound
from procedures.steps.placing import root_under


def must_have_region(route: TableRoute, region_id: str) -> RegionRoute:
    """Raises NotFound."""
    for region in route.region_routes:
        if region.region_id == region_id:
            return region
    raise NotFound(what="region", name=region_id)


def copy_root(root: str, region: RegionRoute, version: int) -> str:
    """The folder of a copy that comes with that version of the copies, below the *root* of its
    node: no copy of the region had it before, so nothing that was acknowledged for another counts
    for this one (docs/protocols.md P3.5)."""
    return f"{root_under(root, region.region_id, region.epoch)}-{version}"


def without_copy(region: RegionRoute, root: str) -> RegionRoute:
    return region.with_copies(tuple(copy for copy in region.copies if copy.root != root))
