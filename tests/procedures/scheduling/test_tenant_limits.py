"""The limits of tenants: what is there, what is being made, and what one more would come to."""

from dataclasses import replace
from typing import Any

import pytest

from keys.catalog.catalog import Catalog
from keys.model.catalogs import CatalogInfo, CatalogLimits, ResourceShare
from keys.model.log import CatalogAltered, CatalogCreated, TableCreated, TableDropped
from keys.model.records import ClientRequirements, ProcedureRecord
from metasrv_base.errors import Conflict, MetaError, Refused
from procedures.engine import record_transitions
from procedures.engine.submit import _UNKNOWN
from procedures.kinds.batch.batch import BATCH, CommandBatch
from procedures.kinds.batch.members import Change
from procedures.kinds.namespaces.alter_catalog import ALTER_CATALOG, AlterCatalog
from procedures.kinds.namespaces.create_catalog import CREATE_CATALOG, CreateCatalog
from procedures.kinds.namespaces.drop_catalog import DROP_CATALOG, DropCatalog
from procedures.kinds.tables.create_table import CREATE_TABLE, CreateTable
from procedures.kinds.tables.drop_table import DROP_TABLE, DropTable
from procedures.kinds.tables.undrop_table import UNDROP_TABLE, UndropTable
from procedures.machine import Kind, ProcedureState
from procedures.ports import NodeView
from procedures.scheduling.tenant_limits import TenantReservations, TenantUse
from tests.keys.catalog.logs import MAIN, first_update, update
from tests.procedures.harness.tables import NODES, table_info, table_route

CLIENT = ClientRequirements(submitted_by="u", request_id="r", statement={})


def create(table_id: int, regions: int = 1) -> CreateTable:
    leaders = tuple(NODES[number % len(NODES)] for number in range(regions))
    info = table_info(table_id, f"t{table_id}", regions)
    return CreateTable(info=info, route=table_route(table_id, leaders))


def in_catalog(state: CreateTable, catalog: str) -> CreateTable:
    return state.model_copy(update={"info": state.info.model_copy(update={"catalog": catalog})})


class World:
    """A catalog that grows, and the limits that are judged by it."""

    def __init__(self, **limits: int) -> None:
        self.catalog = Catalog().apply(first_update(), 1)
        self.add(CatalogAltered(info=MAIN.as_tenant(MAIN.own_settings, CatalogLimits(**limits))))
        self.node = NodeView("dn-1", "z", "/d", True, 0, 1, cpu_cores=4, memory_bytes=1 << 30)
        self.tenants = TenantReservations(lambda: self.catalog, lambda: (self.node,))

    def add(self, *entries: Any) -> None:
        version = self.catalog.version + 1
        self.catalog = self.catalog.apply(update(version, *entries), version)

    def made(self, state: CreateTable) -> None:
        self.add(TableCreated(info=state.info, route=state.route))

    def ask(self, procedure: str, kind: Kind[Any], state: ProcedureState) -> MetaError | None:
        """As a submission: refused, or reserved."""
        locks = kind.locks(state)
        refusal = self.tenants.refusal(kind, state, locks)
        if refusal is None:
            self.tenants.reserve(procedure, kind, state, locks)
        return refusal

    def use(self) -> TenantUse:
        return self.tenants.use("main")


def record(kind: Kind[Any], state: ProcedureState) -> ProcedureRecord:
    return record_transitions.begin(kind, state, CLIENT, _UNKNOWN, parent=None)


def test_given_one_free_place_when_32_ask_for_it_then_one_has_it() -> None:
    world = World(tables=3)
    world.made(create(1))
    world.made(create(2))

    refusals = [world.ask(f"p{number}", CREATE_TABLE, create(number)) for number in range(10, 42)]

    assert refusals.count(None) == 1
    facts = {"catalog": "main", "limit": "tables", "at_most": 3, "use": 3, "request": 1}
    for refusal in filter(None, refusals):
        assert isinstance(refusal, Conflict)
        assert (refusal.code, refusal.facts) == ("tenant-limit", facts)


def test_given_a_table_that_is_made_then_it_counts_once_before_and_behind_its_commit() -> None:
    world = World(tables=2, regions=9)
    one = create(1, regions=3)

    world.ask("p", CREATE_TABLE, one)
    asked = world.use()
    world.made(one)
    made = world.use()
    world.tenants.release("p")
    over = world.use()

    assert (asked.tables, asked.regions, asked.procedures) == (1, 3, 1)
    assert made == asked
    assert (over.tables, over.regions, over.procedures) == (1, 3, 0)


def test_given_a_create_that_is_undone_then_its_place_is_free_again() -> None:
    world = World(tables=1)
    world.ask("p", CREATE_TABLE, create(1))
    taken = world.ask("q", CREATE_TABLE, create(2))

    world.tenants.release("p")
    world.tenants.release("p")

    assert taken is not None
    assert world.use() == TenantUse()
    assert world.ask("q", CREATE_TABLE, create(2)) is None


@pytest.mark.parametrize(
    ("limits", "regions", "limit"),
    [({"regions": 4}, 5, "regions"), ({"tables": 0}, 1, "tables")],
)
def test_given_a_request_above_the_limit_by_itself_then_422_for_no_drop_makes_room(
    limits: dict[str, int], regions: int, limit: str
) -> None:
    refusal = World(**limits).ask("p", CREATE_TABLE, create(1, regions))

    assert isinstance(refusal, Refused)
    assert refusal.code == "above-tenant-limit"
    assert refusal.facts["limit"] == limit


def test_given_a_dropped_table_then_it_does_not_count_until_it_comes_back() -> None:
    world = World(tables=1, regions=2)
    world.made(create(1, regions=2))
    world.add(TableDropped(table_id=1, dropped_at_ms=1, dropped_by="p"))
    back = UndropTable(
        table_id=1, catalog="main", schema_name="public", old_name="t1", new_name="t1"
    )

    free = world.use()
    undropped = world.ask("p", UNDROP_TABLE, back)
    new = world.ask("q", CREATE_TABLE, create(2))

    assert (free.tables, free.regions) == (0, 0)
    assert undropped is None
    assert (world.use().tables, world.use().regions) == (1, 2)
    assert new is not None


def test_given_changes_that_are_not_over_then_no_more_begin_than_the_limit_but_of_the_limit() -> (
    None
):
    world = World(procedures=2)
    drop = DropTable(catalog="main", schema_name="public", name="t1", table_id=1)
    for number in (1, 2):
        assert world.ask(f"p{number}", CREATE_TABLE, create(number)) is None

    refused = [
        world.ask("q", CREATE_TABLE, create(3)),
        world.ask("r", DROP_TABLE, drop),
    ]
    raised = world.ask(
        "s", ALTER_CATALOG, AlterCatalog(name="main", catalog_id=1, limits={"procedures": 9})
    )
    gone = world.ask("t", DROP_CATALOG, DropCatalog(name="main", catalog_id=1, cascade=True))

    assert [error and error.facts["limit"] for error in refused] == ["procedures"] * 2
    assert (raised, gone) == (None, None)


def test_given_a_lower_limit_on_its_way_when_tables_are_made_then_it_holds_already() -> None:
    world = World(tables=10)
    world.made(create(1))
    lower = AlterCatalog(name="main", catalog_id=1, limits={"tables": 2})
    higher = AlterCatalog(name="main", catalog_id=1, limits={"tables": 50})

    assert world.ask("higher", ALTER_CATALOG, higher) is None
    assert world.ask("lower", ALTER_CATALOG, lower) is None
    first, second = (world.ask(f"p{n}", CREATE_TABLE, create(n)) for n in (2, 3))

    assert (first, second and second.facts["at_most"]) == (None, 2)


@pytest.mark.parametrize("tables", [0, 1, 2])
def test_given_more_tables_than_a_new_limit_then_it_is_refused_with_those_being_made(
    tables: int,
) -> None:
    world = World(tables=10)
    world.made(create(1))
    world.ask("p", CREATE_TABLE, create(2))

    lower = AlterCatalog(name="main", catalog_id=1, limits={"tables": tables})
    refusal = world.ask("q", ALTER_CATALOG, lower)

    assert (refusal is None) == (tables == 2)
    if refusal is not None:
        assert (refusal.code, refusal.facts["use"]) == ("tenant-limit", 2)


def test_given_records_of_the_leader_before_when_taken_in_then_the_use_is_what_it_was() -> None:
    world = World(tables=3, procedures=9)
    asked: list[tuple[str, Kind[Any], ProcedureState]] = [
        ("p", CREATE_TABLE, create(1)),
        ("q", DROP_TABLE, DropTable(catalog="main", schema_name="public", name="x", table_id=9)),
        ("r", ALTER_CATALOG, AlterCatalog(name="main", catalog_id=1, limits={"tables": 1})),
    ]
    for procedure, kind, state in asked:
        assert world.ask(procedure, kind, state) is None
    after = TenantReservations(lambda: world.catalog)

    for procedure, kind, state in asked:
        after.take_in(procedure, record(kind, state), kind)
        after.take_in(procedure, record(kind, state), kind)
    unknown = TenantReservations(lambda: world.catalog)
    unknown.take_in("p", record(CREATE_TABLE, create(1)), None)

    assert after.use("main") == world.use() == TenantUse(1, 1, 2)
    assert after.limits("main") == world.tenants.limits("main")
    assert unknown.use("main") == TenantUse(0, 0, 1)


def test_given_a_child_when_taken_in_then_it_counts_with_its_parent() -> None:
    world = World(tables=3)
    of_parent = record(CREATE_TABLE, create(1)).model_copy(update={"parent": "p"})

    world.tenants.take_in("c", of_parent, CREATE_TABLE)

    assert world.use() == TenantUse()


def test_given_reservations_of_all_tenants_then_no_more_than_the_nodes_have() -> None:
    """A tenant on its way counts; one that changes its own share does not count twice."""
    world = World()

    def tenant(name: str, cores: int) -> CreateCatalog:
        limits = CatalogLimits(cpu_cores=ResourceShare(reserved=cores))
        info = CatalogInfo(catalog_id=7, name=name, created_at_ms=0)
        return CreateCatalog(info=info.as_tenant(info.own_settings, limits))

    first = world.ask("p", CREATE_CATALOG, tenant("a", 3))
    second = world.ask("q", CREATE_CATALOG, tenant("b", 2))
    world.add(CatalogCreated(info=tenant("a", 3).info))
    world.tenants.release("p")
    more = {"cpu_cores": {"reserved": 4, "at_most": None}}
    own = world.ask("r", ALTER_CATALOG, AlterCatalog(name="a", catalog_id=7, limits=more))
    third = world.ask("s", CREATE_CATALOG, tenant("c", 1))
    world.node = replace(world.node, cpu_cores=5)
    fourth = world.ask("s", CREATE_CATALOG, tenant("c", 1))

    assert (first, own, fourth) == (None, None, None)
    assert second is not None
    assert third is not None
    facts = {"catalog": "b", "limit": "cpu_cores", "at_most": 4, "use": 3, "request": 2}
    assert (second.code, second.facts) == ("tenant-limit", facts)
    assert third.facts["use"] == 4


def test_given_a_batch_in_several_tenants_then_it_is_a_change_of_each_and_of_no_new_one() -> None:
    """A new catalog with limits in the same batch takes nothing from what the others count."""
    world = World(procedures=1)
    other = CatalogInfo(catalog_id=8, name="other", created_at_ms=0)
    world.add(CatalogCreated(info=other))
    new = CatalogInfo(catalog_id=9, name="new", created_at_ms=0)
    limits = CatalogLimits(tables=1, procedures=1)
    states: list[tuple[Kind[Any], ProcedureState]] = [
        (CREATE_CATALOG, CreateCatalog(info=new.as_tenant(new.own_settings, limits))),
        (CREATE_TABLE, in_catalog(create(1), "other")),
        (CREATE_TABLE, create(2)),
    ]
    both = CommandBatch(
        members=tuple(
            Change(kind=kind.name, state=state.model_dump(mode="json")) for kind, state in states
        )
    )

    first = world.ask("p", BATCH, both)
    uses = [world.tenants.use(name) for name in ("main", "other", "new")]
    second = world.ask("q", CREATE_TABLE, create(3))
    world.tenants.release("p")

    assert first is None
    assert uses == [TenantUse(1, 1, 1), TenantUse(1, 1, 1), TenantUse()]
    assert second is not None
    assert second.facts["limit"] == "procedures"
    assert world.ask("q", CREATE_TABLE, create(3)) is None


def test_given_a_batch_that_has_taken_effect_then_the_next_leader_counts_what_this_one_does() -> (
    None
):
    """From then on it holds no lock: what it still clears away is no change of a tenant."""
    world = World(tables=9, procedures=9)
    table = create(1)
    made = Change(kind="create_table", state=table.model_dump(mode="json"))
    batch = CommandBatch(members=(made,))
    world.ask("p", BATCH, batch)
    before = world.use()
    world.made(table)
    over = batch.model_copy(update={"members": (), "drops": (7,)})
    after = record(BATCH, over)

    world.tenants.take_again("p", after, BATCH)
    of_next = TenantReservations(lambda: world.catalog)
    of_next.take_in("p", after, BATCH)

    assert before == TenantUse(1, 1, 1)
    assert world.use() == of_next.use("main") == TenantUse(1, 1, 0)


def test_given_a_batch_that_cannot_be_read_when_taken_in_then_it_counts_by_its_locks() -> None:
    world = World(tables=9)
    made = Change(kind="create_table", state=create(1).model_dump(mode="json"))
    stored = record(BATCH, CommandBatch(members=(made,)))
    broken = {**stored.state, "members": [{**stored.state["members"][0], "state": {"info": 1}}]}

    world.tenants.take_in("p", stored.model_copy(update={"state": broken}), BATCH)

    assert world.use() == TenantUse(0, 0, 1)
