"""Catalog cases 34-73 and 109-112: tables and schemas, by name, by id and as of a version."""

from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from metasrv_base.schema.instants import instant_text
from metasrv_base.wire.api.tables import TableSpec
from tests.metasrv.api.rig import TABLES, Server, leader, spec

WAIT = {"Prefer": "wait=10"}
SCHEMAS = "/v1/catalogs/main/schemas"


async def shown(one: Server, version: int, path: str = f"{TABLES}/t") -> httpx.Response:
    return await one.client.get(f"{path}?as_of=version:{version}")


async def send(one: Server, method: str, path: str, body: Any = None) -> Any:
    answer = await one.client.request(method, path, json=body, headers=WAIT)
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


@pytest.mark.case("catalog 34", "catalog 35")
async def test_given_a_new_table_then_ids_version_and_key_and_no_trace_in_versions_before() -> None:
    async with leader() as one:
        before = one.version

        made = await one.make()

        assert [(column["id"], column["state"]) for column in made["columns"]] == [
            (1, "public"),
            (2, "public"),
        ]
        assert (made["version"], made["schema_version"]) == (1, 1)
        assert made["primary_key"] == ["id"]
        assert (await shown(one, before)).status_code == 404
        assert (await shown(one, before, TABLES)).json()["tables"] == []
        assert (await shown(one, before + 1)).json()["id"] == made["id"]


@pytest.mark.case("catalog 37")
async def test_given_two_tables_then_their_ids_differ() -> None:
    async with leader() as one:
        first, second = await one.make("a"), await one.make("b")

        assert second["id"] > first["id"]


@pytest.mark.case("catalog 38", "catalog 42", "catalog 58")
async def test_given_a_name_that_is_taken_or_missing_when_used_then_the_answer_names_it() -> None:
    async with leader() as one:
        await one.make("t")
        await one.make("u")
        version = one.version

        taken = await one.client.post(TABLES, json=spec("t"), headers=WAIT)
        renamed = await one.client.post(f"{TABLES}/t/rename", json={"new_name": "u"}, headers=WAIT)
        missing = await one.client.delete(f"{TABLES}/gone", headers=WAIT)

        assert [answer.status_code for answer in (taken, renamed, missing)] == [409, 409, 404]
        codes = [answer.json()["code"] for answer in (taken, renamed, missing)]
        assert codes == ["already-exists", "already-exists", "table-not-found"]
        for answer, name in ((taken, "t"), (renamed, "u"), (missing, "gone")):
            assert f"main.public.{name}" in answer.text
        assert one.version == version


@pytest.mark.case("catalog 39")
async def test_given_a_table_that_is_there_when_made_if_it_does_not_exist_then_no_version() -> None:
    async with leader() as one:
        made = await one.make()
        version = one.version

        answer = await one.client.post(TABLES, json=spec(if_not_exists=True), headers=WAIT)

        assert (answer.status_code, answer.json()["id"]) == (200, made["id"])
        assert one.version == version


@pytest.mark.case("catalog 40", "catalog 41")
async def test_given_a_table_dropped_and_made_again_then_each_is_there_at_its_versions() -> None:
    async with leader() as one:
        old = await one.make()
        version, at_ms = one.version, one.state.follower.catalog.at_ms
        one.clock.ahead_ms += 500
        await send(one, "DELETE", f"{TABLES}/t")
        without = one.version
        gone = await one.client.get(f"{TABLES}/t")
        new = await one.make()

        now = (await one.client.get(f"{TABLES}/t")).json()
        then = (await shown(one, version)).json()
        by_time = await one.client.get(f"{TABLES}/t?as_of={instant_text(at_ms, 'ms')}")

        assert gone.status_code == 404
        assert (await shown(one, without)).status_code == 404
        assert (now["id"], then["id"], by_time.json()["id"]) == (new["id"], old["id"], old["id"])
        assert new["id"] != old["id"]


@pytest.mark.case("catalog 44", "catalog 53")
async def test_given_columns_added_by_one_change_then_in_order_and_all_in_one_version() -> None:
    async with leader() as one:
        made = await one.make()
        before = one.version
        add = [
            {"op": "add_column", "column": {"name": name, "type": "int64"}} for name in ("x", "y")
        ]

        body = await send(one, "POST", f"{TABLES}/t/alter", {"operations": add})

        assert [(column["id"], column["name"]) for column in body["columns"]] == [
            (1, "id"),
            (2, "carrier"),
            (3, "x"),
            (4, "y"),
        ]
        assert body["version"] > made["version"]
        public = []
        for version in range(before, one.version + 1):
            columns = (await shown(one, version)).json()["columns"]
            public.append([each["name"] for each in columns if each["state"] == "public"])
        assert public[0] == ["id", "carrier"]
        assert public[-1] == ["id", "carrier", "x", "y"]
        assert all(names in (public[0], public[-1]) for names in public)


@pytest.mark.case("catalog 54", "catalog 55", "catalog 56")
@pytest.mark.parametrize(
    ("column", "status", "pointer"),
    [
        ({"name": "carrier", "type": "int64"}, 409, "/operations/1/column/name"),
        ({"name": "y", "type": "int7"}, 422, "/operations/1/column/type"),
        ({"name": "y", "type": "int64", "nullable": False}, 422, "/operations/1/column/default"),
        (
            {"name": "y", "type": "string", "default": {"expression": "random()"}},
            422,
            "/operations/1/column/default",
        ),
    ],
    ids=["a name in use", "no such type", "not null without a default", "a function"],
)
async def test_given_columns_of_which_one_cannot_be_when_added_then_none_is(
    column: dict[str, Any], status: int, pointer: str
) -> None:
    async with leader() as one:
        made = await one.make()
        version = one.version
        operations = [
            {"op": "add_column", "column": {"name": "x", "type": "int64"}},
            {"op": "add_column", "column": column},
        ]

        answer = await one.client.post(
            f"{TABLES}/t/alter", json={"operations": operations}, headers=WAIT
        )

        assert answer.status_code == status, answer.text
        assert pointer in answer.text
        assert one.version == version
        assert (await one.client.get(f"{TABLES}/t")).json()["columns"] == made["columns"]


@pytest.mark.case("catalog 57")
async def test_given_a_renamed_table_then_it_is_the_same_and_its_old_name_is_free() -> None:
    async with leader() as one:
        made = await one.make("t")

        renamed = await send(one, "POST", f"{TABLES}/t/rename", {"new_name": "u"})
        other = await one.make("t")

        for field in ("id", "columns", "schema_version", "primary_key"):
            assert renamed[field] == made[field]
        assert renamed["name"] == "u"
        assert other["id"] != made["id"]


@pytest.mark.case("catalog 59")
async def test_given_a_default_when_set_changed_and_removed_then_the_column_shows_it() -> None:
    async with leader() as one:
        await one.make()
        found = []
        for default in ("XX", "YY", None):
            operation = {"op": "set_default", "name": "carrier", "default": default}
            before = one.version
            body = await send(one, "POST", f"{TABLES}/t/alter", {"operations": [operation]})
            (carrier,) = [each for each in body["columns"] if each["name"] == "carrier"]
            found.append((carrier["default"], one.version > before))

        assert found == [("XX", True), ("YY", True), (None, True)]


@pytest.mark.case("catalog 71", "catalog 111")
async def test_given_one_name_in_two_schemas_then_tables_and_indexes_are_told_apart() -> None:
    async with leader() as one:
        await send(one, "POST", SCHEMAS, {"name": "sales"})
        other = f"{SCHEMAS}/sales/tables"
        first = await one.make("t")
        second = await send(one, "POST", other, spec("t"))
        for path in (TABLES, other):
            await send(one, "POST", f"{path}/t/indexes", {"name": "i", "columns": ["carrier"]})

        await send(one, "DELETE", f"{TABLES}/t/indexes/i")

        ids = [(await one.client.get(f"{path}/t")).json()["id"] for path in (TABLES, other)]
        assert ids == [first["id"], second["id"]]
        assert first["id"] != second["id"]
        left = [
            [index["name"] for index in (await one.client.get(f"{path}/t")).json()["indexes"]]
            for path in (TABLES, other)
        ]
        assert left == [[], ["i"]]


@pytest.mark.case("catalog 73")
def test_given_a_request_when_its_sender_changes_its_body_then_it_stays_as_it_was() -> None:
    body = spec()
    request = TableSpec.model_validate(body)

    body["columns"].append({"name": "x", "type": "int64"})
    body["primary_key"][0] = "x"

    assert [column.name for column in request.columns] == ["id", "carrier"]
    assert list(request.primary_key) == ["id"]
    with pytest.raises(ValidationError, match="frozen"):
        request.__setattr__("name", "u")


@pytest.mark.case("catalog 110")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/catalogs", {"name": "information_schema"}),
        (SCHEMAS, {"name": "Information_Schema"}),
        (SCHEMAS, {"name": "__system"}),
        (TABLES, spec("__log")),
    ],
)
async def test_given_a_name_of_the_system_when_an_object_is_made_then_it_is_refused(
    path: str, body: dict[str, Any]
) -> None:
    async with leader() as one:
        version = one.version

        answer = await one.client.post(path, json=body, headers=WAIT)

        assert (answer.status_code, one.version) == (422, version)
        assert "reserved-name" in answer.text


@pytest.mark.case("catalog 112")
async def test_given_a_schema_dropped_and_made_again_then_it_has_another_id() -> None:
    async with leader() as one:
        old = (await one.client.get(f"{SCHEMAS}/public")).json()
        await send(one, "DELETE", f"{SCHEMAS}/public")

        new = await send(one, "POST", SCHEMAS, {"name": "public"})

        assert new["id"] != old["id"]
        assert (await shown(one, 1, f"{SCHEMAS}/public")).json()["id"] == old["id"]
