"""Reads of the catalog: versions, ETags, pages, and what is said when they may be old."""

import asyncio

import pytest

from metasrv.service.bodies.shapes import time_of
from metasrv.service.state.closed_times import CLOSE_EVERY_MS
from metasrv_base.schema.instants import instant_text
from tests.metasrv.api.rig import TABLES, Server, leader
from tests.metasrv.service.catalog.old import Begins, forget

WAIT = {"Prefer": "wait=10"}


async def names(one: Server, query: str) -> tuple[list[str], str | None]:
    answer = await one.client.get(f"{TABLES}?{query}")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return [table["name"] for table in body["tables"]], body["next_page_token"]


async def test_given_an_etag_when_nothing_changed_then_304() -> None:
    async with leader() as one:
        await one.make()
        first = await one.client.get(f"{TABLES}/t")
        tag = {"If-None-Match": first.headers["etag"]}

        same = await one.client.get(f"{TABLES}/t", headers=tag)
        await one.client.post(
            f"{TABLES}/t/alter",
            json={"operations": [{"op": "set_options", "options": {"app.x": "1d"}}]},
            headers=WAIT,
        )
        other = await one.client.get(f"{TABLES}/t", headers=tag)

        assert first.headers["etag"] == '"t1024-1"'
        assert (same.status_code, same.content) == (304, b"")
        assert (other.status_code, other.headers["etag"]) == (200, '"t1024-2"')
        assert other.headers["catalog-version"] == str(one.version)


@pytest.mark.case("input 55")
async def test_given_if_match_when_the_table_moved_then_412() -> None:
    async with leader() as one:
        await one.make()

        wrong = await one.client.delete(f"{TABLES}/t", headers={"If-Match": '"t1024-7"'} | WAIT)
        foreign = await one.client.delete(f"{TABLES}/t", headers={"If-Match": '"abc"'} | WAIT)
        bad = await one.client.delete(f"{TABLES}/t", headers={"If-Match": "7"} | WAIT)
        right = await one.client.delete(f"{TABLES}/t", headers={"If-Match": '"t1024-1"'} | WAIT)

        assert [a.status_code for a in (wrong, foreign, bad, right)] == [412, 412, 422, 204]
        assert wrong.json()["code"] == "version-mismatch"


async def test_given_pages_when_tables_come_and_go_then_every_page_is_of_one_version() -> None:
    async with leader() as one:
        for name in ("a", "b", "c"):
            await one.make(name)
        first, token = await names(one, "page_size=2")
        await one.make("bb")
        await one.client.delete(f"{TABLES}/c", headers=WAIT)

        second, end = await names(one, f"page_size=2&page_token={token}")

        assert (first, second, end) == (["a", "b"], ["c"], None)
        assert (await names(one, "prefix=b"))[0] == ["b", "bb"]
        assert (await names(one, "include_dropped=true"))[0] == ["a", "b", "bb", "c"]


@pytest.mark.case("input 64")
async def test_given_a_token_when_used_for_another_list_then_400() -> None:
    """Row 64."""
    async with leader() as one:
        for name in ("a", "b"):
            await one.make(name)
        _, token = await names(one, "page_size=1")

        other = await one.client.get(f"{TABLES}?page_token={token}&prefix=a")
        another = await one.client.get(f"/v1/catalogs/main/schemas?page_token={token}")

        for answer in (other, another):
            assert (answer.status_code, answer.json()["code"]) == (400, "bad-page-token")


@pytest.mark.case("input 64")
async def test_given_a_token_of_a_version_that_is_gone_then_410() -> None:
    async with leader() as one:
        for name in ("a", "b"):
            await one.make(name)
        _, token = await names(one, "page_size=1")
        await one.make("c")
        forget(one)
        one.state.old.bases = Begins(one.version)

        answer = await one.client.get(f"{TABLES}?page_token={token}")

        assert (answer.status_code, answer.json()["code"]) == (410, "page-token-expired")


async def test_given_a_table_id_as_of_a_version_or_a_time_then_the_table_of_then() -> None:
    async with leader() as one:
        made = await one.make()
        version, at = one.version, instant_text(one.state.follower.catalog.at_ms, "ms")
        one.clock.ahead_ms += 500
        await one.client.post(f"{TABLES}/t/rename", json={"new_name": "u"}, headers=WAIT)
        path = f"/v1/tables/{made['id']}"

        answers = [
            await one.client.get(f"{path}{query}")
            for query in ("", f"?as_of=version:{version}", f"?as_of={at}")
        ]

        assert [answer.json()["name"] for answer in answers] == ["u", "t", "t"]


async def test_given_as_of_a_version_then_the_catalog_of_then_is_answered() -> None:
    async with leader() as one:
        await one.make()
        before = one.version
        await one.client.delete(f"{TABLES}/t", headers=WAIT)

        then = await one.client.get(f"{TABLES}/t?as_of=version:{before}")
        now = await one.client.get(f"{TABLES}/t")
        forget(one)
        one.state.old.bases = Begins(one.version)
        gone = await one.client.get(f"{TABLES}/t?as_of=version:{before}")
        wrong = await one.client.get(f"{TABLES}/t?as_of=yesterday")

        assert (then.status_code, then.json()["catalog_version"]) == (200, before)
        assert then.headers["catalog-version"] == str(before)
        assert now.status_code == 404
        assert (gone.status_code, gone.json()["code"]) == (410, "history-expired")
        assert wrong.status_code == 422


async def test_given_a_silent_store_then_reads_say_stale_and_fresh_ones_are_refused() -> None:
    async with leader() as one:
        await one.make()
        assert "catalog-stale" not in (await one.client.get(f"{TABLES}/t")).headers
        one.clock.ahead_ms += 60_000

        read = await one.client.get(f"{TABLES}/t")
        fresh = await one.client.get(f"{TABLES}/t?fresh=true")
        ready = await one.client.get("/readyz")

        assert (read.status_code, read.headers["catalog-stale"]) == (200, "true")
        assert (fresh.status_code, fresh.json()["code"]) == (503, "stale")
        assert (ready.status_code, ready.json()["code"]) == (503, "not-ready")
        assert (await one.client.get("/livez")).status_code == 200


@pytest.mark.case("greptime 79", "greptime 104")
async def test_given_several_dropped_tables_then_undrop_asks_which() -> None:
    async with leader() as one:
        ids = []
        for _ in range(2):
            ids.append((await one.make())["id"])
            await one.client.delete(f"{TABLES}/t", headers=WAIT)

        which = await one.client.post(f"{TABLES}/t/undrop", headers=WAIT)
        first = await one.client.post(f"{TABLES}/t/undrop", json={"table_id": ids[0]}, headers=WAIT)

        assert (which.status_code, which.json()["code"]) == (409, "ambiguous-dropped-table")
        assert which.json()["facts"]["candidates"] == ids
        assert (first.status_code, first.json()["id"]) == (200, ids[0])


async def test_given_a_schema_when_it_holds_a_table_then_it_cannot_be_dropped() -> None:
    async with leader() as one:
        await one.make()

        full = await one.client.delete("/v1/catalogs/main/schemas/public", headers=WAIT)
        await one.client.delete(f"{TABLES}/t", headers=WAIT)
        empty = await one.client.delete("/v1/catalogs/main/schemas/public", headers=WAIT)

        assert (full.status_code, full.json()["code"]) == (409, "not-empty")
        assert empty.status_code == 204
        assert (await one.client.get(TABLES)).status_code == 404


async def test_given_a_wrong_parameter_when_refused_then_no_body_is_blamed() -> None:
    async with leader() as one:
        refused = await one.client.get(TABLES, params={"page_size": "0"})

        assert refused.status_code == 422
        assert refused.json()["detail"].startswith("query parameter page_size: ")


@pytest.mark.parametrize(
    ("as_of", "status", "detail"),
    [
        ("yesterday", 422, "At as_of: expected an RFC 3339 time in UTC"),
        ("2001-01-01T00:00:00Z", 404, "before the first version of this cluster's catalog"),
    ],
)
async def test_given_a_time_that_is_none_or_too_early_when_asked_for_then_it_is_said(
    as_of: str, status: int, detail: str
) -> None:
    async with leader() as one:
        answer = await one.client.get(f"{TABLES}?as_of={as_of}")

        assert answer.status_code == status
        assert detail in answer.json()["detail"]


@pytest.mark.slow
async def test_given_many_reads_as_of_now_then_the_store_is_written_once_an_interval() -> None:
    async with leader(nodes=1) as one:
        await one.make("t")
        before, revision = one.clock.wall_ms(), one.kv.revision

        async def read() -> int:
            now = time_of(one.clock.wall_ms() - 1).replace("+", "%2B")
            answer = await one.client.get(f"{TABLES}/t?as_of={now}")
            return answer.status_code

        found = [await asyncio.gather(*(read() for _ in range(24))) for _ in range(2)]

        intervals = (one.clock.wall_ms() - before) // CLOSE_EVERY_MS + 1
        assert {status for some in found for status in some} == {200}
        assert one.kv.revision - revision <= 2 * intervals
