"""Lost regions of nodes that live: which of them the leader says in the route."""

from keys.model.log import RouteChanged, TableCreated
from keys.model.tables import RegionState
from metasrv.leadership.lost_regions import lost_regions, restarted_leaders
from metasrv.nodes.heartbeats.region_report import RegionReport
from metasrv.nodes.status import NodeState, NodeStatus
from metasrv_base.engines import LSM, MEMORY
from metasrv_base.wire.node.nodes import RegionColumns, RegionStat
from tests.metasrv.nodes.catalogs import catalog_of
from tests.metasrv.nodes.samples import node
from tests.procedures.harness.tables import region_ids, table_info, table_route

TABLE, OTHER = 1024, 1025
FIRST, SECOND, THIRD = region_ids(TABLE, 3)


def entries(engine: str = MEMORY) -> list[TableCreated | RouteChanged]:
    """Table t: two regions on dn-1, one on dn-2; and u, of lsm."""
    info = table_info(TABLE, "t", 3).model_copy(update={"engine": engine})
    other = table_info(OTHER, "u", 1)
    return [
        TableCreated(info=info, route=table_route(TABLE, ("dn-1", "dn-1", "dn-2"))),
        TableCreated(info=other, route=table_route(OTHER, ("dn-1",))),
    ]


def status(lost: dict[str, int], state: NodeState = NodeState.ALIVE) -> NodeStatus:
    return NodeStatus(node("dn-1"), state, 0.0, 0, 0, None, {}, lost=lost)


def test_given_regions_in_memory_that_a_node_has_lost_then_one_procedure_for_their_table() -> None:
    lost = {FIRST: 1, SECOND: 1, THIRD: 1, region_ids(OTHER, 1)[0]: 1}

    (procedure,) = lost_regions([status(lost)], catalog_of(*entries()), ())

    assert procedure.epochs == {FIRST: 1, SECOND: 1}, "the third is led elsewhere"
    assert (procedure.table_id, procedure.node) == (TABLE, "dn-1")


def test_given_what_is_no_loss_of_memory_then_nothing_is_said() -> None:
    lost = {FIRST: 1}
    catalog = catalog_of(*entries())
    routed = catalog.tables[TABLE].route.region_routes[0]
    said = routed.model_copy(update={"state": RegionState.LOST})
    marked = catalog_of(*entries(), RouteChanged(table_id=TABLE, version=2, regions=(said,)))

    assert lost_regions([status({FIRST: 2})], catalog, ()) == (), "of another epoch"
    assert lost_regions([status(lost)], catalog, {TABLE}) == (), "said a moment ago"
    assert lost_regions([status(lost, NodeState.DEAD)], catalog, ()) == ()
    assert lost_regions([status(lost)], catalog_of(*entries(LSM)), ()) == ()
    assert lost_regions([status(lost)], marked, ()) == ()
    assert lost_regions([status({"4294967296000": 1})], catalog, ()) == (), "an unknown table"


def test_given_a_report_with_lost_regions_then_the_first_are_kept_with_their_epochs() -> None:
    states = ["open", "lost", "lost", "opening", "lost"]
    report = RegionReport(
        RegionColumns.of(
            RegionStat(
                region_id=str(TABLE << 32 | number),
                epoch=number,
                state=state,
                rows=0,
                bytes=0,
                wal_bytes=0,
                files=0,
                version=0,
            )
            for number, state in enumerate(states)
        )
    )

    assert report.in_state("lost", 2) == {SECOND: 1, THIRD: 2}


def started_again(restarted: dict[str, int], state: NodeState = NodeState.ALIVE) -> NodeStatus:
    return NodeStatus(node("dn-1"), state, 0.0, 0, 0, None, {}, restarted=restarted)


def test_given_regions_that_need_a_new_epoch_then_one_procedure_for_each_table() -> None:
    (other,) = region_ids(OTHER, 1)
    restarted = {FIRST: 1, SECOND: 1, THIRD: 1, other: 1}

    first, second = restarted_leaders([started_again(restarted)], catalog_of(*entries()), ())

    assert (first.table_id, first.source) == (TABLE, "dn-1")
    assert first.region_ids == (FIRST, SECOND), "the third is led elsewhere"
    assert second.region_ids == (other,)


def test_given_what_needs_no_new_epoch_then_nothing_is_begun() -> None:
    restarted = {FIRST: 1}
    catalog = catalog_of(*entries())
    region = catalog.tables[TABLE].route.region_routes[0]
    opening = region.model_copy(update={"state": RegionState.OPENING})
    moving = catalog_of(*entries(), RouteChanged(table_id=TABLE, version=2, regions=(opening,)))

    assert restarted_leaders([started_again({FIRST: 2})], catalog, ()) == (), "of another epoch"
    assert restarted_leaders([started_again(restarted)], catalog, {(TABLE, "dn-1")}) == ()
    assert restarted_leaders([started_again(restarted, NodeState.DEAD)], catalog, ()) == ()
    assert restarted_leaders([started_again(restarted)], moving, ()) == (), "a procedure opens it"
    assert restarted_leaders([started_again({"4294967296000": 1})], catalog, ()) == ()
