"""Desired states over HTTP: plans, their steps, what is refused, and what is exported."""

from typing import Any

import pytest

from tests.metasrv.api.held_up import end_of
from tests.metasrv.api.rig import TABLES, leader
from tests.metasrv.service.apply.requests import applied, desired, exported, plan, post

ORDERS: dict[str, Any] = {
    "name": "orders",
    "columns": [
        {"name": "id", "type": "int64", "nullable": False},
        {"name": "price", "type": "decimal(10,2)", "default": "1.50"},
        {"name": "state", "type": "string", "nullable": False, "default": "new"},
    ],
    "primary_key": ["id"],
    "partition": {"by": "hash", "columns": ["id"], "count": 4},
    "options": {"comment": "sales"},
    "indexes": [{"name": "by_state", "columns": ["state"]}],
    "constraints": [{"name": "costs", "check": "price > 0"}],
}


def texts(body: dict[str, Any]) -> list[str]:
    return [f"{each['name']}: {each['text']}" for each in body["operations"]]


async def test_given_a_desired_state_when_applied_then_it_stands_and_nothing_is_left() -> None:
    async with leader() as one:
        state = desired(ORDERS)
        before = one.version
        first = await plan(one, state)
        assert texts(first) == [
            "main.public.orders: create table (3 columns)",
            "main.public.orders: add constraint costs check (price > 0)",
            "main.public.orders: create index by_state (state)",
        ]
        assert one.version == before
        done = await applied(one, state, plan_hash=first["plan_hash"])
        assert [step["operations"] for step in done["steps"]] == [1, 1, 1]
        table = (await one.client.get(f"{TABLES}/orders")).json()
        assert [index["name"] for index in table["indexes"]] == ["by_state"]
        assert [each["name"] for each in table["constraints"]] == ["costs"]
        assert len(table["regions"]) == 4
        version = one.version
        again = await applied(one, state)
        assert (again["steps"], one.version) == ([], version)


async def test_given_what_loses_something_then_it_is_refused_until_it_is_allowed() -> None:
    async with leader() as one:
        await applied(one, desired(ORDERS))
        less = {**ORDERS, "columns": ORDERS["columns"][:1], "indexes": [], "constraints": []}
        version = one.version
        refused = await post(one, desired(less))
        assert (refused.status_code, refused.json()["code"]) == (422, "destructive-plan")
        details = [error["detail"] for error in refused.json()["errors"]]
        assert "table main.public.orders: drop column price: its values are deleted" in details
        assert one.version == version
        await applied(one, desired(less), allow_destructive=True)
        pruned = await post(one, desired(), prune=True)
        assert pruned.json()["code"] == "destructive-plan"
        await applied(one, desired(), prune=True, allow_destructive=True)
        assert (await one.client.get(f"{TABLES}/orders")).status_code == 404


async def test_given_another_catalog_than_the_plan_is_of_then_409_has_the_new_plan() -> None:
    async with leader() as one:
        await applied(one, desired(ORDERS))
        more = {**ORDERS, "columns": [*ORDERS["columns"], {"name": "note", "type": "string"}]}
        first = await plan(one, desired(more))
        alter = {"operations": [{"op": "set_options", "options": {"app.by": "ada"}}]}
        changed = await one.client.post(
            f"{TABLES}/orders/alter", json=alter, headers={"prefer": "wait=10"}
        )
        assert changed.status_code == 200
        refused = await post(one, desired(more), plan_hash=first["plan_hash"])
        problem = refused.json()
        assert (refused.status_code, problem["code"]) == (409, "plan-changed")
        assert problem["facts"]["operations"] == [
            "table main.public.orders: set app.by=null",
            "table main.public.orders: add column note string",
        ]
        await applied(one, desired(more), plan_hash=problem["facts"]["plan_hash"])


async def test_given_what_no_operation_changes_then_each_place_has_its_reason() -> None:
    async with leader() as one:
        await applied(one, desired(ORDERS))
        other = {**ORDERS, "partition": {"by": "hash", "columns": ["id"], "count": 8}}
        refused = await post(one, desired(other, {**ORDERS, "name": "more"}))
        problem = refused.json()
        assert (refused.status_code, problem["code"]) == (422, "not-in-place")
        assert [error["pointer"] for error in problem["errors"]] == [
            "/catalogs/0/schemas/0/tables/0/partition"
        ]
        assert (await one.client.get(f"{TABLES}/more")).status_code == 404


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"columns": [{"name": "id", "type": "int65", "nullable": False}]}, "/columns/0/type"),
        ({"primary_key": ["nothing"]}, "/primary_key/0"),
        ({"indexes": [{"name": "i", "columns": ["nothing"]}]}, "/indexes/0/columns/0"),
        ({"constraints": [{"name": "c", "check": "nothing > 1"}]}, "/constraints/0/check"),
        ({"constraints": [{"name": "c", "check": "price >"}]}, "/constraints/0/check"),
        ({"constraints": [{"name": "c"}]}, "/constraints/0"),
        ({"constraints": [{"name": "c", "not_null": "price"}]}, "/constraints/0/not_null"),
        ({"options": {"speed": "fast"}}, "/options/speed"),
        ({"colour": "red"}, "/colour"),
    ],
)
async def test_given_a_fault_then_its_place_is_named_and_nothing_is_done(
    change: dict[str, Any], pointer: str
) -> None:
    async with leader() as one:
        before = one.version
        refused = await post(one, desired({**ORDERS, **change}))
        assert refused.status_code == 422
        (error, *_) = refused.json()["errors"]
        assert error["pointer"].endswith(pointer), error
        assert one.version == before


SQL = """create table orders (id bigint primary key, price decimal(10, 2)) partition by hash (id)
 partitions 2;
create unique index by_id on orders (id, price);
alter table orders add constraint costs check (price > 0);
comment on table orders is 'sales';
create schema hr; create table hr.staff (id int primary key);
"""


async def test_given_sql_files_when_applied_then_they_are_as_the_statements_say() -> None:
    async with leader() as one:
        files = [{"name": "a.sql", "text": SQL}, {"name": "b.sql", "text": "create schema empty"}]
        await applied(one, {}, sql=files)
        table = (await one.client.get(f"{TABLES}/orders")).json()
        assert [index["unique"] for index in table["indexes"]] == [True]
        assert table["options"] == {"comment": "sales"}
        assert len(table["regions"]) == 2
        assert (await one.client.get("/v1/catalogs/main/schemas/empty")).status_code == 200
        assert (await plan(one, await exported(one), prune=True))["operations"] == []


RENAMED = """create tablespace cold;
create table sales (id bigint primary key, cost decimal(10, 2)) partition by hash (id)
 partitions 2;
create unique index by_id on sales (id, cost);
alter table orders rename to sales;
alter table sales rename price to cost, set (comment = 'sales');
alter tablespace old rename to cold;
create schema hr; create table hr.people (id int primary key);
rename table hr.staff to people;
"""


async def test_given_renames_in_sql_when_applied_then_rows_stay_and_again_nothing_changes() -> None:
    """The file keeps them: once they are done they mean nothing."""
    async with leader() as one:
        old = f"create tablespace old; {SQL.replace('alter table', '-- alter table')}"
        await applied(one, {}, sql=[{"name": "a.sql", "text": old}])
        before = (await one.client.get(f"{TABLES}/orders")).json()
        files = [{"name": "a.sql", "text": RENAMED}]

        planned = await plan(one, {}, sql=files)
        await applied(one, {}, sql=files)

        table = (await one.client.get(f"{TABLES}/sales")).json()
        assert table["id"] == before["id"]
        ids = [(column["id"], column["name"]) for column in table["columns"]]
        assert ids == [(before["columns"][0]["id"], "id"), (before["columns"][1]["id"], "cost")]
        assert not any(each.get("destructive") for each in planned["operations"])
        assert (await one.client.get(f"{TABLES}/orders")).status_code == 404
        shown = await one.client.get("/v1/catalogs/main/schemas/hr/tables/people")
        assert shown.status_code == 200
        assert (await plan(one, {}, sql=files))["operations"] == []


async def test_given_a_rename_whose_names_are_both_there_then_its_place_is_told() -> None:
    """The fault is found by the difference, in the words of the document."""
    async with leader() as one:
        both = "create table a (id int primary key); create table b (id int primary key)"
        await applied(one, {}, sql=[{"name": "a.sql", "text": both}])
        text = "create table b (id int primary key);\nalter table a rename to b"

        refused = (await post(one, {}, sql=[{"name": "x.sql", "text": text}])).json()

        assert (refused["code"], refused["facts"]["line"]) == ("not-in-place", 2)
        assert "a and b are both there" in refused["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("alter table t rename to u", "invalid-sql", 1, 25),
        ("create table u (id int primary key); alter table t rename\nto s.u", "invalid-sql", 2, 5),
        ("create table u (id int primary key); rename table t to s.u", "invalid-sql", 1, 38),
        ("create table u (id int primary key);\nexchange tables t and u", "invalid-sql", 2, 1),
        (
            "create table u (id int primary key);\nalter table t rename to u;\n"
            "alter table v rename to u",
            "invalid-sql",
            3,
            25,
        ),
        ("create table u (id int primary key);\nalter table u rename to u", "invalid-sql", 2, 25),
        ("create table u (id int primary key);\nalter table u rename a to b", "invalid-sql", 2, 27),
        ("alter placement p rename to q", "invalid-sql", 1, 29),
        ("create schema s;\ndrop table t", "invalid-sql", 2, 1),
        ("create index i on nothing (a)", "invalid-sql", 1, 14),
        ("creat table t (id int)", "invalid-sql", 1, 1),
        ("create table t (id int primary key);\nalter table t drop column id", "invalid-sql", 2, 1),
        ("create table t (\n id int primary key, a int99)", "invalid-sql", 2, 24),
        ("create table t (id int primary key); create index i\n on t (b)", "invalid-request", 2, 8),
        ("create table t (id int primary key);\ncreate table t (id int primary key)", None, 2, 14),
    ],
)
async def test_given_sql_that_cannot_be_then_the_file_and_the_place_are_named(
    text: str, code: str | None, line: int, column: int
) -> None:
    async with leader() as one:
        refused = await post(one, {}, sql=[{"name": "x.sql", "text": text}])
        problem = refused.json()
        assert refused.status_code == 422
        assert code in (None, problem["code"])
        facts = problem["facts"]
        assert (facts["file"], facts["line"], facts["column"]) == ("x.sql", line, column), problem


async def test_given_a_client_that_does_not_wait_then_it_goes_on_with_the_digest_it_is_told() -> (
    None
):
    async with leader() as one:
        state = desired(ORDERS)
        sent: list[str | None] = [None]
        steps = 0
        while True:
            answer = await post(one, state, plan_hash=sent[-1], wait=0)
            body = answer.json()
            steps += len(body["steps"])
            if answer.status_code == 200:
                break
            assert answer.status_code == 202, body
            assert body["is_own"]
            assert body["plan_hash"] not in sent
            sent.append(body["plan_hash"])
            ended = await end_of(one, f"/v1/procedures/{body['procedure']['id']}")
            assert ended["state"] == "succeeded"
            steps += 1
        assert steps == 3
        assert (await plan(one, state))["operations"] == []


async def test_given_a_name_that_changes_then_a_declared_rename_keeps_the_table() -> None:
    async with leader() as one:
        await applied(one, desired(ORDERS))
        before = (await one.client.get(f"{TABLES}/orders")).json()
        renamed = {**ORDERS, "name": "sales", "renamed_from": "orders"}
        renamed["columns"] = [
            ORDERS["columns"][0],
            {**ORDERS["columns"][1], "name": "cost", "renamed_from": "price"},
            ORDERS["columns"][2],
        ]
        renamed["constraints"] = [{"name": "costs", "check": "cost > 0"}]
        done = await applied(one, desired(renamed), prune=True)
        assert texts(done) == [
            "main.public.sales: rename from orders",
            "main.public.sales: rename column price to cost",
        ]
        after = (await one.client.get(f"{TABLES}/sales")).json()
        assert after["id"] == before["id"]
        assert after["columns"][1]["id"] == before["columns"][1]["id"]


async def test_given_catalogs_placements_and_tablespaces_then_they_are_made_and_altered() -> None:
    async with leader() as one:
        table = {**ORDERS, "placement": "hot", "tablespace": "fast", "indexes": []}
        state: dict[str, Any] = {
            "placements": [{"name": "hot", "comment": "ssd"}],
            "catalogs": [
                {
                    "name": "acme",
                    "limits": {"tables": 10},
                    "tablespaces": [{"name": "fast"}, {"name": "default", "comment": "rest"}],
                    "schemas": [{"name": "public", "tables": [table]}, {"name": "shop"}],
                }
            ],
        }
        await applied(one, state)
        state["catalogs"][0]["limits"] = {"tables": 20}
        state["placements"][0] |= {"name": "warm", "renamed_from": "hot", "comment": None}
        table["placement"] = "warm"
        done = await applied(one, state)
        assert texts(done) == [
            "warm: rename from hot",
            "warm: set comment",
            "acme: set tables=20",
        ]
        back = await exported(one, catalog="acme")
        assert [each["name"] for each in back["placements"]] == ["warm"]
        assert (await plan(one, back, prune=True))["operations"] == []
