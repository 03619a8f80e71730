"""The document of the HTTP surface says what the surface does."""

from typing import Any

from metasrv.api.openapi import document
from metasrv.api.routes.routes import ROUTERS
from metasrv_base.wire.problem.problems import KINDS


def operations() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    ]


def test_given_the_document_then_every_route_is_in_it_with_its_problems() -> None:
    assert len(operations()) == sum(len(router.routes) for router in ROUTERS)
    for name, operation in operations():
        refusals = {int(status) for status in operation["responses"]} - {200, 201, 202, 204, 304}
        assert refusals >= {400, 404, 405, 500}, name
        for status in refusals:
            response = operation["responses"][str(status)]
            assert list(response["content"]) == ["application/problem+json"], name
            codes = [part.split("`")[1] for part in response["description"].split("; ")]
            assert {KINDS[code].status for code in codes} == {status}, name


def test_given_the_document_then_nothing_in_it_is_the_frameworks_own() -> None:
    schemas = document()["components"]["schemas"]

    assert not schemas.keys() & {"HTTPValidationError", "ValidationError"}
    assert [name for name in schemas if "__" in name] == [], "two classes of one name"
    ids = [operation["operationId"] for _, operation in operations()]
    assert len(set(ids)) == len(ids)
