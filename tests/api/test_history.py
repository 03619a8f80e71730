"""What was done to a table, when it is asked for later: by table, by time, with the statement."""

from typing import Any

import pytest

from keys.records import ProcedureHistory, ProcedureHistoryKey
from keys.txn import snapshot
from tests.api.rig import DEADLINE_MS, TABLES, Server, beat, leader
from tests.api.test_procedure_list import HOUR_MS, all_pages, text_of

WAIT = {"prefer": "wait=10"}


async def add_column(one: Server, table: str, name: str) -> dict[str, Any]:
    """The body that was sent."""
    body = {"operations": [{"op": "add_column", "column": {"name": name, "type": "int64"}}]}
    answer = await one.client.post(f"{TABLES}/{table}/alter", json=body, headers=WAIT)
    assert answer.status_code == 200, answer.text
    return body


async def history(one: Server, id: str) -> ProcedureHistory:
    key = ProcedureHistoryKey(id)
    return (await snapshot(one.kv, key, deadline_ms=DEADLINE_MS)).must(key)


@pytest.mark.case("online 73")
async def test_given_changes_when_asked_for_by_table_and_time_then_their_statements_are_kept() -> (
    None
):
    async with leader(nodes=1) as one:
        table, other = [(await one.make(name))["id"] for name in ("t", "u")]
        await add_column(one, "t", "first")
        one.clock.ahead_ms += HOUR_MS
        one.term.nodes.heartbeat(beat("dn-1", 2))
        since = text_of(one.clock.wall_ms() - HOUR_MS // 2)
        body = await add_column(one, "t", "second")
        await add_column(one, "u", "second")

        of_table = await all_pages(one, resource=f"table:{table}")
        of_other = await all_pages(one, resource=f"table:{other}", since=since)
        (late,) = await all_pages(one, resource=f"table:{table}", since=since)
        early = await all_pages(one, resource=f"table:{table}", until=since)

        assert of_table == [late, *early]
        assert (len(early), len(of_other)) == (2, 1)
        told = await history(one, late)
        path = f"{TABLES}/t/alter"
        assert told.last.client.statement == {"method": "POST", "path": path, "body": body}
