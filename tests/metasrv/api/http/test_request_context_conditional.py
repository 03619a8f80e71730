"""Reads on conditions: what the client has already, what was at a time, and what was meant."""

import pytest

from keys.commit.log_head import read_log_head
from metasrv.service.nearby import COMPARED_MAX, nearest
from metasrv_base.schema.instants import instant_text
from tests.metasrv.api.rig import DEADLINE_MS, TABLES, follower_of, leader
from tests.metasrv.service.catalog.old import Begins, forget

WAIT = {"Prefer": "wait=10"}
SCHEMA = "/v1/catalogs/main/schemas/public"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/catalogs",
        "/v1/catalogs/main",
        "/v1/catalogs/main/schemas",
        SCHEMA,
        TABLES,
        f"{TABLES}/t",
        f"{TABLES}/t/route",
        "/v1/tables/1024",
        "/v1/regions?table=1024",
    ],
)
async def test_given_what_was_read_before_then_304_with_its_tag_and_version(path: str) -> None:
    async with leader() as one:
        await one.make()
        first = await one.client.get(path)
        tag = first.headers["etag"]

        same = await one.client.get(path, headers={"If-None-Match": f'"other", W/{tag}'})
        any_tag = await one.client.get(path, headers={"If-None-Match": "*"})
        other = await one.client.get(path, headers={"If-None-Match": '"other"'})

        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
        assert same.headers["catalog-version"] == str(one.version)
        assert any_tag.status_code == 304
        assert (other.status_code, other.content) == (200, first.content)


async def test_given_another_table_then_lists_have_moved_and_the_schema_has_not() -> None:
    async with leader() as one:
        paths = (TABLES, SCHEMA)
        before = [(await one.client.get(path)).headers["etag"] for path in paths]
        await one.make()

        after = [(await one.client.get(path)).headers["etag"] for path in paths]

        assert after[0] != before[0]
        assert after[1] == before[1]


@pytest.mark.case("catalog 20")
async def test_given_as_of_a_time_then_the_catalog_of_then_unless_it_is_to_come() -> None:
    async with leader() as one:
        await one.make("a")
        at = one.state.follower.catalog.at_ms
        path = f"{TABLES}?as_of="

        exactly = await one.client.get(path + instant_text(at, "ms"))
        one.clock.ahead_ms += 500
        await one.make("b")
        before = await one.client.get(path + instant_text(at - 1, "ms"))
        between = await one.client.get(path + instant_text(at + 250, "ms"))
        future = await one.client.get(path + instant_text(at + 3_600_000, "ms"))

        assert (future.status_code, future.json()["code"]) == (503, "not-ready")
        assert "retry-after" in future.headers
        shown = [[t["name"] for t in a.json()["tables"]] for a in (before, exactly, between)]
        assert shown == [[], ["a"], ["a"]]
        assert exactly.headers["catalog-version"] == str(exactly.json()["catalog_version"])


async def test_given_as_of_a_time_since_the_last_change_then_none_comes_before_it_any_more() -> (
    None
):
    """Also not by a leader whose clock is behind: the word is stored before it is given."""
    async with leader() as one, follower_of(one) as other:
        await one.make("a")
        version = one.version
        one.clock.ahead_ms += 60_000
        asked_ms = one.clock.wall_ms()
        path = f"{TABLES}?as_of={instant_text(asked_ms, 'ms')}"

        passed_on = await other.client.get(path)
        revision = one.kv.revision
        again = await one.client.get(path)
        assert one.kv.revision == revision, "it is stored already"
        one.clock.ahead_ms -= 60_000
        line = await read_log_head(one.kv, one.term.fence, deadline_ms=DEADLINE_MS)
        await one.make("b")
        still = await one.client.get(path)

        for answer in (passed_on, again, still):
            assert [table["name"] for table in answer.json()["tables"]] == ["a"]
            assert answer.headers["catalog-version"] == str(version)
        assert passed_on.status_code == 200
        assert one.version == version + 1
        assert one.state.follower.catalog.at_ms > line.at_ms >= asked_ms


async def test_given_no_leader_when_a_time_since_the_last_change_is_asked_for_then_503() -> None:
    async with leader() as one, follower_of(one) as other:
        await one.make("a")
        await other.state.follower.wait_for(one.version, deadline_ms=DEADLINE_MS)
        other.state.heard(None)
        one.clock.ahead_ms += 1_000
        path = f"{TABLES}?as_of={instant_text(one.clock.wall_ms(), 'ms')}"

        answer = await other.client.get(path)

        assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")


@pytest.mark.case("input 65")
async def test_given_as_of_a_time_that_is_not_kept_or_none_then_it_is_refused() -> None:
    async with leader() as one:
        await one.make()
        at = one.state.follower.catalog.at_ms
        forget(one)
        one.state.old.bases = Begins(one.version - 1, at - 1)

        gone = await one.client.get(f"{TABLES}/t?as_of=1999-01-01T00:00:00Z")

        assert (gone.status_code, gone.json()["code"]) == (410, "history-expired")
        local = instant_text(at, "ms").removesuffix("Z") + "-07:00"
        for wrong in ("yesterday", "version:x", "2013-02-30T00:00:00Z", local):
            answer = await one.client.get(f"{TABLES}/t", params={"as_of": wrong})
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request"), wrong


@pytest.mark.parametrize(
    "query",
    ["page_size=1&page_size=2", "prefix=a&pre%66ix=b", "prefix=%ff", "prefix=a&&prefix=a"],
)
async def test_given_a_parameter_twice_or_no_text_then_422(query: str) -> None:
    async with leader() as one:
        answer = await one.client.get(f"{TABLES}?{query}")

        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


async def test_given_a_name_that_comes_close_then_it_is_offered() -> None:
    async with leader() as one:
        await one.make("flights")

        for path, meant in (
            (f"{TABLES}/flihgts", "flights"),
            ("/v1/catalogs/main/schemas/pubic/tables/flights", "public"),
            ("/v1/catalogs/main/schemas/pubic", "public"),
            ("/v1/catalogs/mian", "main"),
        ):
            answer = await one.client.get(path)
            assert (answer.status_code, answer.json()["did_you_mean"]) == (404, meant), path
        assert "did_you_mean" not in (await one.client.get(f"{TABLES}/zzz")).json()
        drop = await one.client.delete(f"{TABLES}/flight", headers=WAIT)
        assert drop.json()["did_you_mean"] == "flights"


def test_given_many_names_then_only_one_edit_is_looked_up() -> None:
    known = {f"table_{number:06}" for number in range(10 * COMPARED_MAX)} | {"flights"}

    for meant in ("flihgts", "flight", "fllights", "flightz", "FLIGHTS"):
        assert nearest(meant, known) == "flights"
    assert nearest("fly", known) is None
