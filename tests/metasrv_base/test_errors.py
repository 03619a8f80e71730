"""An error as text: a sentence, then its code and the facts that the sentence leaves out."""

import pytest

from metasrv_base.errors import Conflict, MetaError, NotFound, Refused, Unavailable

SHOWN = [
    (
        NotFound("table-not-found", detail="There is no table main.public.t.", name="t"),
        "There is no table main.public.t. (table-not-found, name='t')",
    ),
    (
        Refused("invalid-request", pointer="/keys", expected="a list of keys", found="5"),
        "Invalid request at /keys: expected a list of keys, found 5. (invalid-request)",
    ),
    (
        Unavailable("not-ready", what="x", reason="it hangs"),
        "Not ready: it hangs. (not-ready, what='x')",
    ),
    (Conflict("row-missing"), "Row missing. (row-missing)"),
]


@pytest.mark.parametrize(("error", "text"), SHOWN)
def test_given_an_error_when_shown_then_it_is_a_sentence_and_its_code(
    error: MetaError, text: str
) -> None:
    assert str(error) == text
