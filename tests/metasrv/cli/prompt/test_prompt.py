"""`metasrv sql` without a text: an interactive prompt, at a real terminal."""

import subprocess
import sys
from pathlib import Path

import pytest

from metasrv_base.errors import Refused
from metasrv_base.wire.language.sql import StatementResult, with_results
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.prompt.typing_at import (
    CTRL_C,
    CTRL_D,
    ENTER,
    PROMPT,
    TAB,
    prompt,
)
from tests.metasrv.cli.rest import LEARN, Rest, serving
from tests.metasrv.playground.waiting import until
from tests.metasrv.sdk.shapes import procedure

pytestmark = pytest.mark.process

PATH = ("POST", "/v1/sql")
VIEWS = "/v1/information-schema"
SHOWN = {"results": [{"offset": 0, "columns": ["table", "id"], "rows": [["t", "5"]]}]}
RUNNING = procedure(kind="truncate_table", state="running", done=False)


@pytest.fixture
def service(rest: Rest) -> Rest:
    rest.answers["GET", LEARN] = (200, {"metasrvs": [{"url": rest.url}]})
    rest.answers[PATH] = (200, SHOWN)
    return rest


def _texts(rest: Rest) -> list[str]:
    return [asked.body["text"] for asked in rest.asked if (asked.method, asked.path) == PATH]


def test_given_statements_over_several_lines_then_they_are_sent_at_their_end(
    service: Rest, tmp_path: Path
) -> None:
    with prompt(service.url, tmp_path) as at:
        at.types(f"show{ENTER}tables;{ENTER}")
        at.shows("t      5\n")
        at.shows(PROMPT)
        at.types(CTRL_D)
        code = at.ends()

    assert code == 0
    assert _texts(service) == ["show\ntables"]
    history = tmp_path / "metasrv" / "sql_history"
    assert history.read_text().endswith("+show\n+tables;\n")
    assert history.stat().st_mode & 0o777 == 0o600


def test_given_an_earlier_prompt_then_its_inputs_are_found_again(
    service: Rest, tmp_path: Path
) -> None:
    up = "\x1b[A"
    with prompt(service.url, tmp_path) as at:
        at.types(f"show tables;{ENTER}")
        at.shows("t      5\n")
        at.shows(PROMPT)
        at.types(rf"\q{ENTER}")
        assert at.ends() == 0

    with prompt(service.url, tmp_path) as at:
        at.types(up)
        at.shows(r"\q")
        at.types(up)
        at.shows("show tables;")
        at.types(ENTER)
        at.shows("t      5\n")

    assert _texts(service) == ["show tables"] * 2


def test_given_ctrl_c_then_the_input_is_abandoned(service: Rest, tmp_path: Path) -> None:
    with prompt(service.url, tmp_path) as at:
        at.types("drop table 'it")
        at.shows("'it")
        at.types(CTRL_C)
        at.shows(PROMPT)
        at.types(f"show tables;{ENTER}")
        at.shows("t      5\n")

    assert _texts(service) == ["show tables"]


def test_given_ctrl_c_while_a_change_runs_then_it_says_what_goes_on_and_how_to_stop_it(
    service: Rest, tmp_path: Path
) -> None:
    running = {"offset": 0, "procedure_id": RUNNING["id"], "procedure": RUNNING}
    service.answers[PATH] = (202, {"results": [running]})
    service.answers["GET", f"/v1/procedures/{RUNNING['id']}"] = (200, RUNNING)

    with prompt(service.url, tmp_path) as at:
        at.types(f"truncate t;{ENTER}")
        at.shows("truncate_table")  # the progress
        at.types(CTRL_C)
        at.shows(f"interrupted; truncate_table goes on as {RUNNING['id']}\n")
        at.shows(f"to stop it: metasrv procedure cancel {RUNNING['id']}\n")
        at.shows(PROMPT)
        service.answers[PATH] = (200, SHOWN)
        at.types(f"show tables;{ENTER}")
        at.shows("t      5\n")


def test_given_a_refusal_then_results_before_it_and_its_place_are_shown_and_it_goes_on(
    service: Rest, tmp_path: Path
) -> None:
    before = StatementResult(offset=0, columns=("table",), rows=(("before",),))
    facts = {"line": 2, "column": 6, "excerpt": "drop tabel t;\n     ^", "statement": 2}
    service.answers[PATH] = with_results(Refused("invalid-request", **facts), [before])

    with prompt(service.url, tmp_path) as at:
        at.types(f"show tables; drop tabel t;{ENTER}")
        at.shows("before\n")
        at.shows("error: ")
        at.shows("  line 2: drop tabel t;\n               ^")
        at.shows(PROMPT)
        at.types(rf"\q{ENTER}")
        assert at.ends() == 0


def test_given_a_server_that_is_lost_then_it_is_reported_and_the_prompt_goes_on(
    tmp_path: Path,
) -> None:
    with serving() as rest:
        rest.headers["connection"] = "close"
        entered = prompt(rest.url, tmp_path)
        at = entered.__enter__()
    try:
        at.types(f"show tables;{ENTER}")
        at.shows("error: ")
        at.shows(rest.url)
        at.shows(PROMPT)
        at.types(rf"\q{ENTER}")
        assert at.ends() == 0
    finally:
        entered.__exit__(None, None, None)


def test_given_names_of_the_service_then_tab_completes_them(service: Rest, tmp_path: Path) -> None:
    table = ["main", "public", "cities"]
    of_table = ["table_catalog", "table_schema", "table_name"]
    rows = {
        "schemata": (["catalog_name", "schema_name"], ["main", "public"]),
        "tables": (of_table, table),
        "columns": ([*of_table, "column_name"], [*table, "people"]),
        "indexes": ([*of_table, "index_name"], [*table, "by_people"]),
    }
    for view, (columns, row) in rows.items():
        page = {"view": view, "columns": columns, "rows": [row], "catalog_version": 1}
        service.answers["GET", f"{VIEWS}/{view}"] = (200, page)

    with prompt(service.url, tmp_path) as at:
        at.types("SELECT peop")
        at.shows("peop")
        at.types(TAB)
        at.shows("le", lambda: at.types(TAB))
        at.types(" FROM cit" + TAB)
        at.shows("ies", lambda: at.types(TAB))
        at.types(f";{ENTER}")
        until(lambda: any("schema-lease" in each.path for each in service.asked), 60)
        at.types(CTRL_C)  # no frontend serves it: it waits for one
        at.shows("interrupted; nothing was changed")

    assert _texts(service) == []


def test_given_shortcuts_then_they_change_what_is_shown(service: Rest, tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text("show schemas;")
    with prompt(service.url, tmp_path) as at:
        for keys, shown in (
            (r"\x", "a line for each value\n"),
            (r"\timing", "timing is on\n"),
            ("show tables;", "-- row 1\n"),
            ("", "time: "),
            (rf"\i {file}", "-- row 1\n"),
            (r"\i /nowhere/a.sql", "error: /nowhere/a.sql: no such file"),
            (r"\?", "leave, as Ctrl-D does"),
            (r"\z", r"error: there is no shortcut \z"),
            (r"\l", "-- row 1\n"),
        ):
            at.types(f"{keys}{ENTER}" if keys else "")
            at.shows(shown)
        at.types(rf"\c shop.hr{ENTER}")
        at.shows("shop.hr>")
        at.types(f"show tables;{ENTER}")
        at.shows("-- row 1\n")

    assert _texts(service) == ["show tables", "show schemas", "SHOW CATALOGS", "show tables"]
    last = service.asked[-1].body
    assert (last["catalog"], last["schema"]) == ("shop", "hr")


def test_given_watch_then_a_query_is_repeated_until_ctrl_c_and_a_change_is_not(
    service: Rest, tmp_path: Path
) -> None:
    with prompt(service.url, tmp_path) as at:
        at.types(f"show tables;{ENTER}")
        at.shows("t      5\n")
        at.types(rf"\watch 0.1{ENTER}")
        for _ in range(3):
            at.shows("t      5\n")
        at.types(CTRL_C)
        at.shows(PROMPT)
        at.types(f"drop table t;{ENTER}")
        at.shows("t      5\n")
        at.types(rf"\watch{ENTER}")
        at.shows("the last input is not a query")

    assert _texts(service)[-1] == "drop table t"


def test_given_a_text_then_no_library_of_the_prompt_is_imported(run: Run, rest: Rest) -> None:
    code = "import sys, metasrv.cli.language.sql, metasrv.cli.prompt.prompt as p; " + (
        "print('prompt_toolkit' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_given_no_terminal_then_stdin_is_read(run: Run, rest: Rest) -> None:
    rest.answers[PATH] = (200, SHOWN)
    code = "from metasrv.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "sql", "--metasrv", rest.url],
        input="show tables",
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout) == (0, "table  id\nt      5\n")
    assert _texts(rest) == ["show tables"]
