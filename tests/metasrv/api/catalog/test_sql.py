"""SQL over HTTP: statements in order, batches, refusals with their places, and what reads show."""

from typing import Any

import httpx
import pytest

from tests.metasrv.api.held_up import end_of
from tests.metasrv.api.rig import TABLES, Server, leader

MAKE = "create table orders (id bigint primary key, price decimal(10, 2) default 1.50)"


async def sql(one: Server, text: str, **more: Any) -> httpx.Response:
    headers = more.pop("headers", None)
    return await one.client.post("/v1/sql", json={"text": text, **more}, headers=headers)


async def results(one: Server, text: str, **more: Any) -> list[dict[str, Any]]:
    answer = await sql(one, text, **more)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


async def test_given_statements_when_sent_then_each_is_done_in_order() -> None:
    async with leader() as one:
        done = await results(
            one,
            f"{MAKE};\nalter table orders add note text, alter price set default 2.25;\n"
            "create index by_price on orders (price); show tables; describe orders;",
        )
        assert [result["applied"] for result in done] == [True, True, True, None, None]
        versions = [result["catalog_version"] for result in done]
        assert versions == sorted(versions)
        assert [row[0] for row in done[3]["rows"]] == ["orders"]
        assert done[4]["rows"] == [
            ["id", "BIGINT", False, None, 1],
            ["price", "DECIMAL(10, 2)", True, "2.25", None],
            ["note", "TEXT", True, None, None],
        ]
        table = (await one.client.get(f"{TABLES}/orders")).json()
        assert [column["name"] for column in table["columns"]] == ["id", "price", "note"]
        assert [index["name"] for index in table["indexes"]] == ["by_price"]


async def test_given_a_table_made_by_sql_and_one_by_json_then_they_are_equal() -> None:
    async with leader() as one:
        (made,) = await results(one, MAKE)
        spec = {
            "name": "orders",
            "if_not_exists": True,
            "columns": [
                {"name": "id", "type": "int64", "nullable": False},
                {"name": "price", "type": "decimal(10,2)", "default": "1.50"},
            ],
            "primary_key": ["id"],
        }
        again = await one.client.post(TABLES, json=spec, headers={"prefer": "wait=10"})
        assert again.status_code == 200
        assert again.json()["catalog_version"] == made["catalog_version"]


async def test_given_begin_and_commit_then_all_of_it_is_one_version() -> None:
    async with leader() as one:
        before = one.version
        done = await results(
            one,
            f"begin; create schema hr; {MAKE}; create table hr.staff (id int primary key); "
            "rename table orders to hr.orders; commit; show tables from hr",
        )
        assert len(done) == 2
        assert done[0]["applied"] is True
        assert done[0]["catalog_version"] == one.version == before + 1
        assert [row[0] for row in done[1]["rows"]] == ["orders", "staff"]


async def test_given_a_batch_with_a_change_that_cannot_be_then_nothing_of_it_is_done() -> None:
    async with leader() as one:
        before = one.version
        answer = await sql(one, f"begin;\n{MAKE};\ndrop table nothing;\ncommit")
        problem = answer.json()
        assert answer.status_code == 404, problem
        assert problem["code"] == "table-not-found"
        facts = problem["facts"]
        assert (facts["statement"], facts["line"], facts["column"]) == (3, 3, 12)
        assert one.version == before


async def test_given_a_batch_with_a_change_through_states_then_it_is_named_with_its_place() -> None:
    async with leader() as one:
        await results(one, MAKE)
        answer = await sql(
            one, "begin;\ndrop table orders;\ncreate index i on orders (price); commit"
        )
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (422, "not-in-batch")
        assert (problem["facts"]["line"], problem["facts"]["column"]) == (3, 1)
        assert "indexes" in problem["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("commit", 1, 1),
        ("begin; drop table t", 1, 1),
        ("begin; commit", 1, 8),
        ("begin; begin; drop table t; commit; commit", 1, 8),
        ("begin; show tables; commit", 1, 8),
        ("drop table t; drop tabel u", 1, 20),
    ],
)
async def test_given_a_text_that_cannot_be_read_then_nothing_of_it_is_done(
    text: str, line: int, column: int
) -> None:
    async with leader() as one:
        before = one.version
        answer = await sql(one, f"{MAKE}; {text}")
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (422, "invalid-sql"), problem
        shift = len(MAKE) + 2
        assert (problem["facts"]["line"], problem["facts"]["column"]) == (line, column + shift)
        assert one.version == before


async def test_given_a_fault_that_only_the_catalog_knows_then_it_has_its_place_in_the_text() -> (
    None
):
    async with leader() as one:
        text = (
            f"{MAKE};\n"
            "create table b (\n  id int primary key,\n  day date default '2020-02-30');\n"
            "create table c (id int primary key)"
        )
        problem = (await sql(one, text)).json()
        assert problem["code"] == "invalid-request"
        facts = problem["facts"]
        assert (facts["statement"], facts["line"], facts["column"]) == (2, 4, 20)
        assert facts["excerpt"].split("\n")[0] == "  day date default '2020-02-30');"
        listed = (await one.client.get(TABLES)).json()["tables"]
        assert [table["name"] for table in listed] == ["orders"]


async def test_given_a_name_that_is_nearly_right_then_the_refusal_says_which() -> None:
    async with leader() as one:
        await results(one, MAKE)
        problem = (await sql(one, "drop table order")).json()
        assert (problem["code"], problem["did_you_mean"]) == ("table-not-found", "orders")
        assert problem["facts"]["column"] == 12


async def test_given_an_object_in_use_then_its_name_is_pointed_at() -> None:
    async with leader() as one:
        await results(one, "create tablespace s; create table t (id int primary key) tablespace s")
        problem = (await sql(one, "drop tablespace s")).json()
        assert (problem["code"], problem["facts"]["column"]) == ("object-in-use", 17)


async def test_given_if_exists_and_if_not_exists_then_a_miss_changes_nothing() -> None:
    async with leader() as one:
        text = "create table if not exists t (id int primary key)"
        done = await results(one, f"{text}; {text}; drop table if exists u")
        assert [result["applied"] for result in done] == [True, False, False]


async def test_given_explain_then_the_plan_is_answered_and_nothing_done() -> None:
    async with leader() as one:
        await results(one, MAKE)
        before = one.version
        (planned,) = await results(one, "explain drop table orders")
        assert planned["plan"]["kind"] == "drop_table"
        assert one.version == before


async def test_given_a_key_when_a_text_is_sent_again_then_nothing_is_done_twice() -> None:
    async with leader() as one:
        key = {"idempotency-key": "k"}
        text = f"{MAKE}; drop table orders; {MAKE}"
        first = await results(one, text, headers=key)
        again = await results(one, text, headers=key)
        assert again == first
        other = await sql(one, f"{MAKE}; truncate orders", headers=key)
        assert other.json()["code"] == "idempotency-key-reused"


async def test_given_no_time_to_wait_then_the_rest_of_the_text_is_not_begun() -> None:
    async with leader() as one:
        one.nodes.gate.clear()
        text = f"{MAKE}; drop table orders"
        answer = await sql(one, text, headers={"prefer": "wait=0"})
        body = answer.json()
        one.nodes.gate.set()
        made = await end_of(one, f"/v1/procedures/{body['results'][0]['procedure_id']}")

        assert (answer.status_code, body["rest"]) == (202, text.index("drop"))
        assert [result["procedure"]["done"] for result in body["results"]] == [False]
        assert made["state"] == "succeeded"
        listed = (await one.client.get(TABLES)).json()["tables"]
        assert [table["name"] for table in listed] == ["orders"]


async def test_given_a_change_by_sql_then_its_procedure_keeps_the_statement() -> None:
    async with leader() as one:
        (made,) = await results(one, f"-- a comment\n{MAKE};", schema="public")
        procedure = (await one.client.get(f"/v1/procedures/{made['procedure_id']}")).json()
        assert procedure["statement"]["body"] == {
            "text": MAKE,
            "catalog": "main",
            "schema": "public",
        }


async def test_given_a_table_when_its_ddl_is_read_then_it_makes_an_equal_table() -> None:
    async with leader() as one:
        await results(
            one,
            f"{MAKE}; alter table orders add constraint dear check (price > 1 and id <> 3); "
            "create unique index once on orders (id, price); alter table orders set (comment='x')",
        )
        ddl = (await one.client.get(f"{TABLES}/orders/ddl")).json()["statements"]
        (shown,) = await results(one, "show create table orders")
        assert shown["rows"] == [["main.public.orders", ";\n".join(ddl)]]
        assert len(ddl) == 3
        first = (await one.client.get(f"{TABLES}/orders")).json()
        await results(one, f"drop table orders; {';'.join(ddl)}")
        second = (await one.client.get(f"{TABLES}/orders")).json()
        for field in ("columns", "indexes", "constraints", "primary_key", "partition", "options"):
            assert second[field] == first[field], field


async def test_given_a_statement_that_fails_then_the_results_of_those_before_it_are_told() -> None:
    async with leader() as one:
        problem = (await sql(one, f"{MAKE}; show tables; drop table u; show tables")).json()

        made, shown = problem["results"]
        assert (problem["code"], problem["facts"]["statement"]) == ("table-not-found", 3)
        assert (made["applied"], made["catalog_version"]) == (True, one.version)
        assert [row[0] for row in shown["rows"]] == ["orders"]
        assert "results" not in (await sql(one, "drop table u; show tables")).json()
