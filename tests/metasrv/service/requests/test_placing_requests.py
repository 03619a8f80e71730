"""Changes of placements under If-Match: nobody's change is lost to one that was computed before."""

import asyncio
from typing import Any

import pytest

from metasrv_base.wire.api.placing.placements import PlacementBody
from tests.metasrv.api.rig import Server, leader

WAIT = {"prefer": "wait=10"}
PLACEMENTS = "/v1/placements"
FAST = f"{PLACEMENTS}/fast"
SPACE = "/v1/catalogs/main/tablespaces/space"
SPEC = {"name": "fast", "node_filter": {"zones": ["a"], "labels": []}}


async def made(one: Server) -> str:
    """Makes the placement. Returns its ETag."""
    answer = await one.client.post(PLACEMENTS, json=SPEC, headers=WAIT)
    assert answer.status_code == 201, answer.text
    etag: str = answer.headers["etag"]
    return etag


async def alter(one: Server, etag: str, /, **patch: Any) -> Any:
    return await one.client.patch(FAST, json=patch, headers={**WAIT, "if-match": etag})


async def test_given_if_match_when_the_placement_was_altered_then_412_and_nothing_is_lost() -> None:
    async with leader() as one:
        first = await made(one)
        done = await alter(one, first, comment="c")
        late = await alter(one, first, replicas=3, comment="d")
        found = await one.client.get(FAST)
        again = await alter(one, found.headers["etag"], replicas=3)

        number = found.json()["id"]
        assert first == f'"p{number}-1"'
        assert PlacementBody.model_validate(found.json()).etag == found.headers["etag"]
        assert done.headers["etag"] == found.headers["etag"] == f'"p{number}-2"'
        assert (late.status_code, late.json()["code"]) == (412, "version-mismatch")
        assert f'"p{number}-2\\"' in late.text
        assert (found.json()["replicas"], found.json()["comment"]) == (1, "c")
        assert (again.json()["replicas"], again.json()["version"]) == (3, 3)


async def test_given_two_alters_of_one_version_when_sent_at_once_then_one_is_refused() -> None:
    """Both are accepted before either is done: the second is refused under its lock."""
    async with leader() as one:
        etag = await made(one)

        answers = await asyncio.gather(alter(one, etag, comment="x"), alter(one, etag, replicas=2))

        assert sorted(answer.status_code for answer in answers) == [200, 412]
        (lost,) = [answer.json() for answer in answers if answer.status_code == 412]
        assert lost["code"] == "version-mismatch"
        assert "procedure_id" in lost
        body = (await one.client.get(FAST)).json()
        assert body["version"] == 2
        assert (body["comment"], body["replicas"]) in [("x", 1), (None, 2)]


@pytest.mark.parametrize("change", ["rename", "drop"])
async def test_given_if_match_when_renamed_or_dropped_then_it_is_compared_too(change: str) -> None:
    async with leader() as one:
        stale = await made(one)
        current = (await alter(one, stale, comment="c")).headers["etag"]

        async def changed(etag: str) -> Any:
            headers = {**WAIT, "if-match": etag}
            if change == "drop":
                return await one.client.delete(FAST, headers=headers)
            return await one.client.post(f"{FAST}/rename", json={"new_name": "f"}, headers=headers)

        late, done = await changed(stale), await changed(current)

        assert (late.status_code, late.json()["code"]) == (412, "version-mismatch")
        assert done.status_code == (204 if change == "drop" else 200)


async def test_given_an_etag_of_something_else_then_412_and_nothing_has_changed() -> None:
    async with leader() as one:
        etag = await made(one)
        spec = {"name": "space"}
        await one.client.post(SPACE.rpartition("/")[0], json=spec, headers=WAIT)
        before = one.version
        number = etag.partition("-")[0][2:]

        answers = [await alter(one, tag, comment="c") for tag in (f'"t{number}-1"', '"p1024-1"')]
        answers += [await alter(one, '"abc"', comment="c")]
        answers += [
            await one.client.patch(
                SPACE, json={"comment": "c"}, headers={**WAIT, "if-match": '"p1024-1"'}
            ),
            await one.client.patch(
                f"{PLACEMENTS}/x",
                json={"comment": "c", "if_exists": True},
                headers={**WAIT, "if-match": etag},
            ),
        ]

        assert {(one.status_code, one.json()["code"]) for one in answers} == {
            (412, "version-mismatch")
        }
        assert one.version == before


async def test_given_the_same_request_with_if_match_twice_then_the_second_is_answered_alike() -> (
    None
):
    """A client that lost the answer sends it again: its own change is no other's."""
    async with leader() as one:
        etag = await made(one)
        headers = {**WAIT, "if-match": etag, "idempotency-key": "k"}

        first = await one.client.patch(FAST, json={"comment": "c"}, headers=headers)
        again = await one.client.patch(FAST, json={"comment": "c"}, headers=headers)

        assert (first.status_code, again.status_code) == (200, 200)
        assert again.headers["idempotency-replayed"] == "true"


async def test_given_a_dry_run_with_a_stale_etag_then_it_is_refused_as_the_change_would_be() -> (
    None
):
    async with leader() as one:
        stale = await made(one)
        await alter(one, stale, comment="c")

        answer = await one.client.patch(
            f"{FAST}?dry_run=true", json={"comment": "d"}, headers={"if-match": stale}
        )

        assert (answer.status_code, answer.json()["code"]) == (412, "version-mismatch")
