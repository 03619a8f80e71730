"""Cases 70-106: what a change of metadata leaves in keys, on nodes, and for who asked."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from keys.commit.txn import snapshot
from keys.model.records import ProcedureOutcome
from keys.model.tables import TableInfo, TableInfoKey, TableNameKey, TableRouteKey
from keys.store.kv import Compare
from keys.value import StoredModel
from metasrv_base.errors import Refused
from procedures.kinds.alter.alter_operations import RenameColumnOperation, SetOptionsOperation
from procedures.kinds.tables.create_table import CreateTable
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import (
    NEW,
    with_schema,
    with_table,
    with_two_tables,
)
from tests.procedures.harness.tables import NODES, table_info, table_route
from tests.procedures.kinds.runs import HERE, alter, begun, drop, finish, rename, undrop
from tests.sim.loop import SimLoop, run

Given = Callable[[Cluster, Compare], Awaitable[None]]


def ddl(given: Given, scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    """Runs *scenario*; the keys must agree at every revision that it made."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, given, {})
        await scenario(cluster)
        assert history_of(cluster.kv._store.log_from(1)).wrong == []

    run(main, 1)


async def value(cluster: Cluster, key: Any) -> StoredModel | None:
    seen = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    found: StoredModel | None = seen.get(key)
    return found


def effects(cluster: Cluster) -> list[str]:
    return [effect for node in cluster.plane.nodes.values() for effect in node.effects]


@pytest.mark.case("greptime 29")
def test_given_a_change_of_one_step_when_done_then_it_cost_two_revisions() -> None:
    async def scenario(cluster: Cluster) -> None:
        before = cluster.kv.revision
        await finish(cluster, "alter_table", alter(SetOptionsOperation(options={"a": "1"})), HERE)

        assert cluster.kv.revision == before + 2  # the submission; the change with its history

    ddl(with_table, scenario)


@pytest.mark.case("greptime 73", "greptime 95")
def test_given_a_rename_when_done_then_the_old_name_is_free_and_the_new_one_has_the_id() -> None:
    async def scenario(cluster: Cluster) -> None:
        done = await finish(cluster, "rename_table", rename(), HERE)
        again = await finish(cluster, "rename_table", rename(), HERE)
        back = await finish(cluster, "rename_table", rename(name="s", new_name="u"), HERE)

        assert done.outcome is ProcedureOutcome.SUCCEEDED
        assert await value(cluster, TableNameKey("main", "public", "t")) is None
        found: Any = await value(cluster, TableNameKey("main", "public", "s"))
        info: Any = await value(cluster, TableInfoKey(TABLE))
        assert (found.table_id, info.name) == (TABLE, "s")
        assert [one.last.error and one.last.error.code for one in (again, back)] == [
            "table-not-found",
            "already-exists",
        ]

    ddl(with_two_tables, scenario)


@pytest.mark.case("greptime 78", "greptime 82")
def test_given_a_table_when_dropped_and_back_then_it_is_as_before_at_higher_epochs() -> None:
    async def scenario(cluster: Cluster) -> None:
        info: Any = await value(cluster, TableInfoKey(TABLE))
        route: Any = await value(cluster, TableRouteKey(TABLE))
        await finish(cluster, "drop_table", drop(), HERE)
        gone = await value(cluster, TableInfoKey(TABLE))
        await finish(cluster, "undrop_table", undrop(), {})
        again = await finish(cluster, "undrop_table", undrop(), {})

        assert gone is None
        back: Any = await value(cluster, TableInfoKey(TABLE))
        assert back == info.model_copy(update={"version": back.version})
        back_route: Any = await value(cluster, TableRouteKey(TABLE))
        assert [
            (region.region_id, region.leader, region.root, region.epoch)
            for region in back_route.region_routes
        ] == [
            (region.region_id, region.leader, region.root, region.epoch + 1)
            for region in route.region_routes
        ]
        assert again.last.error is not None
        assert again.last.error.code == "table-not-found"

    ddl(with_table, scenario)


@pytest.mark.case("greptime 79", "greptime 103")
def test_given_a_dropped_table_when_its_name_is_used_again_then_both_are_kept_apart() -> None:
    async def scenario(cluster: Cluster) -> None:
        second = CreateTable(info=table_info(1090, "t", 3), route=table_route(1090, NODES))
        ids = [str(TABLE), "1090"]
        await finish(cluster, "drop_table", drop(), HERE)
        made = await finish(cluster, "create_table", second, {})
        await finish(cluster, "drop_table", drop(table_id=1090), {"table_id": 1090})
        both = history_of(cluster.kv._store.log_from(1))
        await finish(cluster, "undrop_table", undrop(new_name="first"), {})

        assert made.outcome is ProcedureOutcome.SUCCEEDED
        assert sorted(where[3] for where in both.family("__removed-__table_name")) == ids
        for family in ("__table_info", "__table_route"):
            assert sorted(where[0] for where in both.family(f"__removed-{family}")) == ids
            assert not both.family(family)
        assert not both.family("__table_name")
        assert not both.family("__dn_table")
        found: Any = await value(cluster, TableNameKey("main", "public", "first"))
        assert found.table_id == TABLE

    ddl(with_table, scenario)


@pytest.mark.case("greptime 89", "greptime 97")
def test_given_a_node_that_is_silent_for_a_while_then_the_create_is_tried_again_and_done() -> None:
    async def scenario(cluster: Cluster) -> None:
        silent = cluster.plane.nodes["dn-3"]
        silent.silent = True
        attempt = cluster.ask(cluster.leader, lambda _: finish(cluster, "create_table", NEW, {}))
        await cluster.clock.sleep_ms(2_000)
        partly = [node.node_id for node in cluster.plane.nodes.values() if node.serving]
        seen = await value(cluster, TableInfoKey(1090))
        silent.silent = False
        history = await attempt

        assert partly == ["dn-1", "dn-2"]
        assert seen is None  # nobody sees a table of which a part is made
        assert history.outcome is ProcedureOutcome.SUCCEEDED
        created = [effect for effect in effects(cluster) if effect.startswith("create")]
        assert len(created) == len(set(created)) == 3

    ddl(with_schema, scenario)


@pytest.mark.case("greptime 97")
def test_given_one_node_that_refuses_for_ever_then_the_others_are_cleaned_up() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.plane.nodes["dn-3"].refuses["create"] = Refused(reason="test")

        history = await finish(cluster, "create_table", NEW, {})

        assert history.outcome is ProcedureOutcome.ROLLED_BACK
        assert [node.serving for node in cluster.plane.nodes.values()] == [{}, {}, {}]
        assert cluster.plane.storage.folders == {}

    ddl(with_schema, scenario)


@pytest.mark.case("greptime 92")
def test_given_a_create_when_done_then_its_result_is_the_id() -> None:
    async def scenario(cluster: Cluster) -> None:
        history = await finish(cluster, "create_table", NEW, {})

        assert history.result == {"table_id": 1090, "name": "main.public.new"}

    ddl(with_schema, scenario)


@pytest.mark.case("greptime 98", "greptime 100")
def test_given_an_alter_of_words_when_done_then_one_version_later_and_no_node_was_asked() -> None:
    async def scenario(cluster: Cluster) -> None:
        before = effects(cluster)
        change = alter(
            SetOptionsOperation(options={"ttl": "1d", "a": "b"}),
            RenameColumnOperation(name="note", new_name="text"),
            SetOptionsOperation(options={"a": None}),
        )
        await finish(cluster, "alter_table", change, HERE)

        info = await value(cluster, TableInfoKey(TABLE))
        assert isinstance(info, TableInfo)
        assert (info.version, info.options) == (2, {"ttl": "1d"})
        assert [column.name for column in info.columns] == ["id", "text"]
        assert [column.id for column in info.columns] == [1, 2]
        assert effects(cluster) == before
        assert all(node.executed == {} for node in cluster.plane.nodes.values())

    ddl(with_table, scenario)
