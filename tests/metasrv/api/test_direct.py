"""The short way and the long one: what is plain is answered alike by both."""

import httpx
import pytest

from keys.catalog.catalog import Catalog
from metasrv.service.state.table_json_cache import KEPT_MAX, TableTexts
from tests.metasrv.api.rig import TABLES, Server, leader, spec

T = f"{TABLES}/t"
LONG = "?min_version=0"  # says nothing, but is a query: it goes the long way


@pytest.mark.parametrize("path", [T, f"{T}/route"])
async def test_given_a_table_when_read_with_and_without_a_query_then_both_answers_are_equal(
    path: str,
) -> None:
    async with leader() as server:
        await server.make("t", partition={"by": "hash", "columns": ["id"], "count": 4})

        short, long = [await server.client.get(path + query) for query in ("", LONG)]

        assert short.status_code == 200
        assert short.content == long.content
        assert _lasting(short.headers) == _lasting(long.headers)


@pytest.mark.parametrize("path", [f"{TABLES}/missing", f"{TABLES}/1t", f"{TABLES}/missing/route"])
async def test_given_no_such_table_when_read_then_both_ways_refuse_it_alike(path: str) -> None:
    async with leader() as server:
        short, long = [await server.client.get(path + query) for query in ("", LONG)]

        assert short.status_code in (404, 422)
        assert _said(short.json()) == _said(long.json())


async def test_given_a_known_etag_when_read_the_short_way_then_304() -> None:
    async with leader() as server:
        await server.make("t")
        etag = (await server.client.get(T)).headers["etag"]

        again = await server.client.get(T, headers={"If-None-Match": etag})

        assert (again.status_code, again.content) == (304, b"")


async def test_given_a_table_that_was_read_when_it_or_another_changes_then_the_text_follows() -> (
    None
):
    async with leader() as server:
        made = await server.make("t")
        assert (await server.client.get(T)).json() == made

        await server.make("other")
        operations = [{"op": "set_options", "options": {"app.catalog_version": "0"}}]
        await server.client.post(
            f"{T}/alter", json={"operations": operations}, headers={"Prefer": "wait=10"}
        )
        found = (await server.client.get(T)).json()

        assert found["catalog_version"] == server.version == made["catalog_version"] + 2
        assert found["options"] == {"app.catalog_version": "0"}
        assert found == (await server.client.get(T + LONG)).json()


async def test_given_another_address_when_read_then_the_text_has_it() -> None:
    async with leader() as server:
        await server.make("t")
        table = server.state.follower.catalog.table("main", "public", "t")
        node = table.route.region_routes[0].leader
        texts, catalog = TableTexts(), server.state.follower.catalog

        first = texts.of(table, catalog, {node: "http://a:1"})
        second = texts.of(table, catalog, {node: "http://b:1"})

        assert b"http://a:1" in first
        assert second == first.replace(b"http://a:1", b"http://b:1")


async def test_given_more_tables_than_are_kept_when_read_then_the_oldest_text_is_forgotten() -> (
    None
):
    async with leader() as server:
        await server.make("t")
        table = server.state.follower.catalog.table("main", "public", "t")
        texts, addresses = TableTexts(), {"dn-1": "http://a:1"}
        for number in range(KEPT_MAX + 1):
            info = table.info.model_copy(update={"table_id": number})
            texts.of(type(table)(info, table.route, 1), Catalog(), addresses)

        assert len(texts._kept) == KEPT_MAX
        assert 0 not in texts._kept


async def test_given_a_heartbeat_that_is_not_right_when_sent_then_its_faults_are_listed() -> None:
    async with leader() as server:
        node = _node(server)

        answer = await server.client.put(
            f"/internal/v1/nodes/{node}/heartbeat", json={"node_id": node, "sequence": "1"}
        )

        assert answer.status_code == 422
        pointers = {error["pointer"] for error in answer.json()["errors"]}
        assert {"/sequence", "/regions", "/cluster_id"} <= pointers


async def test_given_a_change_of_a_path_that_is_read_directly_when_asked_then_it_is_made() -> None:
    async with leader() as server:
        await server.make("t")

        gone = await server.client.delete(T, headers={"Prefer": "wait=10"})
        again = await server.client.post(TABLES, json=spec("t"), headers={"Prefer": "wait=10"})

        assert (gone.status_code, again.status_code) == (204, 201)


def _node(server: Server) -> str:
    return server.term.nodes.registered()[0].node_id


def _lasting(headers: httpx.Headers) -> dict[str, str]:
    """Without the id of the one request."""
    return {name: text for name, text in headers.items() if name != "x-request-id"}


def _said(problem: dict[str, object]) -> dict[str, object]:
    return {name: said for name, said in problem.items() if name != "request_id"}
