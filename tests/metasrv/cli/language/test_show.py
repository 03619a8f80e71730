"""`metasrv show`: what it asks for, and its forms."""

import json
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest
import typer

from metasrv.cli.complete import view_columns, view_conditions, view_names
from metasrv.cli.language import show
from metasrv.cli.output import show_table
from metasrv_base.errors import Refused
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

VIEWS = "/v1/information-schema"
PATH = ("GET", f"{VIEWS}/tables")
COLUMNS = ["table_name", "table_comment", "is_done", "version"]
ROWS: list[list[Any]] = [["a", None, True, 1], ['b "x"', "x, y", False, 2]]
PAGE: dict[str, Any] = {"view": "tables", "columns": COLUMNS, "rows": ROWS, "catalog_version": 7}
LISTED = {
    "views": [
        {
            "name": "tables",
            "meaning": "Tables.",
            "columns": [{"name": "table_name", "type": "string", "meaning": "Its name."}],
            "of_leader": False,
            "as_of": True,
        }
    ]
}


def query(rest: Rest) -> dict[str, list[str]]:
    return parse_qs(urlsplit(rest.asked[-1].path).query)


def test_given_a_view_then_it_is_a_table_and_conditions_are_sent(run: Run, rest: Rest) -> None:
    rest.answers[PATH] = (200, PAGE)
    options = ("--where", "version > 0", "--columns", "table_name,version", "--as-of", "7")

    done = run("show", "tables", *options, "--limit", "2", "--metasrv", rest.url)

    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "table_name  table_comment  is_done  version",
        "a           -              true     1",
        'b "x"       x, y           false    2',
    ]
    assert query(rest) == {
        "where": ["version > 0"],
        "columns": ["table_name,version"],
        "as_of": ["version:7"],
        "page_size": ["3"],
    }


def test_given_more_rows_than_are_shown_then_it_says_so(
    run: Run, rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(show, "TABLE_ROWS", 1)
    rest.answers[PATH] = (200, PAGE)

    done = run("show", "tables", "--metasrv", rest.url)

    assert done.stdout.splitlines()[-1].startswith("there are more than these 1 rows")
    assert len(done.stdout.splitlines()) == 3


def test_given_forms_for_programs_then_they_have_all_rows(run: Run, rest: Rest) -> None:
    rest.answers[PATH] = (200, PAGE)
    where = ("--metasrv", rest.url)

    as_json = run("show", "tables", "--json", *where)
    as_csv = run("show", "tables", "--format", "csv", *where)
    lines = run("show", "tables", "--format", "ndjson", *where)

    objects = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
    assert json.loads(as_json.stdout) == objects
    assert [json.loads(line) for line in lines.stdout.splitlines()] == objects
    assert as_csv.stdout.splitlines() == [
        "table_name,table_comment,is_done,version",
        "a,,true,1",
        '"b ""x""","x, y",false,2',
    ]


def test_given_a_pipe_when_watched_then_it_is_shown_once(run: Run, rest: Rest) -> None:
    rest.answers[PATH] = (200, PAGE)

    done = run("show", "tables", "--watch", "--every", "0.2", "--metasrv", rest.url)

    assert (done.exit_code, len(rest.asked)) == (0, 1)


def test_given_no_view_then_views_are_listed_and_one_described(run: Run, rest: Rest) -> None:
    rest.answers["GET", VIEWS] = (200, LISTED)
    where = ("--metasrv", rest.url)

    listed = run("show", *where)
    described = run("show", "tables", "--describe", *where)

    assert listed.stdout.splitlines()[1].split() == ["tables", "1", "Tables."]
    assert described.stdout.splitlines()[1].split() == ["table_name", "string", "Its", "name."]


def test_given_a_filter_that_is_refused_then_the_place_is_marked(run: Run, rest: Rest) -> None:
    rest.answers[PATH] = Refused(
        "invalid-request",
        pointer="where",
        found="'verson' at character 0",
        expected="a column of tables",
        did_you_mean="version",
        line=1,
        column=1,
        excerpt="verson = 1\n^",
    )

    done = run("show", "tables", "--where", "verson = 1", "--metasrv", rest.url)

    assert done.exit_code == 1
    assert "--where" in done.stderr
    assert "  line 1: verson = 1\n          ^\n  did you mean version?" in done.stderr


def test_given_a_column_that_is_none_then_the_option_and_the_columns_are_named(
    run: Run, rest: Rest
) -> None:
    rest.answers[PATH] = Refused(
        "invalid-request",
        pointer="columns",
        found="x",
        expected="a column of tables",
        existing=["table_name", "version"],
    )

    done = run("show", "tables", "--columns", "x", "--metasrv", rest.url)

    assert "  --columns: expected a column of tables, found x." in done.stderr
    assert "  there are: table_name, version" in done.stderr


def test_given_a_narrow_terminal_then_rows_are_no_wider(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("metasrv.cli.output.terminal_width", lambda: 80)
    show_table(["column"] * 9, [["some words of a cell"] * 9])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_given_a_tab_then_views_and_columns_are_completed(
    rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest.answers["GET", VIEWS] = (200, LISTED)
    rest.answers[PATH] = (200, PAGE)
    monkeypatch.setenv("METASRV_URL", rest.url)
    context = cast("typer.Context", SimpleNamespace(params={"view": "tables"}, args=[]))

    assert view_names(context, "ta") == ["tables"]
    assert view_columns(context, "version,table_n") == ["version,table_name"]
    assert view_conditions(context, "version > 1 and is_") == ["version > 1 and is_done"]
    context.params["view"] = "none"
    assert view_columns(context, "t") == []
