"""Settings and limits of catalogs over HTTP: shown, changed, and kept under many requests."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.metasrv.api.rig import TABLES, Server, TermLimits, follower_of, leader, spec

WAIT = {"prefer": "wait=10"}
CATALOGS = "/v1/catalogs"
MAIN = f"{CATALOGS}/main"
ACME = f"{CATALOGS}/acme"
DEFAULTS = {"autocommit": True, "tx_isolation": "read-committed", "drop_retention_ms": None}
NO_SHARE = {"reserved": 0, "at_most": None}
UNLIMITED = {
    "tables": None,
    "regions": None,
    "procedures": None,
    "cpu_cores": NO_SHARE,
    "memory_bytes": NO_SHARE,
}


async def patch(one: Server, path: str = MAIN, **body: Any) -> httpx.Response:
    return await one.client.patch(path, json=body, headers=WAIT)


async def test_given_a_new_catalog_then_its_schema_and_ids_come_in_the_same_version() -> None:
    async with leader() as one:
        before = one.version
        made = await one.client.post(CATALOGS, json={"name": "acme"}, headers=WAIT)
        other = await one.client.post(CATALOGS, json={"name": "bolt"}, headers=WAIT)

        body = made.json()
        assert (made.status_code, body["settings"], body["limits"]) == (201, DEFAULTS, UNLIMITED)
        assert body["usage"] == {"tables": 0, "regions": 0}
        schema = f"{ACME}/schemas/public"
        assert (await one.client.get(f"{ACME}?as_of=version:{before}")).status_code == 404
        assert (await one.client.get(f"{ACME}?as_of=version:{before + 1}")).status_code == 200
        first = (await one.client.get(f"{schema}?as_of=version:{before + 1}")).json()
        second = (await one.client.get(f"{CATALOGS}/bolt/schemas/public")).json()
        assert (body["id"] != other.json()["id"], first["id"] != second["id"]) == (True, True)
        table = await one.client.post(f"{schema}/tables", json=spec(), headers=WAIT)
        assert table.status_code == 201


async def test_given_no_catalog_when_changed_if_it_exists_then_a_miss_with_its_key() -> None:
    async with leader() as one:
        before, body = one.version, {"limits": {"tables": 1}, "if_exists": True}
        headers = WAIT | {"idempotency-key": "once"}

        missing = await patch(one, ACME, limits={"tables": 1})
        missed = await one.client.patch(ACME, json=body, headers=headers)
        await one.client.post(CATALOGS, json={"name": "acme"}, headers=WAIT)
        again = await one.client.patch(ACME, json=body, headers=headers)
        found = await patch(one, ACME, **body)

        assert (missing.status_code, missed.status_code) == (404, 204)
        assert missed.headers["catalog-applied"] == "false"
        assert (again.status_code, again.headers["catalog-applied"]) == (204, "false")
        assert (found.status_code, found.json()["limits"]["tables"]) == (200, 1)
        assert one.version == before + 2


async def test_given_a_new_catalog_when_dropped_then_its_empty_schema_goes_along() -> None:
    async with leader() as one:
        await one.client.post(CATALOGS, json={"name": "acme"}, headers=WAIT)
        before = one.version

        gone = await one.client.delete(ACME, headers=WAIT)

        assert (gone.status_code, one.version) == (204, before + 1)
        again = await one.client.post(CATALOGS, json={"name": "acme"}, headers=WAIT)
        assert again.status_code == 201


async def test_given_settings_and_limits_when_some_are_named_then_the_others_stay() -> None:
    async with leader() as one:
        tag = (await one.client.get(MAIN)).headers["etag"]
        first = await patch(one, limits={"tables": 5, "regions": 9})
        second = await patch(one, settings={"drop_retention_ms": 60_000}, limits={"regions": None})
        version = one.version
        same = await patch(one, limits={"tables": 5})
        stands = await patch(one)
        made = await one.make()

        body = second.json()
        assert (first.status_code, second.status_code) == (200, 200), second.text
        assert body["settings"] == {**DEFAULTS, "drop_retention_ms": 60_000}
        assert body["limits"] == {**UNLIMITED, "tables": 5}
        assert (same.status_code, stands.status_code, made["catalog_version"]) == (
            200,
            200,
            version + 1,
        )
        shown = await one.client.get(MAIN)
        assert shown.json()["usage"] == {"tables": 1, "regions": 1}
        assert tag != shown.headers["etag"] != first.headers.get("etag")
        then = (await one.client.get(f"{MAIN}?as_of=version:{version - 1}")).json()
        assert then["limits"] == {**UNLIMITED, "tables": 5, "regions": 9}


async def test_given_a_table_more_then_the_tag_of_a_catalog_is_the_same() -> None:
    async with leader() as one:
        before = (await one.client.get(MAIN)).headers["etag"]

        await one.make()

        assert (await one.client.get(MAIN)).headers["etag"] == before


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"settings": {"autocommit": False}}, "unsupported", "/settings/autocommit"),
        ({"settings": {"tx_isolation": "serializable"}}, "unsupported", "/settings/tx_isolation"),
        (
            {"settings": {"drop_retention_ms": 1}},
            "invalid-request",
            "/settings/drop_retention_ms",
        ),
        ({"settings": {"quota": 1}}, "invalid-request", "/settings/quota"),
        ({"limits": {"tables": -1}}, "invalid-request", "/limits/tables"),
        ({"limits": {"tables": 1.5}}, "invalid-request", "/limits/tables"),
        ({"limits": {"procedures": 0}}, "invalid-request", "/limits/procedures"),
        ({"limits": {"tables": 1 << 63}}, "invalid-request", "/limits/tables"),
        (
            {"limits": {"cpu_cores": {"reserved": 2, "at_most": 1}}},
            "invalid-request",
            "/limits/cpu_cores/at_most",
        ),
        ({"limits": None}, "invalid-request", "/limits"),
    ],
)
async def test_given_settings_that_cannot_be_when_asked_for_then_422_points_at_them(
    body: dict[str, Any], code: str, pointer: str
) -> None:
    async with leader() as one:
        revision = one.kv.revision

        altered = await one.client.patch(MAIN, json=body, headers=WAIT)
        created = await one.client.post(CATALOGS, json={"name": "acme", **body}, headers=WAIT)

        for answer in (altered, created):
            assert answer.status_code == 422, answer.text
            (error,) = answer.json()["errors"]
            assert (error["pointer"], error["code"]) == (pointer, code)
        assert one.kv.revision == revision


async def test_given_one_free_place_when_32_creates_come_at_once_then_one_succeeds() -> None:
    """Half of them through a follower. The others are told limit, use and request."""
    async with leader(of_term=TermLimits(queue_max=200)) as one, follower_of(one) as other:
        await one.make("there")
        await patch(one, limits={"tables": 2})
        servers = (one, other)

        found = await asyncio.gather(
            *(
                servers[number % 2].client.post(TABLES, json=spec(f"t{number}"), headers=WAIT)
                for number in range(32)
            )
        )

        (made,) = [answer for answer in found if answer.status_code == 201]
        refused = [answer for answer in found if answer is not made]
        assert {answer.status_code for answer in refused} == {409}
        body = refused[0].json()
        assert body["code"] == "tenant-limit"
        assert body["detail"] == (
            "main may have 2 tables; it has 2, and the request is for 1 more."
        )
        assert (await one.client.get(MAIN)).json()["usage"] == {"tables": 2, "regions": 2}
        await one.client.delete(f"{TABLES}/there", headers=WAIT)
        assert (await one.make("another"))["name"] == "another"


async def test_given_a_full_tenant_when_another_creates_then_it_is_not_in_its_way() -> None:
    async with leader() as one:
        await one.client.post(CATALOGS, json={"name": "acme"}, headers=WAIT)
        await patch(one, limits={"tables": 0})

        refused = await one.client.post(TABLES, json=spec(), headers=WAIT)
        made = await one.client.post(f"{ACME}/schemas/public/tables", json=spec(), headers=WAIT)

        assert (refused.status_code, refused.json()["code"]) == (422, "above-tenant-limit")
        assert made.status_code == 201


async def test_given_a_full_tenant_when_a_known_key_comes_again_then_its_answer() -> None:
    async with leader() as one:
        await patch(one, limits={"tables": 1})
        key = {"Idempotency-Key": "k-1", **WAIT}
        first = await one.client.post(TABLES, json=spec(), headers=key)

        again = await one.client.post(TABLES, json=spec(), headers=key)
        plan = await one.client.post(f"{TABLES}?dry_run=true", json=spec("u"))

        assert (first.status_code, again.status_code) == (201, 201)
        assert again.headers["idempotency-replayed"] == "true"
        assert (plan.status_code, plan.json()["code"]) == (409, "tenant-limit")


async def test_given_a_limit_below_what_there_is_when_set_then_409_and_it_stays() -> None:
    async with leader() as one:
        for name in ("t", "u"):
            await one.make(name, partition={"by": "hash", "columns": ["id"], "count": 3})
        version = one.version

        tables = await patch(one, limits={"tables": 1})
        regions = await patch(one, limits={"regions": 5})
        exactly = await patch(one, limits={"tables": 2, "regions": 6})

        assert [answer.status_code for answer in (tables, regions, exactly)] == [409, 409, 200]
        assert "it has 6" in regions.json()["detail"]
        assert one.version == version + 1


async def test_given_changes_that_wait_when_more_come_than_the_tenant_may_have_then_409() -> None:
    async with leader() as one:
        await one.make()
        await patch(one, limits={"procedures": 1})
        one.nodes.gate.clear()
        one.nodes.reached.clear()
        await one.client.post(TABLES, json=spec("u"))
        await one.nodes.reached.wait()

        refused = await one.client.post(TABLES, json=spec("v"), headers=WAIT)
        raised = await patch(one, limits={"procedures": 2})
        metrics = (await one.client.get("/metrics")).text
        one.nodes.gate.set()
        taken = await one.client.post(TABLES, json=spec("v"), headers=WAIT)

        assert (refused.status_code, refused.json()["code"]) == (409, "tenant-limit")
        assert (raised.status_code, taken.status_code) == (200, 201)
        assert 'metasrv_tenant_limit{catalog="main",limit="procedures"} 2.0' in metrics
        assert 'metasrv_tenant_use{catalog="main",limit="procedures"} 1.0' in metrics
        assert 'metasrv_tenant_refusals{limit="procedures"} 1.0' in metrics


async def test_given_other_settings_then_the_history_says_which() -> None:
    async with leader() as one:
        await patch(one, settings={"drop_retention_ms": 60_000}, limits={"tables": 7})

        change = (await one.client.get("/v1/catalog/versions")).json()["changes"][0]

        (only,) = change["operations"]
        assert only["operation"] == {
            "op": "alter_catalog",
            "settings": {"drop_retention_ms": 60_000},
            "limits": {"tables": 7},
        }
        assert change["text"] == "alter catalog main: drop_retention_ms=60000, tables=7"


async def test_given_a_catalog_that_is_not_there_when_altered_then_404() -> None:
    async with leader() as one:
        answer = await patch(one, ACME, limits={"tables": 1})

        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
