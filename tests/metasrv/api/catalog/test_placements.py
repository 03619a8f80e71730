"""Placements over HTTP: made, altered, renamed and dropped, with their refusals."""

import json
from typing import Any

import pytest

from keys.commit.change import change
from keys.model.log import TableCreated
from keys.model.placing.placements import PLACEMENTS_MAX, PlacementInfo
from keys.model.tables import TableInfoKey, TableNameKey, TableRouteKey
from keys.value import decode, encode
from metasrv.service.ddl import ddl_placements
from tests.keys.commit.changes import absent
from tests.metasrv.api.rig import Server, leader
from tests.procedures.harness.tables import table_info, table_route

WAIT = {"prefer": "wait=10"}
PLACEMENTS = "/v1/placements"
FAST = f"{PLACEMENTS}/fast"
HOT = {"name": "hot", "engine": "lsm", "options": {}}
SPEC = {
    "name": "fast",
    "partitions": 4,
    "storage_profiles": [HOT],
    "node_filter": {"zones": ["a"], "labels": [{"label": "disk", "in": ["ssd", "nvme"]}]},
    "comment": "for dashboards",
}


async def made(one: Server, **more: Any) -> dict[str, Any]:
    answer = await one.client.post(PLACEMENTS, json={**SPEC, **more}, headers=WAIT)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def faults(answer: Any) -> dict[str, str]:
    assert answer.status_code == 422, answer.text
    return {fault["pointer"]: fault["code"] for fault in answer.json()["errors"]}


@pytest.mark.case("catalog 99")
async def test_given_a_new_cluster_then_the_default_placement_is_there() -> None:
    async with leader() as one:
        body = (await one.client.get(f"{PLACEMENTS}/default")).json()
        plain = await one.client.post(PLACEMENTS, json={"name": "p"}, headers=WAIT)

        own = {"name", "id", "version", "created_at", "catalog_version"}
        shape = {key: value for key, value in body.items() if key not in own}
        assert shape == {key: value for key, value in plain.json().items() if key not in own}
        assert shape == {
            "replicas": 1,
            "min_in_sync": None,
            "partitions": 1,
            "storage_profiles": [{"name": "default", "engine": "lsm", "options": {}}],
            "node_filter": {"zones": [], "labels": []},
            "preferred_zones": [],
            "comment": None,
        }


async def test_given_a_spec_when_made_then_it_is_read_back_and_can_be_made_again() -> None:
    async with leader() as one:
        body = await made(one)
        read = await one.client.get(FAST)
        same = {**SPEC, "if_not_exists": True}
        stands = await one.client.post(PLACEMENTS, json=same, headers=WAIT)
        other = {**same, "partitions": 5}
        refused = await one.client.post(PLACEMENTS, json=other, headers=WAIT)
        again = await one.client.post(PLACEMENTS, json=SPEC, headers=WAIT)
        listed = (await one.client.get(f"{PLACEMENTS}?page_size=1")).json()
        token = listed["next_page_token"]
        rest = (await one.client.get(f"{PLACEMENTS}?page_size=1&page_token={token}")).json()

        condition = {"label": "disk", "equals": None, "in": ["ssd", "nvme"]}
        assert body["node_filter"] == {"zones": ["a"], "labels": [condition]}
        assert (body["id"], body["version"], body["partitions"]) == (1025, 1, 4)
        assert read.json() == body
        assert (stands.status_code, stands.json()["id"]) == (200, body["id"])
        assert (refused.status_code, refused.json()["code"]) == (409, "schema-conflict")
        assert (again.status_code, again.json()["code"]) == (409, "already-exists")
        assert [each["name"] for each in listed["placements"]] == ["default"]
        assert [each["name"] for each in rest["placements"]] == ["fast"]


async def test_given_an_etag_when_another_placement_changes_then_it_stays() -> None:
    async with leader() as one:
        await made(one)
        etag = (await one.client.get(FAST)).headers["etag"]
        await made(one, name="other")
        same = await one.client.get(FAST, headers={"if-none-match": etag})
        await one.client.patch(FAST, json={"comment": "c"}, headers=WAIT)
        changed = await one.client.get(FAST, headers={"if-none-match": etag})

        assert (same.status_code, changed.status_code) == (304, 200)


async def test_given_changes_when_altered_then_what_is_not_named_stays() -> None:
    async with leader() as one:
        before = await made(one)
        cold = {"name": "cold", "engine": "memory", "options": {}}
        patch = {"storage_profiles": [cold, HOT], "node_filter": {"zones": [], "labels": []}}
        answer = await one.client.patch(FAST, json=patch, headers=WAIT)
        version = one.version
        same = await one.client.patch(FAST, json={**patch, "partitions": 4}, headers=WAIT)
        bare = await one.client.patch(FAST, json={"comment": None}, headers=WAIT)
        less = await one.client.patch(FAST, json={"storage_profiles": [HOT]}, headers=WAIT)

        changed = {"version": 2, "catalog_version": version}
        assert answer.json() == {**before, **patch, **changed}
        assert (same.status_code, same.json()["version"], bare.json()["version"]) == (200, 2, 3)
        assert (bare.json()["comment"], one.version) == (None, version + 2)
        assert less.json()["storage_profiles"] == [HOT]


async def test_given_preferred_zones_when_altered_then_they_stay_within_the_filter() -> None:
    async with leader() as one:
        await made(one, node_filter={"zones": ["a", "b", "c"]}, preferred_zones=["b", "a"])
        named = (await one.client.get(FAST)).json()["preferred_zones"]
        outside = await one.client.patch(FAST, json={"preferred_zones": ["c", "d"]}, headers=WAIT)
        smaller = {"node_filter": {"zones": ["a"]}}
        left_out = await one.client.patch(FAST, json=smaller, headers=WAIT)
        both = {**smaller, "preferred_zones": ["a"]}
        taken = await one.client.patch(FAST, json=both, headers=WAIT)
        free = {"node_filter": {}, "preferred_zones": ["far"]}
        anywhere = await one.client.patch(FAST, json=free, headers=WAIT)
        none = await one.client.patch(FAST, json={"preferred_zones": []}, headers=WAIT)

        assert named == ["b", "a"]
        assert faults(outside) == {"/preferred_zones/1": "invalid-request"}
        assert faults(left_out) == {"/preferred_zones/0": "invalid-request"}
        detail = left_out.json()["errors"][0]["detail"]
        assert detail == "b is none of the zones of the node filter: a"
        assert taken.json()["preferred_zones"] == ["a"]
        assert anywhere.json()["preferred_zones"] == ["far"]
        assert none.json()["preferred_zones"] == []


async def test_given_preferred_zones_then_the_record_is_in_the_format_that_has_them() -> None:
    async with leader() as one:
        await made(one, name="plain")
        await made(one, name="safe", replicas=3, min_in_sync=3)
        await made(one, preferred_zones=["a"])
        placements = one.state.follower.catalog.placing.placements
        records = [encode(placements[name]) for name in ("plain", "safe", "fast")]

        assert [json.loads(record)["format"] for record in records] == [1, 2, 3]
        assert [b"preferred_zones" in record for record in records] == [False, False, True]
        for name, record in zip(("plain", "safe", "fast"), records, strict=True):
            assert decode(PlacementInfo, record, key=name) == placements[name]


@pytest.mark.case("catalog 103")
async def test_given_what_cannot_be_altered_when_altered_then_refused() -> None:
    async with leader() as one:
        await made(one)
        partitions = await one.client.patch(FAST, json={"partitions": 5}, headers=WAIT)
        engine = {"storage_profiles": [{**HOT, "engine": "memory"}]}
        profile = await one.client.patch(FAST, json=engine, headers=WAIT)
        replicas = await one.client.patch(FAST, json={"replicas": 16}, headers=WAIT)
        default = {"storage_profiles": [HOT]}
        last = await one.client.patch(f"{PLACEMENTS}/default", json=default, headers=WAIT)

        assert faults(partitions) == {"/partitions": "invalid-request"}
        assert faults(profile) == {"/storage_profiles/0": "invalid-request"}
        assert faults(replicas) == {"/replicas": "invalid-request"}
        assert (last.status_code, last.json()["code"]) == (409, "object-in-use")


@pytest.mark.parametrize(
    ("wrong", "pointer", "code"),
    [
        ({"name": "__x"}, "/name", "reserved-name"),
        ({"name": "a b"}, "/name", "invalid-identifier"),
        ({"partitions": 0}, "/partitions", "invalid-request"),
        ({"partitions": 70_000}, "/partitions", "invalid-request"),
        ({"replicas": 0}, "/replicas", "invalid-request"),
        ({"replicas": 16}, "/replicas", "invalid-request"),
        ({"replicas": 2, "min_in_sync": 3}, "/min_in_sync", "invalid-request"),
        ({"storage_profiles": []}, "/storage_profiles", "invalid-request"),
        ({"storage_profiles": None}, "/storage_profiles", "invalid-request"),
        ({"storage_profiles": [HOT, HOT]}, "/storage_profiles/1/name", "invalid-request"),
        ({"storage_profiles": [{**HOT, "name": ""}]}, "/storage_profiles/0/name", ""),
        ({"storage_profiles": [{**HOT, "engine": "rocks"}]}, "/storage_profiles/0/engine", ""),
        ({"node_filter": "$..*"}, "/node_filter", "invalid-request"),
        ({"node_filter": {"regions": []}}, "/node_filter/regions", "invalid-request"),
        ({"node_filter": {"zones": [""]}}, "/node_filter/zones/0", "invalid-request"),
        ({"node_filter": {"zones": ["a", "a"]}}, "/node_filter/zones/1", "invalid-request"),
        ({"preferred_zones": [""]}, "/preferred_zones/0", "invalid-request"),
        ({"preferred_zones": ["a", "a"]}, "/preferred_zones/1", "invalid-request"),
        ({"preferred_zones": ["a", "b"]}, "/preferred_zones/1", "invalid-request"),
        ({"preferred_zones": "a"}, "/preferred_zones", "invalid-request"),
        ({"node_filter": {"labels": [{"label": "d"}]}}, "/node_filter/labels/0", ""),
        (
            {"node_filter": {"labels": [{"label": "d", "equals": "a", "in": ["b"]}]}},
            "/node_filter/labels/0",
            "",
        ),
        ({"node_filter": {"labels": [{"label": "d", "in": []}]}}, "/node_filter/labels/0/in", ""),
        (
            {"node_filter": {"labels": [{"label": "-", "equals": "a"}]}},
            "/node_filter/labels/0/label",
            "",
        ),
        (
            {"node_filter": {"labels": [{"label": "d", "equals": "a b"}]}},
            "/node_filter/labels/0/equals",
            "",
        ),
        (
            {"node_filter": {"labels": [{"label": "d", "in": ["a", "a"]}]}},
            "/node_filter/labels/0/in/1",
            "",
        ),
        (
            {
                "node_filter": {
                    "labels": [{"label": "d", "equals": "a"}, {"label": "d", "equals": "b"}]
                }
            },
            "/node_filter/labels/1/label",
            "",
        ),
        ({"expression": "1=1"}, "/expression", "invalid-request"),
    ],
)
@pytest.mark.case("catalog 100")
async def test_given_a_wrong_spec_when_made_then_the_fault_is_pointed_at(
    wrong: dict[str, Any], pointer: str, code: str
) -> None:
    async with leader() as one:
        answer = await one.client.post(PLACEMENTS, json={**SPEC, **wrong}, headers=WAIT)

        found = faults(answer)
        assert pointer in found, answer.text
        assert code in ("", found[pointer])
        assert one.version == 1


@pytest.mark.case("catalog 106")
async def test_given_a_rename_then_the_id_stays_and_the_old_name_is_free() -> None:
    async with leader() as one:
        body = await made(one)
        renamed = await one.client.post(f"{FAST}/rename", json={"new_name": "slow"}, headers=WAIT)
        other = await made(one)
        taken = await one.client.post(f"{FAST}/rename", json={"new_name": "slow"}, headers=WAIT)
        gone = await one.client.post(
            f"{PLACEMENTS}/nope/rename", json={"new_name": "x"}, headers=WAIT
        )
        default = await one.client.post(
            f"{PLACEMENTS}/default/rename", json={"new_name": "x"}, headers=WAIT
        )

        assert (renamed.status_code, renamed.json()["id"]) == (200, body["id"])
        assert (renamed.json()["name"], renamed.json()["version"]) == ("slow", 2)
        assert other["id"] != body["id"]
        assert (taken.status_code, taken.json()["code"]) == (409, "already-exists")
        assert (gone.status_code, gone.json()["code"]) == (404, "not-found")
        assert (default.status_code, default.json()["code"]) == (409, "object-in-use")


@pytest.mark.case("catalog 104")
async def test_given_a_placement_in_use_or_the_default_when_dropped_then_refused_with_users() -> (
    None
):
    async with leader() as one:
        body = await made(one)
        await use(one, body["id"])
        before = one.version
        used = await one.client.delete(FAST, headers=WAIT)
        profiles = {"storage_profiles": [{**HOT, "name": "cold"}]}
        less = await one.client.patch(FAST, json=profiles, headers=WAIT)
        batched = await one.client.post(
            "/v1/batch", json={"commands": [{"drop_placement": {"placement": "fast"}}]}
        )
        default = await one.client.delete(f"{PLACEMENTS}/default", headers=WAIT)
        renamed = await one.client.post(f"{FAST}/rename", json={"new_name": "slow"}, headers=WAIT)

        for refused in (used, less, batched, default):
            assert (refused.status_code, refused.json()["code"]) == (409, "object-in-use")
        assert used.json()["facts"]["used_by"] == ["main.public.t"]
        assert (renamed.status_code, one.version) == (200, before + 1)


async def use(one: Server, placement_id: int) -> None:
    """A table of the placement, as a create of a table will write it."""
    info = table_info(2048, "t", 1)
    info = info.model_copy(
        update={"format": 2, "placement_id": placement_id, "storage_profile": "hot"}
    )
    keys = (TableInfoKey(2048), TableRouteKey(2048), TableNameKey("main", "public", "t"))
    entry = TableCreated(info=info, route=table_route(2048, ("dn-1",)))
    await one.term.committer.commit(change(absent(*keys), entry))


@pytest.mark.case("catalog 108")
async def test_given_the_default_placement_when_set_to_what_it_is_then_no_version_is_made() -> None:
    async with leader() as one:
        before = one.version
        body = (await one.client.get(f"{PLACEMENTS}/default")).json()
        fields = ("partitions", "replicas", "storage_profiles", "node_filter", "comment")
        patch = {field: body[field] for field in fields}
        same = await one.client.patch(f"{PLACEMENTS}/default", json=patch, headers=WAIT)

        assert (same.status_code, same.json()["version"], one.version) == (200, 1, before)


@pytest.mark.case("catalog 107")
async def test_given_a_drop_and_a_create_then_the_new_one_has_another_id() -> None:
    async with leader() as one:
        first = await made(one)
        dropped = await one.client.delete(FAST, headers=WAIT)
        before = f"version:{one.version - 1}"
        second = await made(one)
        past = await one.client.get(FAST, params={"as_of": before})
        changes = (await one.client.get("/v1/catalog/versions")).json()["changes"]

        assert dropped.status_code == 204
        assert second["id"] > first["id"]
        assert past.json()["id"] == first["id"]
        texts = [change["text"] for change in changes[:3]]
        assert texts == [
            "create placement fast",
            "drop placement fast",
            "create placement fast",
        ]


async def test_given_no_placement_when_changed_then_404_and_with_if_exists_a_miss() -> None:
    async with leader() as one:
        await made(one)
        missing = await one.client.get(f"{PLACEMENTS}/fats")
        dropped = await one.client.delete(f"{PLACEMENTS}/fats", headers=WAIT)
        missed = [
            await one.client.delete(f"{PLACEMENTS}/fats?if_exists=true", headers=WAIT),
            await one.client.patch(
                f"{PLACEMENTS}/fats", json={"comment": "c", "if_exists": True}, headers=WAIT
            ),
            await one.client.post(
                f"{PLACEMENTS}/fats/rename",
                json={"new_name": "x", "if_exists": True},
                headers=WAIT,
            ),
        ]

        assert (missing.status_code, missing.json()["did_you_mean"]) == (404, "fast")
        assert dropped.status_code == 404
        assert {answer.status_code for answer in missed} == {204}
        assert {answer.headers["catalog-applied"] for answer in missed} == {"false"}


async def test_given_a_dry_run_then_the_plan_is_told_and_nothing_is_changed() -> None:
    async with leader() as one:
        await made(one)
        before = one.version
        plans = [
            await one.client.post(f"{PLACEMENTS}?dry_run=true", json={**SPEC, "name": "p"}),
            await one.client.patch(f"{FAST}?dry_run=true", json={"comment": "c"}),
            await one.client.delete(f"{FAST}?dry_run=true"),
        ]

        kinds = [plan.json()["kind"] for plan in plans]
        assert kinds == ["create_placement", "alter_placement", "drop_placement"]
        assert one.version == before


async def test_given_one_key_when_sent_twice_then_it_is_made_once() -> None:
    async with leader() as one:
        headers = {**WAIT, "idempotency-key": "k"}
        first = await one.client.post(PLACEMENTS, json=SPEC, headers=headers)
        again = await one.client.post(PLACEMENTS, json=SPEC, headers=headers)

        assert (first.status_code, again.status_code) == (201, 201)
        assert again.headers["idempotency-replayed"] == "true"
        assert first.json() == again.json()


async def test_given_as_many_as_there_may_be_when_one_more_is_made_then_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert PLACEMENTS_MAX == 1_000
    monkeypatch.setattr(ddl_placements, "PLACEMENTS_MAX", 2)
    async with leader() as one:
        await made(one)
        answer = await one.client.post(PLACEMENTS, json={"name": "p"}, headers=WAIT)

        assert (answer.status_code, answer.json()["code"]) == (409, "too-many-objects")
