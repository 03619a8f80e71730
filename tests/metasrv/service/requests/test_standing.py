"""The same key and request: the same procedure, whatever has happened since."""

import asyncio

import pytest

from keys.store.kv import Request, TxnAnswer
from tests.metasrv.api.rig import TABLES, leader, spec

KEY = {"Idempotency-Key": "k-1"}
WAIT = {"Prefer": "wait=10"}


@pytest.mark.case("catalog 149")
async def test_given_a_key_when_repeated_then_the_first_procedure_is_answered() -> None:
    async with leader() as one:
        first = await one.client.post(TABLES, json=spec(), headers=KEY | WAIT)
        version = one.version

        again = await one.client.post(TABLES, json=spec(), headers=KEY | WAIT)

        assert (first.status_code, again.status_code) == (201, 201)
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json() == first.json()
        assert one.version == version


async def test_given_a_key_when_keys_are_in_another_order_then_it_is_the_same_request() -> None:
    async with leader() as one:
        await one.client.post(TABLES, json=spec(), headers=KEY | WAIT)

        again = await one.client.post(
            TABLES, json=dict(reversed(spec().items())), headers=KEY | WAIT
        )

        assert again.headers["idempotency-replayed"] == "true"


@pytest.mark.case("input 53")
async def test_given_a_key_when_another_request_uses_it_then_422() -> None:
    """Row 53."""
    async with leader() as one:
        await one.client.post(TABLES, json=spec(), headers=KEY | WAIT)
        version = one.version

        other = await one.client.post(TABLES, json=spec("u"), headers=KEY | WAIT)
        elsewhere = await one.client.delete(f"{TABLES}/t", headers=KEY | WAIT)

        for answer in (other, elsewhere):
            assert (answer.status_code, answer.json()["code"]) == (422, "idempotency-key-reused")
        assert one.version == version


async def test_given_a_known_key_when_the_body_is_wrong_then_the_body_is_judged_first() -> None:
    async with leader() as one:
        await one.client.post(TABLES, json=spec(), headers=KEY | WAIT)

        wrong = await one.client.post(TABLES, json=spec("1abc"), headers=KEY | WAIT)

        assert wrong.json()["code"] == "invalid-identifier"


@pytest.mark.case("input 62")
async def test_given_a_drop_when_repeated_with_its_key_then_204_again() -> None:
    async with leader() as one:
        await one.make()
        first = await one.client.delete(f"{TABLES}/t", headers=KEY | WAIT)

        again = await one.client.delete(f"{TABLES}/t", headers=KEY | WAIT)
        without = await one.client.delete(f"{TABLES}/t", headers=WAIT)

        assert (first.status_code, again.status_code) == (204, 204)
        assert without.status_code == 404


@pytest.mark.case("greptime 87")
async def test_given_no_key_when_a_table_exists_then_409_and_if_not_exists_200() -> None:
    async with leader() as one:
        made = await one.make()

        again = await one.client.post(TABLES, json=spec(), headers=WAIT)
        fine = await one.client.post(TABLES, json=spec(if_not_exists=True), headers=WAIT)

        assert (again.status_code, again.json()["code"]) == (409, "already-exists")
        assert fine.status_code == 200
        assert fine.json()["id"] == made["id"]


async def test_given_a_failed_create_when_repeated_with_its_key_then_the_same_error() -> None:
    """An undone create is over: a repetition does not try it again."""
    async with leader() as one:
        one.nodes.gate.clear()
        started = await one.client.post(TABLES, json=spec(), headers=KEY)
        cancelled = await one.client.post(f"{started.headers['location']}/cancel")
        assert cancelled.status_code == 202, cancelled.text
        one.nodes.gate.set()

        again = await one.client.post(TABLES, json=spec(), headers=KEY | WAIT)

        assert (again.status_code, again.json()["code"]) == (409, "action-not-allowed")
        assert again.json()["procedure_id"] == started.json()["id"]


async def test_given_creates_at_once_if_not_exists_then_one_201_and_200_for_the_others() -> None:
    async with leader() as one:
        body = spec(if_not_exists=True)

        found = await asyncio.gather(
            *(one.client.post(TABLES, json=body, headers=WAIT) for _ in range(4))
        )

        assert sorted(answer.status_code for answer in found) == [200, 200, 200, 201]
        assert len({answer.json()["id"] for answer in found}) == 1
        assert all("catalog-version" in answer.headers for answer in found)


async def test_given_a_new_key_when_created_then_the_store_is_written_twice_and_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The submission itself compares the absence of the key; the step knows its snapshot."""
    async with leader() as one:
        await one.make("first")
        sent: list[Request] = []
        sound = one.kv.txn

        async def counted(request: Request, *, deadline_ms: int) -> TxnAnswer:
            sent.append(request)
            return await sound(request, deadline_ms=deadline_ms)

        monkeypatch.setattr(one.kv, "txn", counted)

        await one.client.post(TABLES, json=spec(), headers=KEY | WAIT)

        assert [bool(request.writes) for request in sent] == [True, True]


PLACES = {
    "catalog": ("/v1/catalogs", {"name": "acme"}),
    "schema": ("/v1/catalogs/main/schemas", {"name": "sales"}),
    "table": (TABLES, spec("u")),
    "index": (f"{TABLES}/t/indexes", {"name": "i", "columns": ["carrier"]}),
}


@pytest.mark.parametrize("what", PLACES)
@pytest.mark.parametrize("wait", [WAIT, {}], ids=["waits", "does not wait"])
async def test_given_what_stands_already_when_its_key_is_repeated_then_the_same_answer(
    what: str, wait: dict[str, str]
) -> None:
    async with leader() as one:
        await one.make("t")
        path, body = PLACES[what]
        body = {**body, "if_not_exists": True}
        assert (await one.client.post(path, json=body, headers=WAIT)).status_code == 201
        version = one.version

        first = await one.client.post(path, json=body, headers=KEY | wait)
        await one.client.delete(f"{path}/{body['name']}", headers=WAIT)
        again = await one.client.post(path, json=body, headers=KEY | wait)
        other = await one.client.post(path, json={**body, "name": "x"}, headers=KEY | wait)

        assert (first.status_code, again.status_code) == (200, 200), again.text
        assert again.json() == first.json()
        assert again.headers["idempotency-replayed"] == "true"
        assert "idempotency-replayed" not in first.headers
        assert again.headers["catalog-version"] == first.headers["catalog-version"] == str(version)
        assert (other.status_code, other.json()["code"]) == (422, "idempotency-key-reused")


async def test_given_what_stands_already_when_asked_at_once_with_one_key_then_it_is_kept_once() -> (
    None
):
    async with leader() as one:
        await one.make("t")
        body = spec("t", if_not_exists=True)

        found = await asyncio.gather(
            *(one.client.post(TABLES, json=body, headers=KEY | WAIT) for _ in range(4))
        )

        assert {answer.status_code for answer in found} == {200}
        assert len({answer.json()["id"] for answer in found}) == 1
        listed = (await one.client.get("/v1/procedures")).json()["procedures"]
        assert len(listed) == 2


async def test_given_what_stands_already_when_asked_without_a_key_then_nothing_is_stored() -> None:
    async with leader() as one:
        await one.make("t")
        revision = one.kv.revision

        await one.client.post(TABLES, json=spec("t", if_not_exists=True), headers=WAIT)
        dry = await one.client.post(
            f"{TABLES}?dry_run=true", json=spec("t", if_not_exists=True), headers=KEY
        )

        assert dry.status_code == 200
        assert one.kv.revision == revision
