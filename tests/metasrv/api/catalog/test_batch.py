"""Batches over HTTP: one version, all or nothing, and what is said of each command."""

from typing import Any

import pytest

from keys.catalog.follower import Follower
from keys.model.records import ProcedureHistory, ProcedureHistoryKey
from keys.value import decode
from metasrv.check.check_backup import STORE_RULES
from metasrv.check.check_input import read_facts
from metasrv.check.rule import violations_of
from metasrv.leadership.log.unnamed_parts import UnnamedParts
from procedures.commands import in_order
from procedures.ports import TransactionLimits
from tests.keys.catalog.snapshots import plain
from tests.metasrv.api.batch_requests import (
    IN_PUBLIC,
    WAIT,
    batch,
    comment,
    create,
    drop,
    names,
    rename,
)
from tests.metasrv.api.rig import DEADLINE_MS, TABLES, TermLimits, leader

SMALL = TermLimits(one_transaction=TransactionLimits(operations=3))
TINY = TermLimits(one_transaction=TransactionLimits(operations=3, record_bytes=1))


@pytest.mark.case("catalog 13", "catalog 16")
async def test_given_commands_that_build_on_each_other_then_one_version_has_them_all() -> None:
    async with leader() as one:
        old = await one.make("t")
        before = one.version

        done = await batch(
            one,
            {"create_catalog": {"name": "acme"}},
            {"create_schema": {"catalog": "main", "schema": {"name": "hr"}}},
            create("staff", "hr"),
            drop("t"),
            create("t"),
            rename("t", "s", new_schema="hr"),
            create("t"),
            comment("t", "the third"),
        )
        await one.client.get("/v1/cluster")

        assert (done.status_code, done.json()) == (
            200,
            {"applied": [True] * 8, "catalog_version": before + 1},
        )
        assert int(done.headers["catalog-version"]) == before + 1
        now = await names(one)
        assert list(now) == ["t"]
        assert now["t"] != old["id"]
        body = (await one.client.get(f"{TABLES}/t")).json()
        assert body["options"] == {"comment": "the third"}
        hr = await one.client.get("/v1/catalogs/main/schemas/hr/tables")
        assert [table["name"] for table in hr.json()["tables"]] == ["s", "staff"]


async def test_given_placements_and_tablespaces_then_each_command_sees_those_before_it() -> None:
    async with leader() as one:
        before = one.version

        done = await batch(
            one,
            {"create_placement": {"name": "fast"}},
            {"rename_placement": {"placement": "fast", "new_name": "slow"}},
            {"create_placement": {"name": "fast", "partitions": 2}},
            {"alter_placement": {"placement": "slow", "comment": "old"}},
            {"create_catalog": {"name": "acme"}},
            {"create_tablespace": {"catalog": "acme", "tablespace": {"name": "orders"}}},
            {"alter_tablespace": {"catalog": "acme", "tablespace": "orders", "comment": "c"}},
            {"drop_tablespace": {"catalog": "main", "tablespace": "x", "if_exists": True}},
        )

        assert (done.status_code, done.json()["catalog_version"]) == (200, before + 1), done.text
        assert done.json()["applied"] == [True] * 7 + [False]
        placements = (await one.client.get("/v1/placements")).json()["placements"]
        said = {each["name"]: (each["partitions"], each["comment"]) for each in placements}
        assert said == {"default": (1, None), "fast": (2, None), "slow": (1, "old")}
        assert len({each["id"] for each in placements}) == 3
        spaces = (await one.client.get("/v1/catalogs/acme/tablespaces")).json()["tablespaces"]
        assert [(each["name"], each["comment"]) for each in spaces] == [
            ("default", None),
            ("orders", "c"),
        ]


async def test_given_a_fault_of_a_tablespace_or_a_default_then_refused_with_its_place() -> None:
    async with leader() as one:
        space = {"create_tablespace": {"catalog": "main", "tablespace": {"name": "1"}}}
        faulty = await batch(one, {"create_placement": {"name": "p", "replicas": 16}}, space)
        default = await batch(one, {"drop_placement": {"placement": "default"}})

        assert [error["pointer"] for error in faulty.json()["errors"]] == [
            "/commands/0/create_placement/replicas",
            "/commands/1/create_tablespace/tablespace/name",
        ]
        assert (default.status_code, default.json()["code"]) == (409, "object-in-use")
        assert default.json()["facts"]["command"] == 0


@pytest.mark.case("catalog 12", "catalog 43")
async def test_given_one_command_that_cannot_be_then_nothing_of_the_batch_is() -> None:
    async with leader() as one:
        before = one.version

        done = await batch(one, create("a"), drop("nosuch"), create("b"))

        assert (done.status_code, done.json()["code"]) == (404, "table-not-found")
        assert done.json()["facts"]["command"] == 1
        assert (one.version, await names(one)) == (before, {})


@pytest.mark.case("catalog 14")
async def test_given_commands_with_nothing_to_do_between_others_then_each_says_so() -> None:
    async with leader() as one:
        await one.make("t")
        before = one.version

        done = await batch(
            one,
            drop("x", if_exists=True),
            create("u"),
            create("t", if_not_exists=True),
            rename("u", "v"),
            rename("y", "z", if_exists=True),
        )

        assert done.json()["applied"] == [False, True, False, True, False]
        assert done.json()["catalog_version"] == before + 1


@pytest.mark.case("catalog 15")
async def test_given_only_commands_with_nothing_to_do_then_no_version_is_made() -> None:
    async with leader() as one:
        before = one.version

        done = await batch(one, drop("x", if_exists=True), drop("y", if_exists=True))

        assert done.json() == {"applied": [False, False], "catalog_version": None}
        assert one.version == before


async def test_given_changes_that_go_through_states_then_each_is_named_with_its_route() -> None:
    async with leader() as one:
        await one.make("t")
        column = {"name": "c", "type": "int64"}
        operations = [
            {"op": "set_options", "options": {"comment": "x"}},
            {"op": "add_column", "column": column},
        ]

        done = await batch(
            one,
            create("u"),
            {"alter_table": {**IN_PUBLIC, "table": "t", "operations": operations}},
            {"create_index": {**IN_PUBLIC, "table": "t", "index": {}}},
        )

        assert (done.status_code, done.json()["code"]) == (422, "not-in-batch")
        told = {error["pointer"]: error["detail"] for error in done.json()["errors"]}
        assert list(told) == ["/commands/1/alter_table/operations/1", "/commands/2/create_index"]
        assert f"POST {TABLES}/t/alter" in told["/commands/1/alter_table/operations/1"]
        assert "POST /v1/catalogs/" in told["/commands/2/create_index"]


async def test_given_specs_with_faults_then_each_is_told_with_its_place_in_the_batch() -> None:
    async with leader() as one:
        done = await batch(
            one,
            create("ok"),
            create("__no"),
            create("t", primary_key=["nosuch"]),
            {"create_schema": {"catalog": "main", "schema": {"name": "1"}}},
            {"drop_schema": {"catalog": "main", "schema": "a b"}},
        )

        assert done.status_code == 422
        assert [error["pointer"] for error in done.json()["errors"]] == [
            "/commands/1/create_table/table/name",
            "/commands/2/create_table/table/primary_key/0",
            "/commands/3/create_schema/schema/name",
            "/commands/4/drop_schema",
        ]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"commands": []},
        {"commands": [{}]},
        {"commands": [3]},
        {"commands": [{"create_tabel": {}}]},
        {"commands": [{"drop_table": {}, "drop_schema": {}}]},
        {"commands": [drop("t")], "more": 1},
        {"commands": [drop("t", cascade=True)]},
        {"commands": [drop("t")] * 10_001},
    ],
)
async def test_given_a_body_that_means_nothing_then_422_and_nothing_is_done(body: Any) -> None:
    async with leader() as one:
        done = await one.client.post("/v1/batch", json=body, headers=WAIT)

        assert (done.status_code, done.json()["code"]) == (422, "invalid-request")


async def test_given_a_schema_with_tables_when_dropped_then_all_of_it_in_one_version() -> None:
    async with leader() as one:
        await one.make("t")
        await one.make("u")
        before = one.version
        schema = {"catalog": "main", "schema": "public"}

        kept = await batch(one, create("v"), {"drop_schema": schema})
        gone = await batch(one, create("v"), {"drop_schema": {**schema, "cascade": True}})

        assert (kept.status_code, kept.json()["code"]) == (409, "not-empty")
        assert gone.json() == {"applied": [True, True], "catalog_version": before + 1}
        assert (await one.client.get("/v1/catalogs/main/schemas/public")).status_code == 404


async def test_given_a_catalog_with_schemas_when_dropped_and_made_again_then_it_is_empty() -> None:
    async with leader() as one:
        await one.make("t")

        done = await batch(
            one,
            {"drop_catalog": {"catalog": "main", "cascade": True}},
            {"create_catalog": {"name": "main"}},
        )

        assert done.json()["applied"] == [True, True]
        listed = (await one.client.get("/v1/catalogs/main/schemas")).json()["schemas"]
        tables = (await one.client.get(TABLES)).json()["tables"]
        assert ([schema["name"] for schema in listed], tables) == (["public"], [])


async def test_given_the_key_of_a_batch_then_the_same_answer_and_another_batch_is_refused() -> None:
    async with leader() as one:
        keyed = {**WAIT, "idempotency-key": "k"}

        first = await batch(one, create("t"), headers=keyed)
        again = await batch(one, create("t"), headers=keyed)
        other = await batch(one, create("u"), headers=keyed)

        assert first.json() == again.json()
        assert again.headers["idempotency-replayed"] == "true"
        assert other.json()["code"] == "idempotency-key-reused"


async def test_given_a_dry_run_then_the_plan_of_one_version_and_nothing_is_done() -> None:
    async with leader() as one:
        await one.make("t")
        before = one.version

        planned = await batch(one, create("u"), drop("t"), query="?dry_run=true")

        plan = planned.json()
        assert (plan["kind"], plan["last_cancellable_step"]) == ("batch", "make")
        assert plan["steps"][0]["log"] == ["table.created", "table.altered"]
        assert [child["kind"] for child in plan["children"]] == ["drop_table"]
        assert (one.version, list(await names(one))) == (before, ["t"])


async def test_given_no_time_to_wait_then_202_and_the_procedure_tells_the_end() -> None:
    async with leader() as one:
        begun = await batch(one, create("t"), headers={"prefer": "wait=0"})
        where = begun.headers["location"]
        ended = (await one.client.get(where, headers=WAIT)).json()

        assert begun.status_code == 202
        assert (ended["state"], ended["result"]) == ("succeeded", {"applied": [True]})


async def test_given_more_than_one_transaction_takes_then_one_version_has_it_all_the_same() -> None:
    async with leader(of_term=SMALL) as one:
        await one.make("t")
        before = one.version

        done = await batch(one, *(create(f"t{number}") for number in range(9)), drop("t"))

        assert (done.status_code, done.json()["catalog_version"]) == (200, before + 1)
        assert set(await names(one)) == {f"t{number}" for number in range(9)}
        large = [item for item in one.kv.dump() if item.key.startswith(b"__catalog/large/")]
        assert len(large) == 1
        again = Follower(one.kv, one.clock, deadline_ms=DEADLINE_MS)
        await again.log.load()
        assert plain(again.catalog) == plain(one.state.follower.catalog)
        facts = read_facts(one.kv.dump(), one.kv.revision)
        rules = [rule for rule in STORE_RULES if not rule.id.startswith(("leader", "candidate"))]
        assert [fault.line for fault in violations_of(rules, facts)] == []
        changed = (await one.client.get(f"/v1/catalog/versions/{before + 1}")).json()
        assert len(changed["operations"]) == 10
        planned = await batch(one, *(create(f"u{n}") for n in range(9)), query="?dry_run=true")
        assert planned.status_code == 200, planned.text


async def test_given_more_commands_than_a_record_holds_then_they_are_in_parts_until_the_end() -> (
    None
):
    key = {**WAIT, "idempotency-key": "the-same"}
    commands = [create("u"), drop("t"), rename("s", "v")]
    async with leader(of_term=TINY) as one:
        await one.make("t")
        await one.make("s")
        before = one.version

        done = await batch(one, *commands, headers=key)
        again = await batch(one, *commands, headers=key)
        other = await batch(one, create("w"), headers=key)

        assert (done.status_code, done.json()["catalog_version"]) == (200, before + 1)
        assert (again.status_code, again.json()["applied"]) == (200, done.json()["applied"])
        assert (other.status_code, other.json()["code"]) == (422, "idempotency-key-reused")
        assert set(await names(one)) == {"u", "v"}
        histories = [
            decode(ProcedureHistory, item.value, key="k").last
            for item in one.kv.dump()
            if item.key.startswith(ProcedureHistoryKey.under().start)
        ]
        (statement,) = (last.client.statement for last in histories if last.kind == "batch")
        assert set(statement["body"]) == {"bytes", "sha256"}
        held = {item.key.split(b"/")[1] for item in one.kv.dump() if item.key[:8] == b"__batch/"}
        assert len(held) > 1, "commands and entries"

        await UnnamedParts(one.term).tidy(0)

        kept = {item.key.split(b"/")[1] for item in one.kv.dump() if item.key[:8] == b"__batch/"}
        assert len(kept) == 1, "the log names the entries"


async def test_given_more_objects_than_one_version_changes_then_422_with_the_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_order, "OBJECTS_MAX", 3)
    async with leader() as one:
        done = await batch(one, *(create(f"t{number}") for number in range(4)))

        assert (done.status_code, done.json()["code"]) == (422, "ddl-too-large")
        assert done.json()["facts"]["limit"] == 3
        assert one.nodes.asked == []


async def test_given_a_batch_then_the_history_has_one_request_with_a_line_for_each_command() -> (
    None
):
    async with leader() as one:
        await one.make("t")
        await batch(one, create("u"), rename("t", "s"), comment("u", "x"))

        listed = (await one.client.get("/v1/catalog/versions")).json()
        newest = listed["changes"][0]
        assert newest["versions"] == 1
        assert [each["text"] for each in newest["operations"]] == [
            "create table main.public.u",
            "rename table main.public.t to main.public.s",
        ]
        assert '"path":"/v1/batch"' in newest["statement"]["text"].replace(" ", "")
