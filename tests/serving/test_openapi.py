"""Error answers of a document become references where several operations share one."""

from copy import deepcopy
from typing import Any

from serving.openapi import share_answers
from tests.serving.answers import resolved

MISSING = {"description": "`not-found`: There is no such thing", "content": {}}
BUSY = {"description": "`no-leader`: Nobody leads; `not-ready`: Not ready", "content": {}}
ANY = {"description": "Any refusal", "content": {}}


def document(**answers: dict[str, Any]) -> dict[str, Any]:
    """One operation for each of *answers*."""
    paths = {f"/{name}": {"get": {"responses": given}} for name, given in answers.items()}
    return deepcopy({"paths": paths, "components": {}})


def test_given_answers_of_several_routes_when_shared_then_each_stands_once_and_none_is_lost() -> (
    None
):
    made = document(
        a={"200": {"description": "Done"}, "404": MISSING, "503": BUSY},
        b={"200": {"description": "Done"}, "404": MISSING, "default": ANY},
        c={"503": BUSY, "default": ANY, "409": {"description": "`object-locked`: It is"}},
    )
    before = deepcopy(made)

    shared = share_answers(made)

    assert set(shared["components"]["responses"]) == {"not-found", "no-leader.not-ready", "problem"}
    assert shared["paths"]["/c"]["get"]["responses"]["409"] == {
        "description": "`object-locked`: It is"
    }
    assert shared["paths"]["/a"]["get"]["responses"]["200"] == {"description": "Done"}
    assert resolved(shared) == before


def test_given_a_shared_document_when_shared_again_then_nothing_changes() -> None:
    once = share_answers(document(a={"404": MISSING}, b={"404": MISSING}))

    assert share_answers(deepcopy(once)) == once
