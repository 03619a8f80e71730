"""Answers to a heartbeat, rule by rule."""

from collections.abc import Iterable

import pytest

from keys.catalog.catalog import Catalog
from keys.model.log import (
    CatalogUpdate,
    DroppedRouteChanged,
    RouteChanged,
    TableCreated,
    TableDropped,
    TablePurged,
)
from keys.model.tables import CopyRole, RegionCopy, RegionState, TableRoute
from metasrv.nodes.heartbeats.instruction_window import INSTRUCTIONS_MAX, InstructionWindow
from metasrv.nodes.heartbeats.reconcile import OPENED_IN_TURN, Reconciled, Reported, reconcile
from metasrv.nodes.heartbeats.region_report import RegionReport
from metasrv_base.concurrency.turns import TURN
from metasrv_base.wire.node.nodes import RegionColumns, RegionStat
from metasrv_base.wire.node.orders import CloseRegion, DropRegion, OpenRegion
from tests.metasrv.nodes.catalogs import catalog_of
from tests.metasrv.nodes.samples import info, route, stat

REGION = "4398046511104"


def reported(stats: Iterable[RegionStat]) -> Reported:
    return Reported("dn-1", RegionReport(RegionColumns.of(stats)))


def said(placed: TableRoute, *report: RegionStat, busy: bool = False) -> Reconciled:
    return answered(catalog_of(TableCreated(info=info(), route=placed)), *report, busy=busy)


def answered(catalog: Catalog, *report: RegionStat, busy: bool = False) -> Reconciled:
    parts = tuple(reconcile(lambda: catalog, reported(report), lambda _: busy, InstructionWindow()))
    return Reconciled(
        tuple(grant for part in parts for grant in part.grants),
        tuple(order for part in parts for order in part.instructions),
        all(part.is_settled for part in parts),
    )


def test_given_a_region_that_serves_when_beating_then_its_lease_is_granted() -> None:
    answer = said(route("dn-1"), stat(REGION))

    assert [(grant.region_id, grant.epoch) for grant in answer.grants] == [(REGION, 1)]
    assert answer.instructions == ()
    assert answer.is_settled


def test_given_a_region_the_node_lost_at_its_restart_when_beating_then_open_it() -> None:
    answer = said(route("dn-1"))

    assert answer.grants == ()
    assert not answer.is_settled
    (order,) = answer.instructions
    assert isinstance(order, OpenRegion)
    assert (order.region_id, order.epoch) == (REGION, 1)


def test_given_a_region_not_announced_yet_when_beating_then_its_procedure_opens_it() -> None:
    answer = said(route("dn-1", state=RegionState.OPENING, announced=False))

    assert (answer.grants, answer.instructions) == ((), ())


def test_given_an_older_epoch_when_beating_then_no_lease_and_an_order_to_open() -> None:
    answer = said(route("dn-1", epoch=3), stat(REGION, epoch=2))

    assert answer.grants == ()
    assert [type(order) for order in answer.instructions] == [OpenRegion]


@pytest.mark.case("input 94")
def test_given_a_region_that_moved_away_when_beating_then_close_it() -> None:
    answer = said(route("dn-2"), stat(REGION))

    assert answer.grants == ()
    assert [type(order) for order in answer.instructions] == [CloseRegion]


@pytest.mark.parametrize("role", CopyRole)
def test_given_a_copy_that_does_not_lead_when_beating_then_no_lease_and_it_stays(
    role: CopyRole,
) -> None:
    copy = RegionCopy(node="dn-1", root="/data/dn-1", role=role)

    assert said(route("dn-2", copies=(copy,)), stat(REGION)) == Reconciled((), (), is_settled=True)


@pytest.mark.parametrize("role", CopyRole)
def test_given_a_copy_that_the_node_lacks_when_beating_then_it_opens_its_root_as_a_copy(
    role: CopyRole,
) -> None:
    copy = RegionCopy(node="dn-1", root="/data/dn-1", role=role)
    placed = route("dn-2", copies=(copy,), copies_version=1, epoch=3)

    for report in ((), (stat(REGION, epoch=2),)):
        answer = said(placed, *report)

        assert answer.grants == ()
        (order,) = answer.instructions
        assert isinstance(order, OpenRegion)
        assert (order.role, order.root, order.epoch) == ("copy", "/data/dn-1", 3)


def test_given_copies_that_a_node_was_not_told_of_when_beating_then_it_is_told_and_leads() -> None:
    copy = RegionCopy(node="dn-2", root="/data/dn-2", role=CopyRole.IN_SYNC)
    placed = route("dn-1", copies=(copy,), copies_version=4)

    answer = said(placed, stat(REGION).model_copy(update={"copies_version": 3}))
    known = said(placed, stat(REGION).model_copy(update={"copies_version": 4}))

    assert [grant.region_id for grant in answer.grants] == [REGION]
    (order,) = answer.instructions
    assert isinstance(order, OpenRegion)
    assert (order.role, order.copies and order.copies.version) == ("leader", 4)
    assert known == Reconciled(answer.grants, (), is_settled=True)


def test_given_a_dropped_table_when_beating_then_close_and_keep_the_files() -> None:
    catalog = catalog_of(
        TableCreated(info=info(), route=route("dn-1")),
        TableDropped(table_id=1024, dropped_at_ms=1, dropped_by="p"),
    )

    answer = answered(catalog, stat(REGION))

    assert answer.grants == ()
    assert [type(order) for order in answer.instructions] == [CloseRegion]


@pytest.mark.parametrize(
    ("node", "epoch", "closes"), [("dn-1", 2, False), ("dn-1", 1, False), ("dn-2", 2, True)]
)
def test_given_a_dropped_table_that_a_move_has_woken_then_it_stays_open_without_a_lease(
    node: str, epoch: int, closes: bool
) -> None:
    """Until the move says that it is closed again; and on the nodes of its route alone."""
    placed = route(node)
    (region,) = placed.region_routes
    woken = region.model_copy(update={"epoch": 2, "state": RegionState.OPENING})
    asleep = woken.model_copy(update={"state": RegionState.OPEN})
    moves = [
        DroppedRouteChanged(table_id=1024, version=version, regions=(each,))
        for version, each in ((placed.version + 1, woken), (placed.version + 2, asleep))
    ]
    gone = TableDropped(table_id=1024, dropped_at_ms=1, dropped_by="p")
    entries = (TableCreated(info=info(), route=placed), gone)

    moving = answered(catalog_of(*entries, moves[0]), stat(REGION, epoch=epoch))
    moved = answered(catalog_of(*entries, *moves), stat(REGION, epoch=epoch))

    assert (moving.grants, moved.grants) == ((), ())
    assert bool(moving.instructions) is closes
    assert [type(order) for order in moved.instructions] == [CloseRegion]


def test_given_a_purged_table_that_a_node_still_serves_when_beating_then_drop_it() -> None:
    catalog = catalog_of(
        TableCreated(info=info(), route=route("dn-1")),
        TableDropped(table_id=1024, dropped_at_ms=1, dropped_by="p"),
        TablePurged(table_id=1024),
    )

    answer = answered(catalog, stat(REGION))

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


def test_given_a_table_that_moves_between_two_parts_then_no_lease_is_granted_of_it() -> None:
    """A failover that begins at that moment has seen no such lease, and waits for none."""
    tables = range(1_024, 1_024 + TURN + 2)
    regions = [str(table << 32) for table in tables]
    created = [
        TableCreated(info=info(table, f"t{table}"), route=route("dn-1", table)) for table in tables
    ]
    catalogs = [catalog_of(*created)]
    report = reported(stat(region) for region in regions)

    parts = reconcile(lambda: catalogs[-1], report, lambda _: False, InstructionWindow())
    first = next(parts)
    granted = {grant.region_id for grant in first.grants}
    moved = [one for one in created if one.route.region_routes[0].region_id not in granted]
    elsewhere = [
        RouteChanged(
            table_id=one.info.table_id,
            version=2,
            regions=route("dn-2", one.info.table_id, epoch=2).region_routes,
        )
        for one in moved
    ]
    update = CatalogUpdate(version=2, at_ms=2, procedure=None, entries=tuple(elsewhere))
    catalogs.append(catalogs[0].apply(update, 2))
    rest = list(parts)

    assert len(first.grants) == TURN
    assert [part.grants for part in rest] == [()] * len(rest)
    closed = {order.region_id for part in rest for order in part.instructions}
    assert closed == set(regions) - granted


def test_given_many_regions_then_each_part_is_about_few_of_them() -> None:
    catalog = catalog_of()
    tables = range(1_024, 1_024 + 3 * TURN)
    report = reported(stat(str(table << 32)) for table in tables)

    parts = list(reconcile(lambda: catalog, report, lambda _: False, InstructionWindow()))

    assert len(parts) == 3
    assert [len(part.instructions) for part in parts] == [TURN, TURN, INSTRUCTIONS_MAX - 2 * TURN]


def test_given_many_regions_to_open_then_each_part_decodes_few_tables() -> None:
    tables = range(1_024, 1_024 + TURN)
    catalog = catalog_of(
        *(TableCreated(info=info(id, f"t{id}"), route=route("dn-1", id)) for id in tables)
    )

    parts = list(reconcile(lambda: catalog, reported(()), lambda _: False, InstructionWindow()))

    assert {len(part.instructions) for part in parts} == {OPENED_IN_TURN}
    assert len(parts) * OPENED_IN_TURN == len(tables)


def test_given_more_regions_to_open_than_an_answer_holds_then_each_is_asked_for_in_turn() -> None:
    """None of them is opened: the first ones do not keep the others waiting."""
    tables = range(1_024, 1_024 + 2 * INSTRUCTIONS_MAX + 10)
    catalog = catalog_of(
        *(TableCreated(info=info(id, f"t{id}"), route=route("dn-1", id)) for id in tables)
    )
    start, sizes, opened = 0, [], []
    for _ in range(4):
        window = InstructionWindow(start)
        parts = list(reconcile(lambda: catalog, reported(()), lambda _: False, window))
        orders = [order for part in parts for order in part.instructions]
        sizes.append(len(orders))
        opened += [order.region_id for order in orders]
        start = window.following

    assert sizes == [INSTRUCTIONS_MAX, INSTRUCTIONS_MAX, 10, INSTRUCTIONS_MAX]
    assert len(set(opened)) == len(tables)
