"""Every refusal of every kind: nothing changes, and the history says why."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from keys.model.catalogs import SchemaInfo
from keys.model.records import ProcedureOutcome
from keys.store.kv import Compare
from procedures.context import Context
from procedures.kinds.alter.alter_operations import RenameColumnOperation, SetOptionsOperation
from procedures.kinds.failover.failover_table import FailoverTable
from procedures.kinds.namespaces.create_schema import CreateSchema
from procedures.kinds.namespaces.drop_schema import DropSchema
from procedures.kinds.tables.create_table import CreateTable
from procedures.kinds.tables.drop_table import DROP_TABLE, DropTable
from procedures.machine import Outcome as StepOutcome
from procedures.machine import ProcedureState, Step
from tests.fakes.cluster import Cluster
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import (
    MOVED,
    NEW,
    TAKEN,
    with_dead_node,
    with_dropped_table,
    with_schema,
    with_table,
    with_two_tables,
)
from tests.procedures.harness.tables import put_table, region_ids, table_info, table_route
from tests.procedures.kinds.runs import (
    HERE,
    Given,
    alter,
    begun,
    drop,
    finish,
    move_route,
    rename,
    undrop,
)
from tests.sim.loop import SimLoop, run


def column(name: str, new_name: str) -> RenameColumnOperation:
    return RenameColumnOperation(op="rename_column", name=name, new_name=new_name)


def schema(name: str, catalog: str = "main") -> CreateSchema:
    info = SchemaInfo(schema_id=1040, catalog=catalog, name=name, created_at_ms=1)
    return CreateSchema(info=info)


async def with_replaced_table(cluster: Cluster, fence: Compare) -> None:
    """The name t is borne by another table now."""
    await with_dropped_table(cluster, fence)
    await put_table(cluster, fence, table_info(1027, "t", 1), ("dn-1",))


STALE = {"table_id": TABLE, "if_version": 7}
NOWHERE = table_info(1090, "new", 3, schema="nowhere")


@dataclass(frozen=True)
class Refusal:
    about: str
    kind: str
    state: ProcedureState
    given: Given
    client: Mapping[str, object]
    code: str


REFUSALS = [
    Refusal("name taken", "create_table", TAKEN, with_table, {}, "already-exists"),
    Refusal(
        "no schema",
        "create_table",
        CreateTable(info=NOWHERE, route=NEW.route),
        with_schema,
        {},
        "not-found",
    ),
    Refusal("not there", "drop_table", drop(name="x"), with_table, HERE, "table-not-found"),
    Refusal("If-Match", "drop_table", drop(), with_table, STALE, "version-mismatch"),
    Refusal("another table", "drop_table", drop(), with_replaced_table, HERE, "schema-conflict"),
    Refusal(
        "name taken", "rename_table", rename(new_name="u"), with_two_tables, HERE, "already-exists"
    ),
    Refusal("itself", "rename_table", rename(new_name="t"), with_table, HERE, "already-exists"),
    Refusal(
        "no schema", "rename_table", rename(new_schema="nowhere"), with_table, HERE, "not-found"
    ),
    Refusal("If-Match", "rename_table", rename(), with_table, STALE, "version-mismatch"),
    Refusal(
        "another table", "rename_table", rename(), with_replaced_table, HERE, "schema-conflict"
    ),
    Refusal(
        "no column",
        "alter_table",
        alter(column("x", "y")),
        with_table,
        HERE,
        "invalid-schema-change",
    ),
    Refusal(
        "column taken",
        "alter_table",
        alter(column("note", "ID")),
        with_table,
        HERE,
        "already-exists",
    ),
    Refusal(
        "If-Match", "alter_table", alter(column("note", "n")), with_table, STALE, "version-mismatch"
    ),
    Refusal(
        "another table",
        "alter_table",
        alter(column("note", "n")),
        with_replaced_table,
        HERE,
        "schema-conflict",
    ),
    Refusal(
        "second operation",
        "alter_table",
        alter(SetOptionsOperation(op="set_options", options={"a": "1"}), column("x", "y")),
        with_table,
        HERE,
        "invalid-schema-change",
    ),
    Refusal("name taken", "create_schema", schema("sales"), with_schema, {}, "already-exists"),
    Refusal("no catalog", "create_schema", schema("s", "other"), with_schema, {}, "not-found"),
    Refusal(
        "not empty",
        "drop_schema",
        DropSchema(catalog="main", name="public", schema_id=1024),
        with_table,
        {},
        "not-empty",
    ),
    Refusal(
        "not there",
        "drop_schema",
        DropSchema(catalog="main", name="x", schema_id=1),
        with_table,
        {},
        "not-found",
    ),
    Refusal(
        "another schema",
        "drop_schema",
        DropSchema(catalog="main", name="sales", schema_id=1),
        with_table,
        {},
        "schema-conflict",
    ),
    Refusal("name taken", "undrop_table", undrop(), with_replaced_table, {}, "already-exists"),
    Refusal("not dropped", "undrop_table", undrop(), with_table, {}, "table-not-found"),
    Refusal(
        "no schema",
        "undrop_table",
        undrop(schema_name="nowhere"),
        with_dropped_table,
        {},
        "not-found",
    ),
    Refusal(
        "epoch",
        "failover_table",
        MOVED.model_copy(update={"expected_epoch": 9}),
        with_dead_node,
        {},
        "epoch-mismatch",
    ),
    Refusal(
        "no node",
        "failover_table",
        MOVED.model_copy(update={"targets": ("dn-9",)}),
        with_dead_node,
        {},
        "node-not-eligible",
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=[f"{one.kind}: {one.about}" for one in REFUSALS])
@pytest.mark.case("greptime 34", "greptime 74", "greptime 86", "greptime 102")
def test_given_what_cannot_be_when_asked_then_its_code_and_nothing_has_changed(
    refusal: Refusal,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, refusal.given, {})
        before = history_of(cluster.kv._store.log_from(1))

        history = await finish(cluster, refusal.kind, refusal.state, refusal.client)

        after = history_of(cluster.kv._store.log_from(1))
        assert history.last.error is not None
        assert history.last.error.code == refusal.code
        assert history.outcome in (ProcedureOutcome.FAILED, ProcedureOutcome.ROLLED_BACK)
        assert after.wrong == []
        assert after.logged == before.logged
        assert after.versions == before.versions

    run(main, 1)


def test_given_a_route_that_a_failover_moved_when_dropped_then_it_is_read_again_and_dropped() -> (
    None
):
    """A drop is never refused because something else moved (P1)."""
    moved: list[int] = []

    async def main(loop: SimLoop) -> None:
        async def remove(state: DropTable, at: Context) -> StepOutcome[DropTable]:
            outcome = await DROP_TABLE.steps["remove"].act(state, at)
            if not moved:
                moved.append(1)
                await move_route(cluster)
            return outcome

        row = Step(remove, to=frozenset({"close"}))
        broken = replace(DROP_TABLE, steps={**DROP_TABLE.steps, "remove": row})
        cluster = await begun(loop, with_table, {"drop_table": broken})

        history = await finish(cluster, "drop_table", drop(), HERE)

        agreement = history_of(cluster.kv._store.log_from(1))
        assert history.outcome is ProcedureOutcome.SUCCEEDED
        assert agreement.wrong == []
        assert not agreement.family("__dn_table")
        gone = agreement.family("__removed-__table_route")[(str(TABLE),)]["route"]
        assert {region["leader"] for region in gone["region_routes"]} == {"dn-3"}

    run(main, 1)


def test_given_a_table_that_has_left_the_node_when_failed_over_then_there_is_nothing_to_do() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_table, {})
        state = FailoverTable(
            table_id=TABLE,
            name="main.public.t",
            source="dn-3",
            region_ids=region_ids(TABLE, 3),
            reason="test",
        )

        history = await finish(cluster, "failover_table", state, {})

        assert (history.outcome, history.result) == (
            ProcedureOutcome.SUCCEEDED,
            {"table_id": TABLE, "regions": []},
        )
        assert history.catalog_version is None

    run(main, 1)


@pytest.mark.case("greptime 70", "greptime 91")
@pytest.mark.case("catalog 33")
def test_given_one_name_twice_when_created_at_once_then_exactly_one_exists() -> None:
    """The same table from two clients at the same time."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_schema, {})
        other = CreateTable(
            info=table_info(1091, "new", 3), route=table_route(1091, ("dn-1", "dn-2", "dn-3"))
        )

        first, second = await asyncio.gather(
            finish(cluster, "create_table", NEW, {}), finish(cluster, "create_table", other, {})
        )

        assert {first.outcome, second.outcome} == {
            ProcedureOutcome.SUCCEEDED,
            ProcedureOutcome.ROLLED_BACK,
        }
        agreement = history_of(cluster.kv._store.log_from(1))
        assert agreement.wrong == []
        assert list(agreement.family("__table_name")) == [("main", "public", "new")]

    run(main, 1)


def test_given_a_taken_name_when_created_if_not_exists_then_the_table_that_is_there() -> None:
    """Judged again under the lock: whoever came second is told of success, and made nothing."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_schema, {})
        second = CreateTable(
            info=table_info(1091, "new", 3),
            route=table_route(1091, ("dn-1", "dn-2", "dn-3")),
            if_not_exists=True,
        )
        other = second.model_copy(
            update={"info": second.info.model_copy(update={"options": {"ttl": "1d"}})}
        )

        first, same, unlike = await asyncio.gather(
            finish(cluster, "create_table", NEW, {}),
            finish(cluster, "create_table", second, {}),
            finish(cluster, "create_table", other, {}),
        )

        assert (same.outcome, same.result) == (ProcedureOutcome.SUCCEEDED, first.result)
        assert same.catalog_version is None
        assert unlike.last.error is not None
        assert unlike.last.error.code == "schema-conflict"
        assert {region for node in cluster.plane.nodes.values() for region in node.serving} == set(
            region_ids(NEW.info.table_id, 3)
        )

    run(main, 1)


def test_given_a_taken_schema_when_created_if_not_exists_then_the_schema_that_is_there() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_schema, {})
        before = cluster.kv.revision
        first = await finish(cluster, "create_schema", schema("hr"), {})
        spent = cluster.kv.revision - before
        again = schema("hr").model_copy(update={"if_not_exists": True})
        options = again.info.model_copy(update={"options": {"a": "1"}})

        same = await finish(cluster, "create_schema", again, {})
        unlike = await finish(
            cluster, "create_schema", again.model_copy(update={"info": options}), {}
        )

        assert (same.outcome, same.result) == (ProcedureOutcome.SUCCEEDED, first.result)
        assert spent == 2, "the submission; the schema's row, its log entry and the history"
        assert same.catalog_version is None
        assert unlike.last.error is not None
        assert unlike.last.error.code == "schema-conflict"

    run(main, 1)
