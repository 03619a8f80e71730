"""Errors in the words of the command line: options, near names, advice without HTTP."""

import re
from pathlib import Path

import pytest

from metasrv.cli.errors.places import field_of, place_of
from metasrv.cli.errors.problem_words import words
from metasrv_base.errors import NotFound, Refused
from metasrv_base.wire.problem.problems import KINDS, FieldError
from tests.metasrv.cli.answers import TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

HTTP = re.compile(
    r"/v1/|Prefer|Idempotency|Authorization|Content-|`[a-z]+_[a-z_]+`|`errors`|`[a-z_]+="
)
SETTINGS = frozenset({"`cluster_tokens_file`", "`information_schema`"})


def refusal(*pointers: str) -> Refused:
    return Refused(errors=tuple(FieldError(pointer=one, detail="is wrong") for one in pointers))


def test_given_a_wrong_column_when_created_then_the_option_is_named(run: Run, rest: Rest) -> None:
    rest.answers[("POST", TABLES)] = refusal("/columns/1/name", "/primary_key/0", "/options/a.b")
    flags = ["--column", "id:int64", "--column", "é:string", "--key", "id", "--option", "a.b=c"]

    shown = run("table", "create", "t", *flags, "--metasrv", rest.url)

    assert shown.exit_code == 1
    for said in ("--column é:string: is wrong", "--key id: is wrong", "--option a.b=c: is wrong"):
        assert said in shown.stderr
    assert "/columns" not in shown.stderr


def test_given_a_wrong_operation_when_altered_then_its_option_or_its_place_in_the_file(
    run: Run, rest: Rest, tmp_path: Path
) -> None:
    file = tmp_path / "ops.json"
    file.write_text('[{"op": "drop_column", "name": "x"}]')
    rest.answers[("PATCH", f"{TABLES}/t")] = refusal("/operations/0/name", "/operations/1/name")
    rest.answers[("POST", f"{TABLES}/t/alter")] = refusal(
        "/operations/0/name", "/operations/1/name"
    )

    shown = run(
        *["table", "alter", "t", "--file", str(file), "--drop-not-null", "y"],
        *["--metasrv", rest.url],
    )

    assert "operations[0].name: is wrong" in shown.stderr
    assert "--drop-not-null y: is wrong" in shown.stderr


def test_given_a_file_that_is_no_json_then_line_and_column_are_said(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "t.json"
    file.write_text('{"name": "t",\n "columns": [}')

    shown = run("table", "create", "--file", str(file), "--metasrv", "127.0.0.1:1", COLUMNS="400")

    assert shown.exit_code == 2
    assert "t.json:2:14" in shown.stderr


def test_given_a_name_that_is_nearly_right_then_it_is_suggested(run: Run, rest: Rest) -> None:
    rest.answers[("GET", f"{TABLES}/fligths")] = NotFound(
        "table-not-found", name="main.public.fligths", did_you_mean="flights"
    )

    shown = run("table", "get", "fligths", "--metasrv", rest.url)

    assert "did you mean flights?" in shown.stderr
    assert "metasrv table list" in shown.stderr


@pytest.mark.parametrize("code", KINDS)
def test_given_any_problem_then_its_advice_speaks_of_no_http(code: str) -> None:
    error = KINDS[code].error(code, detail="It is so.", status=1)

    advice = " ".join(line for line in words(error) if line.startswith("  to do: "))

    assert advice
    assert set(HTTP.findall(advice)) <= SETTINGS


def test_given_pointers_then_the_nearest_place_or_the_path_of_the_field() -> None:
    places = {"/columns/1": "--column b:int64"}

    assert place_of("/columns/1/type", places) == "--column b:int64"
    assert place_of("/columns/10/type", places) == "columns[10].type"
    assert place_of("--from/id", places) == "--from/id"
    assert field_of("/a~1b/0") == "a/b[0]"
