"""Wrong words on the command line: the option is named; Ctrl-C, and a full disk."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from metasrv.cli.options import confirm
from metasrv.cli.output import counted
from metasrv.sdk.control.service import TRY_MS_MAX
from metasrv.service.catalog.reading import WAIT_MS_MAX
from metasrv_base.errors import NotFound, Refused
from metasrv_base.wire.problem.problems import FieldError
from tests.metasrv.cli.answers import TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.shapes import procedure

WRONG = [
    (["table", "alter", "t", "--check", "a > 0"], "--check a > 0: it takes NAME=CONDITION"),
    (["table", "alter", "t", "--rename-column", "a"], "--rename-column a: it takes OLD:NEW"),
    (["table", "alter", "t", "--alter-type", "a"], "--alter-type a: it takes COLUMN:TYPE"),
    (["table", "alter", "t", "--set-default", "a"], "--set-default a: it takes COLUMN=DEFAULT"),
    (["table", "alter", "t", "--set-option", "a"], "--set-option a: it takes NAME=VALUE"),
    (["table", "alter", "t", "--file", "no.json"], "--file no.json: no such file or directory"),
    (
        ["table", "create", "t", "--column", "id:int64", "--key", "idd"],
        "--key idd: there is no column idd; did you mean id?",
    ),
    (["playground", "--config", "no.toml"], "--config no.toml: no such file or directory"),
    (["check", "--playground", "no.json"], "no.json: no such file or directory"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[" ".join(case[0]) for case in WRONG])
def test_given_a_word_that_is_none_then_the_option_is_named_and_what_it_takes(
    run: Run, words: list[str], said: str
) -> None:
    at = ["--metasrv", "127.0.0.1:1"] if words[0] == "table" else []

    shown = run(*words, *at)

    assert (shown.exit_code, said in shown.stderr) == (2, True), shown.stderr
    assert "Errno" not in shown.stderr


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["table", "get"], "table get [OPTIONS] TABLE"),
        (["table", "list", "a", "b"], "table list [OPTIONS] [SCHEMA]"),
        (["failover", "run", "a", "b"], "failover run [OPTIONS] [NODE]"),
        (["row", "insert", "t"], "row insert [OPTIONS] TABLE COLUMN=VALUE..."),
    ],
)
def test_given_arguments_that_are_wrong_then_the_usage_names_them_as_the_help_does(
    run: Run, words: list[str], usage: str
) -> None:
    lines = run(*words).stderr.splitlines()

    assert any(line.strip().endswith(usage) for line in lines), lines


def test_given_a_query_or_a_body_that_is_refused_then_the_option_is_named(
    run: Run, rest: Rest
) -> None:
    since = Refused("invalid-request", pointer="since", expected="a time", found="x")
    rest.answers["GET", "/v1/procedures"] = since
    region = FieldError(pointer="/region_ids/0", detail="is wrong")
    rest.answers["POST", "/v1/failovers"] = Refused(errors=(region,))

    shown = run("procedure", "list", "--since", "x", "--metasrv", rest.url)
    failover = run("failover", "run", "--region", "7", "--metasrv", rest.url)

    assert "--since: expected a time, found x." in shown.stderr
    assert "--region 7: is wrong" in failover.stderr


def test_given_a_name_with_too_many_parts_then_its_form_is_said(run: Run, rest: Rest) -> None:
    shown = run("table", "get", "a.b.c.d", "--metasrv", rest.url)

    assert "It is CATALOG.SCHEMA.TABLE at most" in shown.stderr


def test_given_a_procedure_when_watched_without_a_wait_then_it_was_not_started(
    run: Run, rest: Rest
) -> None:
    """Exit 0 would say that it has succeeded."""
    running = procedure(id="p-7", state="running", done=False)
    rest.answers["GET", "/v1/procedures/p-7"] = (200, running)
    words = ["procedure", "watch", "p-7", "--wait", "0", "--metasrv", rest.url]

    shown, as_json = run(*words), run(*words, "--json")

    assert (shown.exit_code, as_json.exit_code) == (3, 3)
    assert shown.stdout.startswith("p-7 is running and goes on\n")
    assert json.loads(as_json.stdout)["done"] is False


def test_given_a_question_when_nobody_agrees_then_nothing_is_changed(
    run: Run, rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer, code in (("n\n", 1), ("", 130)):
        read, write = os.pipe()
        os.write(write, answer.encode())
        os.close(write)
        with os.fdopen(read) as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            monkeypatch.setattr(stdin, "isatty", lambda: True, raising=False)
            with pytest.raises(typer.Exit) as ended:
                confirm("All rows go.", yes=False)
        assert ended.value.exit_code == code
    assert rest.asked == []


def metasrv(*words: str) -> list[str]:
    return [sys.executable, "-c", "from metasrv.cli.main import main; main()", *words]


def test_given_a_full_disk_behind_stdout_then_one_line_says_so(rest: Rest) -> None:
    rest.answers["GET", TABLES] = (
        200,
        {"tables": [], "catalog_version": 1, "next_page_token": None},
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            metasrv("table", "list", "--metasrv", rest.url),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr == b"error: the output cannot be written: No space left on device\n"


def test_given_ctrl_c_before_a_command_begins_then_there_is_no_traceback() -> None:
    code = (
        "import os, signal, metasrv.cli.main as m\n"
        "m.application = lambda commands: os.kill(os.getpid(), signal.SIGINT)\n"
        "m.main(['table', 'list'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )

    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["node", "get", "a/b"], "'a/b' is not an id"),
        (["procedure", "get", ""], "'' is not an id"),
        (["region", "get", "1?x"], "'1?x' is not an id"),
        (["setting", "get", "a%2fb"], "'a%2fb' is not an id"),
        (["explain", "table", "list"], "table list changes nothing"),
    ],
)
def test_given_a_word_that_is_no_id_or_no_change_then_it_is_usage_and_nothing_is_sent(
    run: Run, rest: Rest, words: list[str], said: str
) -> None:
    shown = run(*words, METASRV_URL=rest.url)

    assert (shown.exit_code, said in shown.stderr) == (2, True), shown.stderr
    assert rest.asked == []


def test_given_a_token_with_a_line_break_then_the_variable_is_named(run: Run, rest: Rest) -> None:
    shown = run("node", "list", "--metasrv", rest.url, METASRV_TOKEN="a\nb")

    assert (shown.exit_code, "METASRV_TOKEN: a token is printable" in shown.stderr) == (2, True)


def test_a_server_tells_its_version_before_a_client_gives_it_up() -> None:
    assert WAIT_MS_MAX < TRY_MS_MAX


def test_given_something_that_is_not_found_then_the_error_says_what() -> None:
    assert str(NotFound(what="index", name="by_nam")) == "There is no index by_nam. (not-found)"


def test_given_one_or_more_then_they_are_counted_in_words() -> None:
    assert counted(1, "row") == "1 row"
    assert (counted(2, "batch", "batches"), counted(0, "row")) == ("2 batches", "0 rows")
