"""A store without space: what was not sent is refused as such, what was is not known, until there
is room again."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest
from httpx import Response

from keys.store.kv import Put, Request
from keys.store.memory import MemoryKv
from metasrv_base.errors import Unknown
from tests.metasrv.api.held_up import end_of
from tests.metasrv.api.rig import DEADLINE_MS, TABLES, Server, leader, registration, spec

QUOTA_BYTES = 1 << 20
KEY = {"Idempotency-Key": "k"}


async def fill(one: Server) -> None:
    """The store's alarm is raised by a put that it has no room for."""
    too_much = Put(b"filler", bytes(QUOTA_BYTES))
    with suppress(Unknown):
        await one.kv.txn(Request(writes=(too_much,)), deadline_ms=DEADLINE_MS)


async def asked_again(one: Server) -> Response:
    """The same request, once the committer has found that there is room."""
    async with asyncio.timeout(240):
        while True:
            answer = await one.client.post(TABLES, json=spec(), headers=KEY)
            if answer.status_code != 507:
                return answer
            await one.term.manager.changed(deadline_ms=50)


@pytest.mark.case("input 79-80")
async def test_given_no_space_when_changed_then_507_unless_it_was_sent_and_room_heals_all() -> None:
    async with leader(make_kv=partial(MemoryKv, quota_bytes=QUOTA_BYTES)) as one:
        await one.make("held")
        await fill(one)
        one.state.facts = replace(one.state.facts, store_deadline_ms=10)

        sent = await one.client.post(TABLES, json=spec(), headers=KEY)

        assert (sent.status_code, sent.json()["code"]) == (504, "outcome-unknown")
        for method, path, body in (
            ("POST", TABLES, spec("other")),
            ("DELETE", f"{TABLES}/held", None),
            ("PUT", "/v1/cluster/maintenance", {"enabled": True}),
            ("POST", "/v1/nodes/dn-1/cordon", {"reason": "full"}),
            ("POST", "/v1/failovers", {"reason": "full", "node_id": "dn-1", "force": True}),
            (
                "POST",
                "/internal/v1/nodes/dn-9/register",
                registration("dn-9").model_dump(mode="json"),
            ),
        ):
            refused = await one.client.request(method, path, json=body)
            assert (refused.status_code, refused.json()["code"]) == (507, "storage-full"), path
            assert refused.headers["retry-after"] == "60"
        assert (await one.client.get(f"{TABLES}/held")).status_code == 200

        one.state.facts = replace(one.state.facts, store_deadline_ms=DEADLINE_MS)
        one.kv.disarm()
        again = await asked_again(one)
        ended = await end_of(one, f"/v1/procedures/{again.json()['id']}")

        assert (again.status_code, ended["state"]) == (202, "succeeded")
        listed = (await one.client.get(TABLES)).json()["tables"]
        assert [table["name"] for table in listed] == ["held", "t"]
