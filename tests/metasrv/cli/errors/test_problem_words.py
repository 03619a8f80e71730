"""Errors as people read them, and changes that nobody waits for."""

import json
import signal
import threading
from collections.abc import Iterator

import pytest

from metasrv.cli.errors.problem_words import words
from metasrv_base.errors import Conflict, Refused
from tests.metasrv.cli.answers import TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.shapes import procedure


def test_given_a_load_that_stopped_half_way_then_nobody_is_told_that_nothing_changed() -> None:
    told = list(words(Refused("invalid-request", reason="invalid value 'bad'", rows=500)))

    assert "  500 rows were loaded before that" in told
    assert told[-1] == "  to do: mend the file, then load it again from its start"


WAYS = "  to follow it: metasrv procedure watch p-7\n  to stop it: metasrv procedure cancel p-7\n"
RUNNING = {"id": "p-7", "state": "running", "done": False}


@pytest.mark.parametrize(
    ("wait", "code", "said"),
    [
        ("0", 0, "started p-7\n" + WAYS),
        ("0.01", 3, "p-7 is running and goes on\n" + WAYS),
    ],
)
def test_given_a_change_that_is_not_waited_for_then_it_says_how_to_follow_it(
    run: Run, rest: Rest, wait: str, code: int, said: str
) -> None:
    """`--wait 0` asks for no more than that; a wait that runs out has an exit code of its own."""
    rest.answers[("DELETE", f"{TABLES}/t")] = (202, procedure(**RUNNING))
    rest.answers[("GET", "/v1/procedures/p-7")] = (200, procedure(**RUNNING))
    words = ["table", "drop", "t", "--wait", wait, "--metasrv", rest.url]

    shown, as_json = run(*words), run(*words, "--json")

    assert (shown.exit_code, as_json.exit_code) == (code, code)
    assert (shown.stdout, shown.stderr) == (said, "")
    assert json.loads(as_json.stdout) == RUNNING


@pytest.fixture
def _heeds_ctrl_c() -> Iterator[None]:
    """Also where whoever started the tests ignores it, as a shell does for what runs behind."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_heeds_ctrl_c")
def test_given_a_change_when_interrupted_then_it_says_what_goes_on_and_how_to_stop_it(
    run: Run, rest: Rest
) -> None:
    main = threading.main_thread().ident
    assert main is not None
    rest.answers[("DELETE", f"{TABLES}/t")] = (202, procedure(**RUNNING))
    rest.answers[("GET", "/v1/procedures/p-7")] = (200, procedure(**RUNNING))
    rest.on_request = lambda method, path: (
        signal.pthread_kill(main, signal.SIGINT) if path.startswith("/v1/procedures") else None
    )

    shown = run("table", "drop", "t", "--metasrv", rest.url)

    assert shown.exit_code == 130
    assert "goes on as p-7" in shown.stderr
    assert "metasrv procedure cancel p-7" in shown.stderr


def test_given_rows_that_break_a_constraint_when_refused_then_they_are_shown() -> None:
    broken = {"constraint": "paid", "key": {"id": 7}, "values": {"price": -1}}
    twice = {"values": {"a": "x"}, "rows": [{"id": 1}, {"id": 2}]}

    checked = list(words(Refused("check-violation", name="paid", total=1, violations=[broken])))
    unique = list(words(Refused("unique-violation", index="i", total=1, duplicates=[twice])))
    there = list(
        words(Conflict("already-exists", what="The row", name={"id": 7}, keys=[{"id": 7}]))
    )

    assert "  row id=7 breaks paid: price=-1" in checked
    assert "  a=x stands in the rows id=1; id=2" in unique
    assert "  keys: id=7" in there
    assert "{'" not in "".join([*checked, *unique, *there])
