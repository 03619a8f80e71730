"""SELECT from the information schema: as its routes, with order and limit, and faults at their
place."""

from typing import Any

import pytest

from tests.metasrv.api.rig import Server, leader
from tests.metasrv.service.views.everything import WAIT, everything, page


async def select(one: Server, text: str) -> dict[str, Any]:
    answer = await one.client.post("/v1/sql", json={"text": text}, headers=WAIT)
    assert answer.status_code == 200, answer.text
    (result,) = answer.json()["results"]
    found: dict[str, Any] = result
    return found


async def test_given_any_view_when_selected_then_it_is_that_of_the_route() -> None:
    async with everything() as one:
        for view in ("tables", "columns", "dropped_tables", "regions", "schemata", "settings"):
            result = await select(one, f"SELECT * FROM information_schema.{view}")
            body = await page(one, view, page_size=1_000)
            for name in ("columns", "rows", "catalog_version"):
                assert result[name] == body[name]


async def test_given_a_query_then_rows_are_filtered_ordered_and_cut() -> None:
    async with everything() as one:
        schema = "main.information_schema.tables"
        where = "where table_schema <> 'sales' and\n table_name in ('plain', 'bare', 'ranged')"
        order = "order by table_name desc, table_catalog"
        result = await select(
            one, f"select table_catalog, table_name from {schema} {where} {order}"
        )
        two = await select(one, f"select table_name from {schema} {where} {order} limit 2")
        none = await select(one, f"select table_name from {schema} limit 0")
        comments = f"select table_comment from {schema} order by table_comment"
        rising, falling = await select(one, comments), await select(one, f"{comments} desc")

        assert result["rows"] == [
            ["main", "ranged"],
            ["acme", "plain"],
            ["main", "plain"],
            ["main", "bare"],
        ]
        assert (two["rows"], two["is_cut"]) == ([["ranged"], ["plain"]], False)
        assert (none["rows"], none["columns"]) == ([], ["table_name"])
        assert rising["rows"] == [["nothing special"], *[[None]] * 4]
        assert falling["rows"] == rising["rows"][::-1]


@pytest.mark.parametrize(
    ("text", "types"),
    [
        (
            "select region_count, table_name, created_at from information_schema.tables",
            ["int64", "string", "timestamp(ms)"],
        ),
        ("show tables", ["string", "string"]),
        ("show indexes from plain", ["string", "string", "boolean", "string"]),
        ("describe plain", []),  # defaults are of the types of their columns
    ],
)
async def test_given_a_view_or_a_list_then_the_types_of_its_columns_are_told(
    text: str, types: list[str]
) -> None:
    async with everything() as one:
        result = await select(one, text)

        assert result["types"] == types
        assert len(result["columns"]) == len(types) or not types


@pytest.mark.parametrize(
    ("text", "mark", "near"),
    [
        ("select tabel_name from information_schema.tables", "tabel_name", "table_name"),
        ("select * from information_schema.tabels", "tabels", "tables"),
        (
            "select * from information_schema.tables\n where version = 1 and verson = 2",
            "verson",
            "version",
        ),
        ("select * from information_schema.tables order by verson", "verson", "version"),
        ("select * from information_schema.tables where", None, None),
        ("select * from information_schema.tables where version = 'a'", "version", None),
        ("select count(*) from information_schema.tables", "(", None),
        ("select * from information_schema.tables group by version", "group", None),
        ("select * from information_schema.tables limit 99999", "99999", None),
        ("select * from information_schema", None, None),
        ("explain select * from information_schema.tables", "select", None),
        ("select * from tables", "select", None),
        ("begin; select * from information_schema.tables; commit", "select", None),
    ],
)
async def test_given_a_query_that_means_nothing_then_its_place_is_marked(
    text: str, mark: str | None, near: str | None
) -> None:
    async with leader() as one:
        answer = await one.client.post("/v1/sql", json={"text": text}, headers=WAIT)
        body = answer.json()

        assert answer.status_code in (404, 422), answer.text
        assert body.get("did_you_mean") == near
        line, caret = body["facts"]["excerpt"].split("\n")
        if mark is not None:
            assert line[len(caret) - 1 :].startswith(mark), body["facts"]["excerpt"]
