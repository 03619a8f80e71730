"""Words of a command as values of a row or a key."""

import pytest
from typer import BadParameter

from metasrv.cli.rows.row_values import key_of, row_of
from metasrv_base.wire.api.tables import TableBody

COLUMNS = [
    {"id": 1, "name": "id", "type": "int64", "nullable": False, "state": "public"},
    {"id": 2, "name": "word", "type": "string", "nullable": False, "state": "public"},
]


@pytest.fixture
def body() -> TableBody:
    facts = {"id": 1024, "catalog": "main", "schema": "public", "name": "t", "columns": COLUMNS}
    facts |= {"primary_key": ["id", "word"], "version": 1, "schema_version": 1, "regions": []}
    facts |= {"catalog_version": 2, "created_at": "2026-01-01T00:00:00Z"}
    return TableBody.model_validate(facts)


def test_given_words_in_order_then_they_are_the_key_and_text_may_hold_a_sign(
    body: TableBody,
) -> None:
    assert key_of(body, ["7", "word=x"]) == (7, "word=x")


def test_given_a_name_before_a_value_of_a_key_then_it_is_refused_with_the_value(
    body: TableBody,
) -> None:
    with pytest.raises(BadParameter, match="id=7: a key has no names; give 7"):
        key_of(body, ["id=7", "x"])


@pytest.mark.parametrize(("word", "example"), [("7", "id=7"), ('{"id":7}', "note=hello")])
def test_given_a_word_without_a_name_then_the_refusal_shows_one_that_is_right(
    body: TableBody, word: str, example: str
) -> None:
    with pytest.raises(BadParameter, match=f"as {example}"):
        row_of(body, [word])
