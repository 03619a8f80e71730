"""The document of a frontend: every route with all that it reads, and as checked in."""

from pathlib import Path

from dataplane.frontend.http.api import BY_ID, BY_NAME
from dataplane.frontend.http.app import bare_app, document, documents
from dataplane.frontend.http.documents import ROUTES
from dataplane.frontend.statements.parameters import PARAMETERS
from metasrv_base.wire.language.row_sql import RowStatementResult
from metasrv_base.wire.language.sql import StatementResult

ROOT = Path(__file__).parents[4]


def test_given_the_routes_of_rows_when_documented_then_none_is_left_out() -> None:
    routes = {
        (method, path.removeprefix(base))
        for base in (BY_NAME, BY_ID)
        for path, operations in bare_app().openapi()["paths"].items()
        if path.startswith(base + "/")
        for method in operations
    }

    assert routes == ROUTES.keys()
    assert {name for asked in ROUTES.values() for name in asked.query} == PARAMETERS.keys()


def test_given_a_route_then_its_query_its_bodies_and_its_forms_are_told() -> None:
    paths = document()["paths"]
    write, read = paths[f"{BY_NAME}/rows"]["post"], paths[f"{BY_ID}/scan"]["get"]

    names = [one["name"] for one in read["parameters"]]
    assert names[:1] == ["table_id"]
    assert {"page_token", "columns", "region", "apart"} <= set(names)
    assert len(write["requestBody"]["content"]) == 2
    assert len(read["responses"]["200"]["content"]) == 3


def test_given_the_document_when_made_again_then_as_checked_in() -> None:
    for path, text in documents().items():
        assert (ROOT / path).read_text() == text


def test_given_the_document_then_no_model_of_metasrv_alone_is_in_it() -> None:
    """Clients are generated from it: plans and procedures are no answers of a frontend."""
    schemas = set(document()["components"]["schemas"])

    assert "RowStatementResult" in schemas
    assert not {name for name in schemas if "Plan" in name or "Procedure" in name}


def test_given_a_result_of_a_frontend_then_it_is_one_of_metasrv_without_its_changes() -> None:
    """The SDK reads both as `StatementResult`."""
    assert set(RowStatementResult.model_fields) == set(StatementResult.model_fields) - {
        "applied",
        "procedure_id",
        "procedure",
        "plan",
        "is_cut",
    }
