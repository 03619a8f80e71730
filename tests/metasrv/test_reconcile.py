"""What a heartbeat is answered, rule by rule."""

import pytest

from base.wire.nodes import RegionStat
from base.wire.orders import CloseRegion, DropRegion, OpenRegion
from keys.catalog import Catalog
from keys.catalogs import CatalogInfo, SchemaInfo
from keys.log import (
    CatalogCreated,
    CatalogUpdate,
    Entry,
    SchemaCreated,
    TableCreated,
    TableDropped,
    TablePurged,
)
from keys.tables import RegionState, TableRoute
from metasrv.nodes.reconcile import Reconciled, reconcile
from tests.metasrv.samples import info, route, stat

REGION = "4398046511104"


def catalog_of(*entries: Entry) -> Catalog:
    first: tuple[Entry, ...] = (
        CatalogCreated(info=CatalogInfo(catalog_id=1, name="main", created_at_ms=0)),
        SchemaCreated(info=SchemaInfo(schema_id=1, catalog="main", name="public", created_at_ms=0)),
    )
    update = CatalogUpdate(version=1, at_ms=1, procedure=None, entries=first + entries)
    return Catalog().apply(update, 1)


def said(placed: TableRoute, *report: RegionStat, busy: bool = False) -> Reconciled:
    catalog = catalog_of(TableCreated(info=info(), route=placed))
    stats = {one.region_id: one for one in report}
    return reconcile(catalog, "dn-1", stats, lambda _: busy)


def test_given_a_region_that_serves_when_beating_then_its_lease_is_granted() -> None:
    answer = said(route("dn-1"), stat(REGION))

    assert [(grant.region_id, grant.epoch) for grant in answer.grants] == [(REGION, 1)]
    assert answer.instructions == ()


def test_given_a_region_the_node_lost_at_its_restart_when_beating_then_open_it() -> None:
    answer = said(route("dn-1"))

    assert answer.grants == ()
    (order,) = answer.instructions
    assert isinstance(order, OpenRegion)
    assert (order.region_id, order.epoch) == (REGION, 1)


def test_given_a_region_not_announced_yet_when_beating_then_its_procedure_opens_it() -> None:
    answer = said(route("dn-1", state=RegionState.OPENING, announced=False))

    assert answer == Reconciled((), ())


def test_given_an_older_epoch_when_beating_then_no_lease_and_an_order_to_open() -> None:
    answer = said(route("dn-1", epoch=3), stat(REGION, epoch=2))

    assert answer.grants == ()
    assert [type(order) for order in answer.instructions] == [OpenRegion]


@pytest.mark.case("input 94")
def test_given_a_region_that_moved_away_when_beating_then_close_it() -> None:
    answer = said(route("dn-2"), stat(REGION))

    assert answer.grants == ()
    assert [type(order) for order in answer.instructions] == [CloseRegion]


def test_given_a_dropped_table_when_beating_then_close_and_keep_the_files() -> None:
    catalog = catalog_of(
        TableCreated(info=info(), route=route("dn-1")),
        TableDropped(table_id=1024, dropped_at_ms=1, dropped_by="p"),
    )

    answer = reconcile(catalog, "dn-1", {REGION: stat(REGION)}, lambda _: False)

    assert answer.grants == ()
    assert [type(order) for order in answer.instructions] == [CloseRegion]


def test_given_a_purged_table_that_a_node_still_serves_when_beating_then_drop_it() -> None:
    catalog = catalog_of(
        TableCreated(info=info(), route=route("dn-1")),
        TableDropped(table_id=1024, dropped_at_ms=1, dropped_by="p"),
        TablePurged(table_id=1024),
    )

    answer = reconcile(catalog, "dn-1", {REGION: stat(REGION)}, lambda _: False)

    assert answer.grants == ()
    (order,) = answer.instructions
    assert isinstance(order, DropRegion)
    assert order.root == route("dn-1").region_routes[0].root


@pytest.mark.case("input 95")
def test_given_a_region_nobody_knows_when_beating_then_drop_it_with_its_folder() -> None:
    unknown = "4402341478400"

    answer = said(route("dn-1"), stat(REGION), stat(unknown))

    (order,) = answer.instructions
    assert isinstance(order, DropRegion)
    assert order.root == f"/data/dn-1/regions/{unknown}-1"


def test_given_a_root_of_an_epoch_before_when_its_region_is_dropped_then_that_root_goes() -> None:
    """An undrop raises the epoch and keeps the root."""
    unknown = "4402341478400"
    root = f"/data/dn-1/regions/{unknown}-1"

    answer = said(route("dn-1"), stat(REGION), stat(unknown, epoch=2, root=root))

    (order,) = answer.instructions
    assert isinstance(order, DropRegion)
    assert (order.epoch, order.root) == (2, root)


def test_given_a_node_that_does_not_say_its_root_when_dropped_then_nothing_is_deleted() -> None:
    unknown = "4402341478400"

    answer = said(route("dn-1"), stat(REGION), stat(unknown, root=None))

    assert [type(order) for order in answer.instructions] == [CloseRegion]


@pytest.mark.case("greptime 93")
def test_given_a_table_being_made_when_beating_then_its_regions_are_left_alone() -> None:
    unknown = "4402341478400"

    answer = said(route("dn-1"), stat(REGION), stat(unknown), busy=True)

    assert len(answer.grants) == 1
    assert answer.instructions == ()


def test_given_a_failover_at_work_when_its_new_leader_restarts_then_it_is_told_to_open() -> None:
    answer = said(route("dn-1", epoch=2, borrows=("/data/dn-2/old",)), busy=True)

    (order,) = answer.instructions
    assert isinstance(order, OpenRegion)
    assert order.borrows == ["/data/dn-2/old"]
