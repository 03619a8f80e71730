"""Defaults of an alter take the form of their column's type, as those of a new column do."""

import pytest

from metasrv.cli.catalog.table_words import column_operations, typed_defaults
from metasrv_base.wire.api.tables import TableBody, TableSpec
from tests.metasrv.sdk.shapes import table_of


@pytest.fixture
def body() -> TableBody:
    columns = [
        {"name": "id", "type": "int64", "nullable": False},
        {"name": "price", "type": "decimal(10,2)"},
        {"name": "note", "type": "string"},
    ]
    spec = {"name": "t", "columns": columns, "primary_key": ["id"]}
    return table_of(TableSpec.model_validate(spec))


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("price=1.50", "1.50"),
        ("note=5", "5"),
        ("note=null", None),
        ("id=5", 5),
        ("cost=1.5", "1.5"),
        ("seen=2024-01-01", "2024-01-01"),
        ("nowhere=1.5", "1.5"),
    ],
)
def test_given_a_default_as_text_then_it_has_the_form_of_its_column(
    body: TableBody, text: str, default: object
) -> None:
    operations = column_operations(["price:cost"], ["seen:date"], None, None, [text])

    assert typed_defaults(operations, 0, body)[-1]["default"] == default


def test_given_a_column_of_a_new_type_when_it_gets_a_default_then_it_is_of_that_type(
    body: TableBody,
) -> None:
    operations = column_operations(None, None, None, ["note:int32"], ["note=5"])

    assert typed_defaults(operations, 0, body)[-1]["default"] == 5


def test_given_operations_of_a_file_then_their_defaults_stay_as_they_are(body: TableBody) -> None:
    of_file = [{"op": "set_default", "name": "note", "default": 5}]

    assert typed_defaults(of_file, 1, body) == of_file
