"""SQL by the SDK, at a real server: one text, sent again from where it stopped."""

import httpx
import pytest

from metasrv.sdk.client import AsyncClient
from metasrv.sdk.sql.run_sql import PATH
from metasrv_base.errors import NotFound, Refused
from tests.metasrv.api.rig import InProcess, Server, leader

MAKE = "create table t (id bigint primary key, day date)"


class Unwaiting(InProcess):
    """Text is answered at once, however long the client waits for its end."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == PATH:
            request.headers["prefer"] = "wait=0"
        return await super().handle_async_request(request)


def _sdk(one: Server, way: type[InProcess] = InProcess) -> AsyncClient:
    return AsyncClient([one.state.facts.url], transport=way(one.app))


async def test_given_statements_then_the_result_of_each_is_returned() -> None:
    async with leader() as one, _sdk(one) as client:
        made, shown = await client.sql(f"{MAKE}; show tables")

        assert made.applied
        assert made.catalog_version == one.version
        assert [row[0] for row in shown.rows] == ["t"]


async def test_given_a_server_that_does_not_wait_then_the_text_goes_on_where_it_stopped() -> None:
    """Each answer is 202 with the change under way: the next request begins behind it."""
    text = f"{MAKE};\nalter table t add price int;\ncreate index i on t (day); drop table t"
    async with leader() as one, _sdk(one, Unwaiting) as client:
        seen: list[str] = []

        done = await client.sql(text, on_progress=lambda each: seen.append(each.kind))

        assert [result.applied for result in done] == [True] * 4
        assert [result.offset for result in done] == [
            text.index(word) for word in ("create table", "alter", "create index", "drop")
        ]
        assert {"create_table", "drop_table"} <= set(seen)


async def test_given_the_same_key_then_a_text_is_carried_out_once() -> None:
    async with leader() as one, _sdk(one) as client:
        first = await client.sql(f"{MAKE}; drop table t", idempotency_key="k")
        again = await client.sql(f"{MAKE}; drop table t", idempotency_key="k")

        assert again == first


async def test_given_a_statement_that_fails_then_its_place_is_that_in_the_whole_text() -> None:
    async with leader() as one, _sdk(one, Unwaiting) as client:
        with pytest.raises(NotFound) as missing:
            await client.sql(f"{MAKE};\ndrop table u")

        assert (missing.value.facts["line"], missing.value.facts["column"]) == (2, 12)
        assert missing.value.facts["statement"] == 2  # of the whole text, not of what was sent
        with pytest.raises(Refused) as unreadable:
            await client.sql("drop tabel t")
        assert unreadable.value.code == "invalid-sql"
