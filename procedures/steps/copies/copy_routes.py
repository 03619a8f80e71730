"""Routes of regions whose copies change. Pure."""

from keys.model.tables import RegionRoute, TableRoute
from metasrv_base.errors import Conflict, NotFound
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


def must_not_be_eligible(region: RegionRoute, root: str, action: str) -> None:
    """Raises Conflict("action-not-allowed") for a copy that may lead if the leader is lost."""
    if (refusal := eligible_refusal(region, root)) is not None:
        facts = {"action": action, "state": refusal}
        raise Conflict("action-not-allowed", region_id=region.region_id, **facts)


def eligible_refusal(region: RegionRoute, root: str) -> str | None:
    """The reason for which the copy in *root* stays: it may lead if the leader is lost
    (docs/protocols.md P5.12). None: it may not."""
    if not region.would_lead(root):
        return None
    return f"{region.leader} is alone in its set, and this copy may lead if that one is lost"


def without_copy(region: RegionRoute, root: str) -> RegionRoute:
    return region.with_copies(tuple(copy for copy in region.copies if copy.root != root))
