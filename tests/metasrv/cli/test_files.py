"""Files of rows: read with the table's types, and a spec inferred from what they hold."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metasrv.cli.file_faults import Dialect
from metasrv.cli.files import must_have_columns, row_file
from metasrv.cli.rows.export_rows import opened
from metasrv.cli.rows.rows_text import bound_of, entry_of, json_rows, types_of
from metasrv.sdk.control.infer import infer_spec
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import NotFound, Refused
from metasrv_base.rows.named import named_batch
from metasrv_base.wire.api.table_rules import validate_spec
from metasrv_base.wire.api.tables import IndexBody
from tests.metasrv.sdk.samples import EMPTY, ROW, TYPES, small, spec
from tests.metasrv.sdk.shapes import layout_of, table_of

KNOWN = pa.schema({"id": pa.int64(), "note": pa.string(), "at": pa.timestamp("ms", tz="UTC")})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "id,note,at\n1,007,2013-01-01T00:00:00Z\n2,,\n"),
        (
            "x.ndjson",
            '{"id": 1, "note": "007", "at": "2013-01-01T00:00:00Z"}\n{"id": 2, "note": null}\n',
        ),
    ],
)
def test_given_a_text_file_when_read_for_a_table_then_its_types_are_the_tables(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)

    with row_file(tmp_path / name, KNOWN) as found:
        rows = pa.Table.from_batches(list(found.batches), found.schema)

    assert rows.column("note").to_pylist() == ["007", None]
    assert rows.column("at").cast(KNOWN.field("at").type).null_count == 1


def test_given_parquet_when_read_then_it_says_how_many_rows_come(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": range(50_000)}), tmp_path / "x.parquet")

    with row_file(tmp_path / "x.parquet") as found:
        rows = sum(batch.num_rows for batch in found.batches)

    assert (found.rows, rows) == (50_000, 50_000)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.txt", "id\n1\n"),
        ("x.csv", None),
        ("x.parquet", "not parquet"),
        ("x.csv", "id,note\n1\n"),
        ("x.csv", "id,note\nword,a\n"),
        ("x.ndjson", '{"id": }'),
    ],
)
def test_given_a_file_that_is_not_what_it_says_then_it_is_refused(
    tmp_path: Path, name: str, text: str | None
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)

    with pytest.raises(Refused), row_file(tmp_path / name, KNOWN) as found:
        list(found.batches)


def test_given_a_schema_of_every_type_when_inferred_then_the_spec_is_right() -> None:
    arrow = layout_of(spec()).arrow

    found = infer_spec("t", arrow, ["id", "part"], 4)

    assert {one.name: one.type for one in found.columns} == {
        "id": "int64",
        "part": "string",
        **TYPES,
    }
    assert not validate_spec(found)
    assert [one.name for one in found.columns if not one.nullable] == ["id", "part"]


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (pa.uint32(), "int64"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.large_string(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.null(), "string"),
        (pa.timestamp("us"), "timestamp(us)"),
    ],
    ids=str,
)
def test_given_a_type_that_a_table_has_not_when_inferred_then_one_holds_its_values(
    type: pa.DataType, text: str
) -> None:
    found = infer_spec("t", pa.schema({"id": pa.int64(), "x": type}), ["id"])

    assert found.columns[1].type == text


@pytest.mark.parametrize("key", [[], ["wrong"]])
def test_given_no_key_of_the_file_when_inferred_then_it_is_refused(key: list[str]) -> None:
    with pytest.raises(Refused):
        infer_spec("t", KNOWN, key)


def test_given_a_list_column_when_inferred_then_it_is_refused() -> None:
    with pytest.raises(Refused):
        infer_spec("t", pa.schema({"id": pa.int64(), "x": pa.list_(pa.int8())}), ["id"])


def test_given_rows_when_shown_then_every_type_has_its_json_form() -> None:
    table = layout_of(spec())
    batch = named_batch(table, [ROW, EMPTY], fills=True)

    shown, empty = json_rows(batch, types_of(table_of(spec())))

    assert shown["price"] == "12.50"
    assert shown["raw"] == "AP8="
    assert shown["day"] == "2013-01-31"
    assert shown["milli"] == "2013-01-31T12:00:00.005Z"
    assert shown["nano"] == "2013-01-31T12:00:00.000000001Z"
    assert empty["text"] is None


@pytest.mark.parametrize(
    ("text", "values"),
    [(None, None), ("5", (5,)), ('[5, "a"]', (5, "a")), ("[5]", (5,))],
)
def test_given_a_bound_as_text_then_it_is_the_first_values_of_a_key(
    text: str | None, values: tuple[object, ...] | None
) -> None:
    assert bound_of(table_of(spec()), text, "--from") == values


def test_given_a_number_where_an_index_has_a_text_then_it_is_that_text() -> None:
    index = IndexBody(
        id=1, name="by_text", columns=("text",), unique=False, state=ElementState.PUBLIC
    )
    body = table_of(spec()).model_copy(update={"indexes": (index,)})

    assert entry_of(body, "by_text", "5", "--eq") == ("5",)


@pytest.mark.parametrize("text", ["a", '"5"', '[5, "a", 1]', "5.5", "null", "[5, null]"])
def test_given_a_bound_that_is_no_key_then_it_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        bound_of(table_of(spec()), text, "--from")


def read(path: Path, known: pa.Schema | None = None, **dialect: Any) -> pa.Table:
    with row_file(path, known, Dialect(**dialect)) as found:
        return pa.Table.from_batches(list(found.batches), found.schema)


NAMES = ["NA", "N/A", "nan", "null", "NULL", "1.#IND", "-nan", "#N/A"]


@pytest.mark.parametrize("known", [None, pa.schema({"id": pa.int64(), "note": pa.string()})])
def test_given_words_that_others_take_for_null_when_a_text_is_read_then_they_are_words(
    tmp_path: Path, known: pa.Schema | None
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,note\n" + "".join(f"{id},{name}\n" for id, name in enumerate(NAMES)))

    assert read(path, known).column("note").to_pylist() == NAMES


def test_given_empty_fields_when_read_then_they_are_null_and_quoted_ones_are_texts(
    tmp_path: Path,
) -> None:
    path, known = tmp_path / "x.csv", pa.schema({"id": pa.int64(), "note": pa.string()})
    path.write_text('id,note\n1,\n2,""\n,NA\n4,"NA"\n')

    plain, named = read(path, known), read(path, known, nulls=("NA",))

    assert plain.column("id").to_pylist() == [1, 2, None, 4]
    assert plain.column("note").to_pylist() == [None, "", "NA", "NA"]
    assert named.column("note").to_pylist() == [None, "", None, "NA"]


@pytest.mark.parametrize("known", [None, pa.schema({"id": pa.int64(), "a": pa.string()})])
def test_given_a_text_that_is_not_utf_8_when_read_then_its_line_is_named_and_what_to_say(
    tmp_path: Path, known: pa.Schema | None
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,a\n1,plain\n2,\xe9t\xe9\n")

    with pytest.raises(Refused) as told:
        read(path, known)

    assert "line 3 is not utf-8" in str(told.value.facts["reason"])
    assert "--encoding latin-1" in str(told.value.facts["reason"])
    assert read(path, known, encoding="latin-1").column("a").to_pylist() == ["plain", "été"]


def test_given_a_header_in_capitals_when_read_for_a_table_then_its_columns_are_the_tables(
    tmp_path: Path,
) -> None:
    known = pa.schema({"id": pa.int64(), "note": pa.string()})
    (tmp_path / "x.csv").write_text("ID,Note\n1,007\n")
    pq.write_table(pa.table({"ID": [1], "NOTE": ["007"]}), tmp_path / "x.parquet")

    for name in ("x.csv", "x.parquet"):
        with row_file(tmp_path / name, known) as found:
            (batch,) = found.batches
        assert batch.to_pylist() == [{"id": 1, "note": "007"}]


def test_given_an_index_that_is_not_there_when_scanned_then_the_near_one_is_named() -> None:
    body = table_of(small())
    index = IndexBody(
        id=1, name="by_note", columns=("note",), unique=False, state=ElementState.PUBLIC
    )

    with pytest.raises(NotFound) as refused:
        entry_of(body.model_copy(update={"indexes": (index,)}), "by_not", "5", "--eq")

    assert refused.value.facts["did_you_mean"] == "by_note"


@pytest.mark.parametrize(
    ("header", "delimiter", "said"),
    [
        ("id,prise", ",", "line 1: the table has no column prise; did you mean price?"),
        ("id;price", ",", "if ; stands between the fields, say --delimiter ';'"),
        ("id,zzz", ",", "the table has no column zzz; its columns: id, price"),
    ],
)
def test_given_a_header_with_a_column_of_no_table_then_the_near_one_or_the_delimiter_is_said(
    header: str, delimiter: str, said: str
) -> None:
    with pytest.raises(Refused) as refused:
        must_have_columns(
            Path("x.csv"), header.split(delimiter), ["id", "price"], Dialect(delimiter=delimiter)
        )

    assert said in str(refused.value.facts["reason"])


def test_given_columns_that_differ_in_case_alone_then_they_are_the_tables() -> None:
    must_have_columns(Path("x.parquet"), ["ID", "Price"], ["id", "price"], Dialect())


def test_given_a_pipe_or_a_link_when_rows_are_exported_then_it_stays_one(tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link.csv", tmp_path / "target.csv"
    os.mkfifo(pipe)
    target.write_text("old")
    link.symlink_to(target)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    for file in (pipe, link):
        with opened(file) as out:
            out.write(b"new")

    assert (os.read(reader, 9), pipe.is_fifo()) == (b"new", True)
    assert (link.is_symlink(), target.read_text()) == (True, "new")
    os.close(reader)
