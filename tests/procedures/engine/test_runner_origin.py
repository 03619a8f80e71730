"""The log says who made each version, also once nothing else does."""

import json
from typing import Any

from keys.model.log import CatalogUpdate, CatalogUpdateKey
from keys.model.records import ProcedureHistoryKey
from keys.value import decode
from metasrv.leadership.retention import Retention
from tests.metasrv.api.rig import TABLES, Server, leader, spec

WAIT = {"Prefer": "wait=10"}


def log_of(one: Server) -> list[CatalogUpdate]:
    start, end = CatalogUpdateKey.under()
    stored = [item for item in one.kv.dump() if start <= item.key < end]
    return [decode(CatalogUpdate, item.value, key=item.key.decode()) for item in stored]


def statements(updates: list[CatalogUpdate]) -> list[dict[str, Any] | None]:
    texts = [update.origin.statement if update.origin else None for update in updates]
    return [None if text is None else json.loads(text) for text in texts]


async def test_given_a_change_then_its_versions_name_principal_request_and_procedure() -> None:
    async with leader() as one:
        made = await one.client.post(
            TABLES, json=spec(), headers=WAIT | {"X-Request-Id": "request-1"}
        )
        assert made.status_code == 201
        alter = {"operations": [{"op": "add_column", "column": {"name": "n", "type": "int64"}}]}
        await one.client.post(f"{TABLES}/t/alter", json=alter, headers=WAIT)

        created, *altered = log_of(one)[1:]

        assert created.origin is not None
        assert (created.origin.by, created.origin.request_id) == ("anonymous", "request-1")
        assert statements([created]) == [{"method": "POST", "path": TABLES, "body": spec()}]
        assert len(altered) > 1
        assert len({update.procedure for update in altered}) == 1
        first = {"method": "POST", "path": f"{TABLES}/t/alter", "body": alter}
        assert statements(altered) == [first] + [None] * (len(altered) - 1)
        assert {update.origin and update.origin.by for update in altered} == {"anonymous"}


async def test_given_a_query_then_it_is_a_part_of_the_statement() -> None:
    async with leader() as one:
        await one.make("t")
        await one.client.delete("/v1/catalogs/main/schemas/public?cascade=true", headers=WAIT)

        first = statements(log_of(one)[2:])[0]

        assert first is not None
        assert (first["path"], first["query"]) == (
            "/v1/catalogs/main/schemas/public",
            "cascade=true",
        )


async def test_given_histories_that_have_expired_then_the_log_still_says_who() -> None:
    async with leader() as one:
        await one.make("t")
        before = log_of(one)
        one.clock.ahead_ms += one.term.settings.values.history_retention_ms + 3_600_000

        await Retention(one.term).tidy(one.clock.wall_ms())

        start, end = ProcedureHistoryKey.under()
        assert not [item for item in one.kv.dump() if start <= item.key < end]
        assert log_of(one) == before
        assert before[-1].origin is not None


async def test_given_a_token_then_its_holder_is_in_the_log_and_the_token_is_not() -> None:
    async with leader() as one:
        secret = "a-secret-of-a-client"
        headers = WAIT | {"Authorization": f"Bearer {secret}", "Idempotency-Key": secret}

        await one.client.post(TABLES, json=spec(), headers=headers)

        start, end = CatalogUpdateKey.under()
        stored = [item.value for item in one.kv.dump() if start <= item.key < end]
        assert len(stored) == 2
        assert not [value for value in stored if secret.encode() in value]


async def test_given_a_drop_by_the_service_itself_then_it_is_named() -> None:
    async with leader() as one:
        await one.make("t")
        await one.client.delete(f"{TABLES}/t", headers=WAIT)
        purge = {"table": "main.public.t", "reason": "tidy"}
        await one.client.post("/v1/purges", json=purge, headers=WAIT)

        *_, purged = log_of(one)

        assert [entry.op for entry in purged.entries] == ["table.purged"]
        assert purged.origin is not None
        assert purged.origin.statement is not None
        assert json.loads(purged.origin.statement)["body"]["reason"] == "tidy"
