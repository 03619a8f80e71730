"""Tables planned with copies: how many, where, and what is refused before anything is made."""

from dataclasses import replace
from typing import Any

import pytest

from keys.catalog.catalog import Catalog
from keys.model.log import PlacementCreated, TableCreated, TablespaceCreated
from keys.model.placing.placements import NodeFilter, PlacementInfo, StorageProfile
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.tables import TableRoute
from metasrv.service.ddl.ddl_create import TableToCreate, plan_create_table
from metasrv.service.requests.ddl_request import FullTableName, ProcedureToSubmit, RequestFacts
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import Conflict, MetaError, Refused, Unavailable
from metasrv_base.wire.api.tables import TableSpec
from metasrv_base.wire.problem.problems import problem_of
from procedures.kinds.tables.create_table import CreateTable
from procedures.ports import NodeView
from tests.keys.catalog.logs import first_update, update
from tests.metasrv.api.rig import TABLES, spec
from tests.procedures.harness.copies.copied_tables import IN_SYNC, copied_info, copied_route

LSM = StorageProfile(name="default", engine="lsm")
FAST = PlacementInfo(
    placement_id=1_030,
    name="fast",
    replicas=2,
    storage_profiles=(LSM,),
    node_filter=NodeFilter(zones=("a", "b")),
    created_at_ms=0,
)
SPACE = TablespaceInfo(tablespace_id=1_040, catalog="main", name="space", created_at_ms=0)
NODES = tuple(
    NodeView(f"dn-{one}", zone, f"/dn-{one}", alive=True, regions=0, disk_free_bytes=1 << 40)
    for one, zone in enumerate("aabc", start=1)
)


def catalog() -> Catalog:
    made = (PlacementCreated(info=FAST), TablespaceCreated(info=SPACE))
    return Catalog().apply(first_update(), 1).apply(update(2, *made), 2)


def planned(
    nodes: tuple[NodeView, ...] = NODES, of: Catalog | None = None, **more: Any
) -> CreateTable:
    body = spec(**more)
    table = TableToCreate(FullTableName("main", "public", "t"), TableSpec.model_validate(body))
    context = RequestContext("POST", TABLES, body, "r", body_bytes=len(str(body)))
    plan = plan_create_table(context, table, RequestFacts(of or catalog(), nodes, 1))
    assert isinstance(plan, ProcedureToSubmit)
    assert plan.numbered is not None
    state = plan.numbered(1_090)
    assert isinstance(state, CreateTable)
    return state


def detail(error: MetaError) -> str:
    return str(problem_of(error, "/", "r")[2]["detail"])


def nodes_of(route: TableRoute) -> list[tuple[str, ...]]:
    return [region.nodes for region in route.region_routes]


@pytest.mark.parametrize(
    ("more", "replicas"),
    [
        ({}, 1),
        ({"replicas": 3}, 3),
        ({"placement": "fast"}, 2),
        ({"placement": "fast", "replicas": 1}, 1),
        ({"placement": "default"}, 1),
    ],
)
def test_given_a_spec_and_a_placement_when_planned_then_the_spec_says_how_many_copies(
    more: dict[str, Any], replicas: int
) -> None:
    state = planned(**more)

    (region,) = state.route.region_routes
    assert (state.info.replicas, len(set(region.nodes))) == (replicas, replicas)
    assert region.in_sync == region.nodes
    assert (region.copies_version, state.route.format) == ((1, 2) if replicas > 1 else (0, 1))
    assert all(root.startswith("/dn-") for root in region.roots)
    assert len(set(region.roots)) == replicas


def test_given_a_placement_with_zones_when_planned_then_copies_are_in_different_ones_of_them() -> (
    None
):
    partition = {"by": "hash", "columns": ["id"], "count": 6}

    state = planned(placement="fast", partition=partition)

    zones = {node.node_id: node.zone for node in NODES}
    assert {frozenset(zones[node] for node in nodes) for nodes in nodes_of(state.route)} == {
        frozenset("ab")
    }


@pytest.mark.parametrize(("replicas", "eligible"), [(3, 2), (5, 2)])
def test_given_fewer_nodes_than_copies_when_planned_then_refused_with_the_reason_of_each(
    replicas: int, eligible: int
) -> None:
    nodes = (*NODES[:2], replace(NODES[2], alive=False), replace(NODES[3], cordoned=True))

    with pytest.raises(Conflict) as refused:
        planned(nodes, replicas=replicas)

    facts = refused.value.facts
    assert refused.value.code == "node-not-eligible"
    assert (facts["replicas"], facts["eligible"]) == (replicas, eligible)
    assert facts["reasons"] == {"dn-3": "not alive", "dn-4": "cordoned"}
    assert detail(refused.value) == (
        f"{replicas} copies need as many nodes, and 2 can take one:"
        " dn-3 is not alive; dn-4 is cordoned."
    )


def test_given_fewer_nodes_than_copies_and_all_take_one_when_planned_then_the_number_is_told() -> (
    None
):
    with pytest.raises(Conflict) as refused:
        planned(replicas=5)

    assert detail(refused.value) == ("5 copies need as many nodes, and 4 can take one.")


def test_given_a_filter_with_too_few_nodes_when_planned_then_its_condition_is_the_reason() -> None:
    with pytest.raises(Conflict) as refused:
        planned(replicas=4, placement="fast")

    assert detail(refused.value) == (
        "4 copies need as many nodes, and 3 can take one:"
        " dn-4 is outside the node filter: zone a or b wanted."
    )


@pytest.mark.parametrize(
    ("more", "pointer", "code"),
    [
        ({"replicas": 2, "storage_profile": "mem"}, "/replicas", "unsupported"),
        ({"min_in_sync": 3}, "/min_in_sync", "invalid-request"),
    ],
)
def test_given_copies_that_the_placement_does_not_allow_when_planned_then_refused_with_the_place(
    more: dict[str, Any], pointer: str, code: str
) -> None:
    profiles = (LSM, StorageProfile(name="mem", engine="memory"))
    made = PlacementCreated(info=FAST.model_copy(update={"storage_profiles": profiles}))
    of = Catalog().apply(first_update(), 1).apply(update(2, made), 2)

    with pytest.raises(Refused) as refused:
        planned(of=of, placement="fast", **more)

    errors = refused.value.facts["errors"]
    assert isinstance(errors, tuple)
    assert [(error.code, error.pointer) for error in errors] == [(code, pointer)]


def test_given_a_node_that_was_not_heard_yet_when_planned_then_it_is_waited_for() -> None:
    nodes = (NODES[0], replace(NODES[1], disk_free_bytes=0))

    with pytest.raises(Unavailable) as refused:
        planned(nodes, replicas=2)

    assert refused.value.code == "not-ready"


def test_given_a_group_with_copies_when_planned_then_leader_and_copies_go_beside_it() -> None:
    info = copied_info(1_050, "old", 2).model_copy(
        update={"tablespace_id": SPACE.tablespace_id, "format": 2}
    )
    copies = ((("dn-4", IN_SYNC),), (("dn-3", IN_SYNC),))
    route = copied_route(1_050, ("dn-2", "dn-4"), copies)
    of = catalog().apply(update(3, TableCreated(info=info, route=route)), 3)
    partition = {"by": "hash", "columns": ["id"], "count": 2}

    state = planned(of=of, tablespace="space", replicas=2, partition=partition)

    assert nodes_of(state.route) == [("dn-2", "dn-4"), ("dn-4", "dn-3")]


def test_given_a_table_of_many_copies_when_planned_then_its_route_must_fit() -> None:
    nodes = tuple(
        replace(NODES[0], node_id=f"dn-{one}", root="/" + "x" * 120 + str(one)) for one in range(3)
    )
    partition = {"by": "hash", "columns": ["id"], "count": 700}

    with pytest.raises(Refused) as refused:
        planned(nodes, replicas=3, partition=partition)

    assert refused.value.code == "ddl-too-large"


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_given_preferred_zones_when_planned_then_every_leader_is_in_the_best_one(
    replicas: int,
) -> None:
    preferring = FAST.model_copy(
        update={"format": 3, "node_filter": NodeFilter(), "preferred_zones": ("b", "c")}
    )
    of = Catalog().apply(first_update(), 1).apply(update(2, PlacementCreated(info=preferring)), 2)
    partition = {"by": "hash", "columns": ["id"], "count": 4}
    more: dict[str, Any] = {"placement": "fast", "replicas": replicas, "partition": partition}

    state = planned(of=of, **more)
    without_b = planned((*NODES[:2], replace(NODES[2], alive=False), NODES[3]), of, **more)

    zones = {node.node_id: node.zone for node in NODES}
    assert {zones[nodes[0]] for nodes in nodes_of(state.route)} == {"b"}
    assert {zones[nodes[0]] for nodes in nodes_of(without_b.route)} == {"c"}
    if replicas == 2:
        assert {zones[nodes[1]] for nodes in nodes_of(state.route)} == {"c"}, "the next leader"
