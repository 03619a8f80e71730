"""The documents of the node protocol: complete, and as checked in."""

from pathlib import Path

import pytest

from dataplane.datanode.http.app import bare_app
from dataplane.datanode.http.documents import documents
from dataplane.datanode.http.protocol import CALLS
from metasrv_base.wire.problem.problems import KINDS

ROOT = Path(__file__).parents[4]


def test_given_the_routes_when_documented_then_each_call_says_what_it_promises() -> None:
    routes = {
        f"{method.upper()} {path}"
        for path, methods in bare_app().openapi()["paths"].items()
        for method in methods
        if path.startswith("/node/v1/")
    }

    assert routes == CALLS.keys()
    assert {code for call in CALLS.values() for code in call.errors} <= KINDS.keys()


@pytest.mark.slow
def test_given_the_documents_when_made_again_then_as_checked_in() -> None:
    for path, text in documents().items():
        assert (ROOT / path).read_text() == text
