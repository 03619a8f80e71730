"""`metasrv sql`: where its text comes from, and how results and faults are shown."""

import json
from pathlib import Path

import pytest

from metasrv_base.errors import Refused
from metasrv_base.wire.language.sql import StatementResult, with_results
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

PATH = ("POST", "/v1/sql")
SHOWN = {
    "results": [
        {"offset": 0, "applied": True, "catalog_version": 7, "procedure_id": "p"},
        {"offset": 9, "columns": ["table", "id"], "rows": [["t", "5"]], "catalog_version": 7},
    ]
}


def test_given_a_file_when_run_then_its_results_are_shown(
    run: Run, rest: Rest, tmp_path: Path
) -> None:
    rest.answers[PATH] = (200, SHOWN)
    file = tmp_path / "a.sql"
    file.write_text("drop table t; show tables")

    done = run("sql", str(file), "--metasrv", rest.url, "--schema", "hr")

    assert done.exit_code == 0, done.output
    assert done.stdout == "table  id\nt      5\n1 change made, at version 7\n"
    (asked,) = rest.asked
    assert asked.body == {"text": "drop table t; show tables", "catalog": "main", "schema": "hr"}


def test_given_a_statement_on_the_command_line_then_it_is_sent(run: Run, rest: Rest) -> None:
    rest.answers[PATH] = (200, {"results": []})

    done = run("sql", "-c", "show tables", "--metasrv", rest.url)

    assert done.exit_code == 0, done.output
    assert rest.asked[0].body["text"] == "show tables"


def test_given_statements_that_read_then_they_are_shown_as_sql(run: Run, rest: Rest) -> None:
    columns, row = ["table", "statements"], ["main.public.t", "CREATE TABLE t (\n)"]
    rest.answers[PATH] = (200, {"results": [{"offset": 0, "columns": columns, "rows": [row]}]})

    done = run("sql", "-c", "show create table t", "--metasrv", rest.url)

    assert done.stdout == "CREATE TABLE t (\n);\n"


def test_given_several_results_then_an_empty_line_stands_between_them(run: Run, rest: Rest) -> None:
    one = {"offset": 0, "columns": ["a"], "rows": [["1"]]}
    change = {"offset": 9, "applied": True, "catalog_version": 7}
    rest.answers[PATH] = (200, {"results": [one, change, one]})

    done = run("sql", "-c", "show tables; drop table t; show tables", "--metasrv", rest.url)

    assert done.stdout == "a\n1\n\na\n1\n1 change made, at version 7\n"


def test_given_a_refusal_then_the_place_is_marked_in_its_line(run: Run, rest: Rest) -> None:
    rest.answers[PATH] = Refused(
        "invalid-sql",
        line=2,
        column=8,
        found="tabel",
        expected="TABLE",
        excerpt="\tcreate tabel t\n\t       ^",
        did_you_mean="TABLE",
    )

    refused = run("sql", "-c", "x", "--metasrv", rest.url)

    assert refused.exit_code == 1
    lines = refused.output.splitlines()
    shown = next(line for line in lines if "create tabel" in line)
    mark = lines[lines.index(shown) + 1]
    assert shown[mark.index("^") :] == "tabel t"
    assert "did you mean TABLE?" in refused.output
    assert "nothing was changed" in refused.output


@pytest.mark.parametrize("code", ["invalid-request", "invalid-sql"])
def test_given_a_refusal_of_a_later_statement_then_it_says_what_is_done(
    run: Run, rest: Rest, code: str
) -> None:
    facts = {"line": 1, "column": 15, "excerpt": "drop table a; drop table b\n^", "statement": 2}
    rest.answers[PATH] = Refused(code, expected="another", **facts)

    refused = run("sql", "-c", "x", "--metasrv", rest.url)

    assert "it is statement 2; those before it are done" in refused.output
    assert "nothing was changed" not in refused.output


@pytest.mark.parametrize(
    ("done", "words"),
    [(1, "the first one is done"), (3, "the first 3 are done"), (4, "those before it are done")],
)
def test_given_a_refusal_of_several_statements_then_it_says_how_many_before_them_are_done(
    run: Run, rest: Rest, done: int, words: str
) -> None:
    facts = {"line": 1, "column": 1, "excerpt": "drop\n^", "statement": 5, "statements_done": done}
    rest.answers[PATH] = Refused("invalid-sql", expected="another", **facts)

    refused = run("sql", "-c", "x", "--metasrv", rest.url)

    assert f"it is statement 5; {words}" in refused.output
    assert "correct the text, and send what is left of it" in refused.output


@pytest.mark.parametrize("arguments", [["/nowhere/a.sql"], ["/nowhere/a.sql", "-c", "x"]])
def test_given_no_text_then_nothing_is_sent(arguments: list[str], run: Run, rest: Rest) -> None:
    refused = run("sql", *arguments, "--metasrv", rest.url)

    assert refused.exit_code == 2
    assert rest.asked == []


BEFORE = StatementResult(offset=0, columns=("table",), rows=(("t",),))
FAULT = with_results(Refused("invalid-request", line=1, column=14, statement=2), [BEFORE])


def test_given_a_statement_that_fails_then_the_results_before_it_are_shown(
    run: Run, rest: Rest
) -> None:
    rest.answers[PATH] = FAULT

    refused = run("sql", "-c", "show tables; drop table u", "--metasrv", rest.url)

    assert refused.exit_code == 1
    assert refused.stdout == "table\nt\n"
    assert refused.output.index("table\nt\n") < refused.output.index("error: ")


def test_given_json_and_a_statement_that_fails_then_stdout_is_the_list_before_it(
    run: Run, rest: Rest
) -> None:
    rest.answers[PATH] = FAULT

    refused = run("sql", "-c", "show tables; drop table u", "--json", "--metasrv", rest.url)

    assert refused.exit_code == 1
    assert [each["rows"] for each in json.loads(refused.stdout)] == [[["t"]]]
    problem = json.loads(refused.stderr)
    assert (problem["code"], "results" in problem) == ("invalid-request", False)


def test_given_json_and_a_first_statement_that_fails_then_stdout_is_empty(
    run: Run, rest: Rest
) -> None:
    rest.answers[PATH] = Refused("invalid-request", line=1, column=1, statement=1)

    refused = run("sql", "-c", "drop table u", "--json", "--metasrv", rest.url)

    assert (refused.exit_code, refused.stdout) == (1, "")


@pytest.mark.parametrize(
    ("applied", "summary"),
    [
        ([True, True], "2 changes made, at version 7"),
        ([True, False], "1 of 2 changes made, at version 7"),
        ([False], "nothing was changed"),
    ],
)
def test_given_changes_of_which_some_had_nothing_to_do_then_the_last_line_counts_them(
    run: Run, rest: Rest, applied: list[bool], summary: str
) -> None:
    changes = [
        {"offset": 0, "applied": did, "catalog_version": 7 if did else None} for did in applied
    ]
    rest.answers[PATH] = (200, {"results": changes})

    done = run("sql", "-c", "drop table if exists t; drop table if exists u", "--metasrv", rest.url)

    assert done.stdout == f"{summary}\n"
