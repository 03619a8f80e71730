"""Lost regions of nodes that live: which of them the leader says in the route."""

from keys.model.log import RouteChanged, TableCreated
from keys.model.tables import RegionState, TableRoute
from metasrv.leadership.lost_regions import failing_leaders, lost_regions
from metasrv.nodes.heartbeats.region_report import RegionReport
from metasrv.nodes.status import NodeState, NodeStatus
from metasrv_base.engines import LSM, MEMORY
from metasrv_base.wire.node.nodes import RegionColumns, RegionStat
from tests.metasrv.nodes.catalogs import catalog_of
from tests.metasrv.nodes.samples import node
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    LEARNER,
    copied_info,
    copied_route,
)
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


def test_given_a_report_with_lost_regions_then_they_are_found_with_their_epochs() -> None:
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

    assert report.in_state("lost") == {SECOND: 1, THIRD: 2, str(TABLE << 32 | 4): 4}


def started_again(restarted: dict[str, int], state: NodeState = NodeState.ALIVE) -> NodeStatus:
    return NodeStatus(node("dn-1"), state, 0.0, 0, 0, None, {}, restarted=restarted)


def test_given_regions_that_need_a_new_epoch_then_one_procedure_for_each_table() -> None:
    (other,) = region_ids(OTHER, 1)
    restarted = {FIRST: 1, SECOND: 1, THIRD: 1, other: 1}

    first, second = failing_leaders([started_again(restarted)], catalog_of(*entries()), ())

    assert (first.table_id, first.source) == (TABLE, "dn-1")
    assert first.region_ids == (FIRST, SECOND), "the third is led elsewhere"
    assert second.region_ids == (other,)


def test_given_what_needs_no_new_epoch_then_nothing_is_begun() -> None:
    restarted = {FIRST: 1}
    catalog = catalog_of(*entries())
    region = catalog.tables[TABLE].route.region_routes[0]
    opening = region.model_copy(update={"state": RegionState.OPENING})
    moving = catalog_of(*entries(), RouteChanged(table_id=TABLE, version=2, regions=(opening,)))

    assert failing_leaders([started_again({FIRST: 2})], catalog, ()) == (), "of another epoch"
    assert failing_leaders([started_again(restarted)], catalog, {(TABLE, "dn-1")}) == ()
    assert failing_leaders([started_again(restarted, NodeState.DEAD)], catalog, ()) == ()
    assert failing_leaders([started_again(restarted)], moving, ()) == (), "a procedure opens it"
    assert failing_leaders([started_again({"4294967296000": 1})], catalog, ()) == ()


def copied() -> list[TableCreated | RouteChanged]:
    """Table t of lsm: dn-1 leads three regions, the second and the third have copies in sync."""
    copies = ((), (("dn-2", IN_SYNC),), (("dn-2", LEARNER), ("dn-3", IN_SYNC)))
    route = copied_route(TABLE, ("dn-1",) * 3, copies)
    return [TableCreated(info=copied_info(TABLE, "t", 3), route=route)]


def reporting(name: str, *regions: str, state: NodeState = NodeState.ALIVE) -> NodeStatus:
    """A node that has lost *regions*."""
    return NodeStatus(node(name), state, 0.0, 0, 0, None, {}, lost=dict.fromkeys(regions, 1))


def test_given_a_leader_that_lost_its_files_when_a_copy_has_them_then_that_one_is_to_lead() -> None:
    """Its process lives and answers, so nobody takes it for dead or silent."""
    nodes = [reporting("dn-1", FIRST, SECOND, THIRD), reporting("dn-2"), reporting("dn-3")]

    (moved,) = failing_leaders(nodes, catalog_of(*copied()), ())

    assert (moved.table_id, moved.source) == (TABLE, "dn-1")
    assert moved.region_ids == (SECOND, THIRD), "of the first there is no copy"
    assert moved.reason == "its leader has lost its files"


def test_given_lost_files_that_no_other_living_copy_has_then_nothing_is_begun() -> None:
    catalog = catalog_of(*copied())
    dead = NodeState.DEAD

    def begun(*others: NodeStatus) -> list[tuple[str, ...]]:
        nodes = [reporting("dn-1", SECOND, THIRD), *others]
        return [moved.region_ids for moved in failing_leaders(nodes, catalog, ())]

    assert begun() == []
    assert begun(reporting("dn-2"), reporting("dn-3", state=dead)) == [(SECOND,)]
    assert begun(reporting("dn-2", SECOND), reporting("dn-3")) == [(THIRD,)]
    assert failing_leaders([reporting("dn-1", SECOND, state=dead)], catalog, ()) == ()


def test_given_lost_files_of_a_leader_that_is_alone_then_an_eligible_copy_is_to_lead() -> None:
    route = copied_route(TABLE, ("dn-1",), ((("dn-2", LEARNER),),))
    (region,) = route.region_routes
    left = region.copies[0].model_copy(update={"eligible_epoch": region.epoch})
    marked = route.model_copy(update={"region_routes": (region.with_copies((left,)),)})
    nodes = [reporting("dn-1", FIRST), reporting("dn-2")]

    def begun(of: TableRoute, *nodes: NodeStatus) -> list[tuple[str, ...]]:
        catalog = catalog_of(TableCreated(info=copied_info(TABLE, "t", 1), route=of))
        return [moved.region_ids for moved in failing_leaders(nodes, catalog, ())]

    assert begun(marked, *nodes) == [(FIRST,)]
    assert begun(route, *nodes) == []
    assert begun(marked, nodes[0], reporting("dn-2", FIRST)) == []
