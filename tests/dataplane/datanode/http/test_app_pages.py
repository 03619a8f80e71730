"""/, /docs and /openapi.json of a datanode."""

import httpx

from dataplane.datanode.http.app import bare_app
from tests.dataplane.frontend.bench import Bench, running
from tests.serving.pages.page_reader import check_docs, check_problems, check_start


def client_of(bench: Bench) -> httpx.AsyncClient:
    transport = bench.way
    return httpx.AsyncClient(transport=transport, base_url="http://dn-1")


async def test_given_the_root_then_it_leads_to_every_page_for_people_and_programs() -> None:
    async with running() as bench, client_of(bench) as client:
        await check_start(client, "metasrv datanode")


async def test_given_the_page_of_routes_then_it_loads_nothing_from_elsewhere() -> None:
    async with running() as bench, client_of(bench) as client:
        await check_docs(client)


async def test_given_the_document_then_it_is_the_one_that_is_checked_in() -> None:
    async with running() as bench, client_of(bench) as client:
        assert (await client.get("/openapi.json")).json() == bare_app().openapi()


async def test_given_a_problem_code_then_its_type_answers_its_page() -> None:
    async with running() as bench, client_of(bench) as client:
        await check_problems(client)
