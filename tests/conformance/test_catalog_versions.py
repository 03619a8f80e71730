"""Catalog cases 1-21 and 147: versions, and what each of them holds."""

import asyncio

import pytest

from keys.catalog.catalog import Catalog
from metasrv_base.schema.instants import instant_text
from tests.metasrv.api.rig import TABLES, follower_of, leader, spec

WAIT = {"Prefer": "wait=10"}
HISTORY = "/v1/catalog/versions"
DAY_MS = 86_400_000


@pytest.mark.case("catalog 1")
def test_given_no_log_then_version_0_of_the_earliest_time_and_nothing_in_it() -> None:
    catalog = Catalog()

    assert (catalog.version, catalog.revision, catalog.at_ms) == (0, 0, 0)
    held = (catalog.catalogs, catalog.schemas, catalog.tables, catalog.names, catalog.gone)
    assert [len(each) for each in held] == [0] * 5


@pytest.mark.case("catalog 2")
async def test_given_a_first_start_then_version_1_has_the_default_catalog_and_schema() -> None:
    async with leader(nodes=0) as one:
        catalogs = (await one.client.get("/v1/catalogs")).json()
        schemas = (await one.client.get("/v1/catalogs/main/schemas")).json()
        tables = (await one.client.get(TABLES)).json()

        assert catalogs["catalog_version"] == 1
        assert [(each["id"], each["name"]) for each in catalogs["catalogs"]] == [(1024, "main")]
        assert [(each["id"], each["name"]) for each in schemas["schemas"]] == [(1024, "public")]
        assert tables["tables"] == []


@pytest.mark.case("catalog 3")
async def test_given_changes_one_after_another_then_their_versions_follow_one_another() -> None:
    async with leader() as one:
        made = [
            await one.client.post(TABLES, json=spec(name), headers=WAIT) for name in ("a", "b", "c")
        ]

        assert [int(answer.headers["catalog-version"]) for answer in made] == [2, 3, 4]


@pytest.mark.case("catalog 4")
async def test_given_a_version_that_was_never_made_when_asked_for_then_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("metasrv.service.catalog.reading.WAIT_MS_MAX", 100)
    async with leader() as one:
        await one.make()

        answers = [
            await one.client.get(f"{TABLES}/t?as_of=version:{text}")
            for text in (one.version + 1, -1, "x")
        ]
        by_number = await one.client.get(f"{HISTORY}/{one.version + 1}")

        assert [answer.status_code for answer in answers] == [503, 422, 422]
        assert by_number.status_code == 404


@pytest.mark.case("catalog 17")
async def test_given_thirty_creates_at_once_through_two_servers_then_all_succeed() -> None:
    async with leader() as one, follower_of(one) as other:
        found = await asyncio.gather(
            *(
                (one, other)[number % 2].client.post(TABLES, json=spec(f"t{number}"), headers=WAIT)
                for number in range(30)
            )
        )

        assert {answer.status_code for answer in found} == {201}
        assert len({answer.json()["id"] for answer in found}) == 30
        assert sorted(int(answer.json()["catalog_version"]) for answer in found)[-1] == 31
        assert one.version == 31


@pytest.mark.case("catalog 18")
async def test_given_a_server_that_starts_a_day_later_then_no_version_has_another_time() -> None:
    async with leader() as one:
        for name in ("a", "b"):
            await one.make(name)
            one.clock.ahead_ms += 500
        before = (await one.client.get(HISTORY)).json()
        one.clock.ahead_ms += DAY_MS

        async with follower_of(one) as started:
            after = (await started.client.get(HISTORY)).json()

        assert [change["committed_at"] for change in after["changes"]] == [
            change["committed_at"] for change in before["changes"]
        ]
        assert len(before["changes"]) == 3


@pytest.mark.case("catalog 21")
async def test_given_a_clock_that_goes_back_then_the_times_of_versions_still_rise() -> None:
    async with leader() as one:
        for name in ("a", "b", "c"):
            await one.make(name)
            one.clock.ahead_ms -= DAY_MS

        changes = (await one.client.get(HISTORY)).json()["changes"]

        times = [change["committed_at"] for change in reversed(changes)]
        assert times == sorted(set(times))
        assert len(times) == 4


@pytest.mark.case("catalog 74")
async def test_given_a_change_then_it_bears_the_time_of_its_commit() -> None:
    async with leader() as one:
        await one.make()
        one.clock.ahead_ms += 5_000
        await one.client.post(f"{TABLES}/t/rename", json={"new_name": "u"}, headers=WAIT)
        at_ms = one.state.follower.catalog.at_ms

        versions = (await one.client.get(f"{TABLES}/u/versions")).json()["changes"]
        at = await one.client.get(f"{TABLES}?as_of={instant_text(at_ms, 'ms')}")
        before = await one.client.get(f"{TABLES}?as_of={instant_text(at_ms - 1, 'ms')}")

        assert versions[0]["committed_at"] == instant_text(at_ms, "ms")
        shown = [[table["name"] for table in answer.json()["tables"]] for answer in (before, at)]
        assert shown == [["t"], ["u"]]


@pytest.mark.case("catalog 145")
@pytest.mark.parametrize("name", ["lease_ms", "schema_lease_ms", "election_ttl_s"])
async def test_given_the_length_of_a_lease_when_put_while_it_runs_then_there_is_no_such_setting(
    name: str,
) -> None:
    async with leader(nodes=0) as one:
        listed = (await one.client.get("/v1/settings")).json()["settings"]

        answer = await one.client.put(f"/v1/settings/{name}", json={"value": 1})

        assert answer.status_code == 404
        assert not [setting for setting in listed if "lease" in setting["name"]]
