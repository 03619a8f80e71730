"""The document of the HTTP surface says what the surface does."""

from typing import Any

import pytest
from fastapi.routing import APIRoute

from metasrv.api import openapi
from metasrv.api.documents.documented import EVERYWHERE
from metasrv.api.openapi import document
from metasrv.api.routes.routes import ROUTERS
from metasrv.host.toolchain import checkout
from metasrv_base.wire.problem.problems import KINDS
from tests.serving.answers import resolved

PATH = checkout() / openapi.PATH


def operations() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in resolved(document())["paths"].items()
        for method, operation in methods.items()
    ]


@pytest.mark.slow
def test_given_the_document_then_every_route_is_in_it_with_its_problems() -> None:
    routes = [route for router in ROUTERS for route in router.routes]
    shown = [route for route in routes if isinstance(route, APIRoute) and route.include_in_schema]
    assert len(operations()) == len(shown)
    for name, operation in operations():
        refusals = {int(status) for status in operation["responses"]} - {200, 201, 202, 204, 304}
        assert refusals >= {400, 404, 405, 500}, name
        for status in refusals:
            response = operation["responses"][str(status)]
            assert list(response["content"]) == ["application/problem+json"], name
            codes = [part.split("`")[1] for part in response["description"].split("; ")]
            assert {KINDS[code].status for code in codes} == {status}, name


@pytest.mark.slow
def test_given_errors_of_every_route_then_the_document_says_each_of_them_once() -> None:
    text = PATH.read_text()

    for code in EVERYWHERE:
        alone = f'"description": "`{code}`: {KINDS[code].title}"'
        assert text.count(alone) <= 1, code
    assert all(code in document()["components"]["responses"] for code in ("internal", "not-found"))


@pytest.mark.slow
def test_given_the_document_then_nothing_in_it_is_the_frameworks_own() -> None:
    schemas = document()["components"]["schemas"]

    assert not schemas.keys() & {"HTTPValidationError", "ValidationError"}
    assert [name for name in schemas if "__" in name] == [], "two classes of one name"
    ids = [operation["operationId"] for _, operation in operations()]
    assert len(set(ids)) == len(ids)
