"""Regions with copies as clients and views see them."""

from keys.model.log import TableCreated
from metasrv.service.bodies.shapes import region_body, region_location
from metasrv.service.views.cluster_views import REGIONS
from metasrv.service.views.of_cluster import region_rows
from metasrv.service.views.view import ViewFacts
from metasrv_base.wire.api.tables import RegionCopyBody
from tests.keys.model.copied_routes import COPIED, FIRST, ROUTE
from tests.metasrv.nodes.catalogs import catalog_of
from tests.metasrv.nodes.samples import info

COPIES = (
    RegionCopyBody(node="dn-2", root="/dn-2/a-3", role="in-sync"),
    RegionCopyBody(node="dn-3", root="/dn-3/a-1", role="learner"),
)


def test_given_a_region_with_copies_when_shown_then_each_has_its_node_root_and_role() -> None:
    for body in (region_location(COPIED), region_body(COPIED, {})):
        assert body.copies == COPIES
        assert body.followers == ("dn-2", "dn-3")


def test_given_a_region_of_one_copy_when_shown_then_it_has_none_beside_the_leaders() -> None:
    assert region_location(FIRST).copies == ()


def test_given_a_region_with_copies_when_viewed_then_its_row_says_which_are_in_sync() -> None:
    entry = TableCreated(info=info(), route=ROUTE.with_regions((COPIED,)))
    catalog = catalog_of(entry)

    (row,) = region_rows(ViewFacts(catalog, {}, {}), catalog.tables[1024])

    named = dict(zip((column.name for column in REGIONS.columns), row, strict=True))
    assert (named["followers"], named["in_sync"]) == ("dn-2, dn-3", "dn-2")
