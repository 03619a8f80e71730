"""Claims on a node, of regions that it leads and of those that it has a copy of."""

from keys.model.log import TableCreated
from keys.model.tables import CopyRole, RegionCopy
from metasrv.nodes.claims import Claims, claims_on
from metasrv_base.concurrency.turns import at_once
from tests.metasrv.nodes.catalogs import catalog_of
from tests.metasrv.nodes.samples import info, node, route

COPY = RegionCopy(node="dn-1", root="/data/dn-1/copy", role=CopyRole.IN_SYNC)


def test_given_a_node_that_leads_one_region_and_copies_another_then_each_is_told_apart() -> None:
    catalog = catalog_of(
        TableCreated(info=info(1024), route=route("dn-1", 1024)),
        TableCreated(info=info(1025, "other"), route=route("dn-2", 1025, copies=(COPY,))),
    )

    claims = at_once(claims_on(node("dn-1"), catalog, ()))

    assert claims == Claims(leads=("4398046511104",), copies=("4402341478400",))
    assert list(claims.lines()) == [
        "leads 1 regions: 4398046511104",
        "has copies of 1 regions: 4402341478400",
    ]
