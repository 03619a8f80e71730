"""`metasrv import --create`: types are inferred and shown, or given."""

import json
from pathlib import Path

import pytest
import typer

from metasrv.cli.catalog.column_text import named_types
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

KEY = ("--create", "--key", "id", "--dry-run")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("id,code,price\n1,007,1.5\n2,008,2.25\n")
    return path


def test_given_a_file_when_a_table_is_to_be_created_then_its_types_are_shown(
    run: Run, rest: Rest, file: Path
) -> None:
    shown = run("import", "t", str(file), *KEY, METASRV_URL=rest.url)

    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert lines[1:4] == [
        ["id", "int64", "no", "key", "the", "file"],
        ["code", "int64", "yes", "-", "the", "file"],
        ["price", "float64", "yes", "-", "the", "file"],
    ]
    assert "2 rows can be loaded into t" in shown.stdout


def test_given_types_when_a_table_is_to_be_created_then_it_has_them(
    run: Run, rest: Rest, file: Path
) -> None:
    types = ["--types", "code:string, price:decimal(10,2)"]

    shown = run("import", "t", str(file), *KEY, *types, METASRV_URL=rest.url)
    as_json = run("import", "t", str(file), *KEY, *types, "--json", METASRV_URL=rest.url)

    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert lines[2:4] == [
        ["code", "string", "yes", "-", "--types"],
        ["price", "decimal(10,2)", "yes", "-", "--types"],
    ]
    columns = json.loads(as_json.stderr)["columns"]
    assert [column["type"] for column in columns] == ["int64", "string", "decimal(10,2)"]


def test_given_a_type_that_a_value_does_not_have_then_file_line_and_column_are_named(
    run: Run, rest: Rest, file: Path
) -> None:
    shown = run("import", "t", str(file), *KEY, "--types", "price:int64", METASRV_URL=rest.url)

    assert shown.exit_code == 1
    assert str(file) in shown.stderr
    assert "line 2, column price: '1.5' is" in shown.stderr
    assert "--create, its types" in shown.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*KEY, "--types", "prise:int64"), "did you mean price"),
        ((*KEY, "--types", "price:number"), "there is no type number"),
        (("--types", "price:int64"), "--types goes with --create only"),
    ],
)
def test_given_types_that_make_no_sense_then_the_exit_code_is_2(
    run: Run, rest: Rest, file: Path, words: tuple[str, ...], said: str
) -> None:
    shown = run("import", "t", str(file), *words, METASRV_URL=rest.url)

    assert shown.exit_code == 2
    assert said in " ".join(shown.stderr.replace("│", " ").split())


def test_given_types_with_commas_inside_then_each_column_has_its_own() -> None:
    given = named_types("a:decimal(10, 2),b : int64 ,c:timestamp(us)", "--types")

    assert given == {"a": "decimal(10,2)", "b": "int64", "c": "timestamp(us)"}


@pytest.mark.parametrize("text", ["", "a", ":int64", "a:int64,", "a:int64,a:string", "a:x"])
def test_given_a_list_that_is_none_then_it_is_wrong_usage(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        named_types(text, "--types")
