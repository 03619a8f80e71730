"""/, /docs and /openapi.json of a server that leads."""

import pytest

from metasrv.api.openapi import document
from tests.metasrv.api.rig import leader
from tests.serving.pages.page_reader import check_docs, check_problems, check_start


@pytest.mark.slow
async def test_given_the_root_then_it_leads_to_every_page_for_people_and_programs() -> None:
    async with leader() as one:
        await check_start(one.client, "metasrv")


async def test_given_the_page_of_routes_then_it_loads_nothing_from_elsewhere() -> None:
    async with leader() as one:
        await check_docs(one.client)


@pytest.mark.slow
async def test_given_the_document_then_it_is_the_one_that_is_checked_in() -> None:
    async with leader() as one:
        assert (await one.client.get("/openapi.json")).json() == document()
        assert (await one.client.head("/v1/catalogs")).status_code == 200
        assert (await one.client.head("/v1/catalogs/none")).status_code == 404


async def test_given_a_problem_code_then_its_type_answers_its_page() -> None:
    async with leader() as one:
        await check_problems(one.client)
