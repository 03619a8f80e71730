"""Places in a JSON file: line and column of what a pointer names."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from metasrv.cli.errors.json_places import FILE_CHARS_MAX, file_places
from metasrv.cli.errors.places import in_words, place_of
from metasrv_base.errors import Refused
from metasrv_base.wire.problem.problems import FieldError, field_errors
from tests.metasrv.cli.answers import TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

NAMES = st.text('ab~/"\n\\é{}[],:', max_size=4)
SCALARS = st.none() | st.booleans() | st.integers() | NAMES
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def values(document: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    yield pointer, document
    members = document.items() if isinstance(document, dict) else ()
    for name, value in members:
        yield from values(value, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
    for number, value in enumerate(document if isinstance(document, list) else ()):
        yield from values(value, f"{pointer}/{number}")


@given(DOCUMENTS, st.sampled_from([None, 0, 1, 3]), st.booleans())
def test_given_any_document_then_each_value_stands_at_its_place(
    document: Any, indent: int | None, ascii: bool
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii)
    lines = text.split("\n")

    places = file_places(text, "f.json")

    assert places.keys() == {pointer for pointer, _ in values(document, "")}
    for pointer, value in values(document, ""):
        line, column = map(int, places[pointer].split(":")[1:])
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        assert json.JSONDecoder().raw_decode(rest)[0] == value


def test_given_a_field_that_is_missing_then_the_object_stands_for_it_and_it_is_named() -> None:
    places = file_places('[\n  {"op": "x"}\n]', "ops.json", "/operations")

    assert place_of("/operations/0/name", places) == "ops.json:2:3: operations[0].name"


def test_given_a_long_file_then_only_fields_are_named() -> None:
    assert file_places('"' + "x" * FILE_CHARS_MAX + '"', "f.json") == {}


def test_given_a_parameter_of_a_query_then_its_option_is_named_once() -> None:
    said = in_words("At since: expected a time, found x.", "since", {})

    assert said == "--since: expected a time, found x."


def test_given_operations_of_a_file_when_refused_then_line_and_column_are_said(
    run: Run, rest: Rest, tmp_path: Path
) -> None:
    file = tmp_path / "ops.json"
    file.write_text('[{"op": "rename_column",\n  "name": "a", "new_name": "b b"}]')
    wrong = FieldError(pointer="/operations/0/new_name", detail="is wrong")
    rest.answers["POST", f"{TABLES}/t/alter"] = Refused(errors=(wrong,))

    shown = run("table", "alter", "t", "--file", str(file), "--metasrv", rest.url, COLUMNS="400")

    assert "ops.json:2:28: operations[0].new_name: is wrong" in shown.stderr


def test_given_faults_of_a_model_then_they_are_said_in_plain_words() -> None:
    tags = {"discriminator": "'op'", "tag": "drop_colum", "expected_tags": "'add', 'drop_column'"}
    faults: list[dict[str, Any]] = [
        {"type": "missing", "loc": ("name",), "msg": "Field required"},
        {"type": "extra_forbidden", "loc": ("nam",), "msg": "Extra inputs are not permitted"},
        {"type": "union_tag_invalid", "loc": (), "msg": "Input tag", "ctx": tags},
    ]

    told = [error.detail for error in field_errors(faults, {"nam": 1})]

    assert told == [
        "a value is needed",
        "there is no such field",
        "there is no op drop_colum; did you mean drop_column? All: add, drop_column",
    ]
