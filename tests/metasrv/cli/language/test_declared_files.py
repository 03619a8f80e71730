"""Files of `metasrv apply`: what they declare together, and where each value and fault is."""

from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from metasrv.cli.errors.places import place_of
from metasrv.cli.language.declared_files import declared_files
from metasrv.cli.language.yaml_file import documents, yaml_text

YAML = """\
catalogs:
- name: main
  schemas:
  - name: shop
    tables:
    - name: orders   # sales
      columns:
      - {name: id, type: int64, nullable: false}
      - {name: day, type: date, default: 2013-01-31}
      - {name: no, type: string, default: "5"}
      primary_key: [id]
"""
JSON = """{"catalogs": [{"name": "main", "schemas": [
  {"name": "shop", "tables": [{"name": "more"}]}]}],
 "placements": [{"name": "hot"}]}"""


def test_given_files_of_each_kind_then_they_are_one_state_with_places(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(YAML)
    (tmp_path / "a.json").write_text(JSON)
    (tmp_path / "c.sql").write_text("create schema s")
    (tmp_path / "notes.txt").write_text("not read")

    files = declared_files([tmp_path], "main", "shop")

    (catalog,) = files.desired["catalogs"]
    (schema,) = catalog["schemas"]
    assert [table["name"] for table in schema["tables"]] == ["more", "orders"]
    columns = schema["tables"][1]["columns"]
    assert (columns[1]["default"], columns[2]["name"], columns[2]["default"]) == (
        "2013-01-31",
        "no",
        "5",
    )
    assert files.desired["placements"] == [{"name": "hot"}]
    sql = {"name": str(tmp_path / "c.sql"), "text": "create schema s"}
    assert files.sql == [{**sql, "catalog": "main", "schema": "shop"}]
    inside = "/catalogs/0/schemas/0/tables"
    assert files[f"{inside}/1/columns/1/type"] == f"{tmp_path}/b.yaml:9:27"
    assert files[f"/desired{inside}/0"] == f"{tmp_path}/a.json:2:31"
    assert place_of(f"{inside}/1/columns/1/nothing", files).startswith(f"{tmp_path}/b.yaml:9:9")
    assert place_of("/sql/0", files) == str(tmp_path / "c.sql")


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("catalogs: [", ":", "did not find"),
        ("catalogs:\n- name: a\n  name: b", ":3:3", "twice"),
        ("catalogs:\n- nam: a", ":2:3", "`name`"),
        ("catalogs: main", ":1:11", "a list"),
        ("tables: []", ":1:9", "no part of a desired state"),
        ("- name: main", ":1:1", "an object"),
        (
            "catalogs:\n- {name: a, options: {comment: x}}\n- {name: a, options: {}}",
            ":3:22",
            "says",
        ),
        ("a: &b [*b]", "", ""),
    ],
)
def test_given_a_file_with_a_fault_then_its_line_and_column_are_named(
    tmp_path: Path, text: str, place: str, reason: str
) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(typer.BadParameter) as fault:
        declared_files([file], "main", "public")
    assert f"{file}{place}" in fault.value.message
    assert reason in fault.value.message


texts = st.text(st.characters(codec="utf-8"), max_size=8)
numbers_as_texts = st.from_regex(
    r"[-+]?[0-9]{0,3}\.?[0-9]{0,3}([eE][-+]?[0-9]{1,3})?", fullmatch=True
)
scalars = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    *(texts, numbers_as_texts, st.sampled_from(("no", "1_0", "~", "0o7", "1:30", "09", "1e5"))),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)


@given(values)
def test_given_a_value_when_written_as_yaml_then_it_is_read_back(value: Any) -> None:
    (document,) = documents(yaml_text({"it": value}))
    assert document.value == {"it": value}
