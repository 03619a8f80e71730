"""`metasrv failover run`: several procedures, one wait, and each of them told."""

import json
from typing import Any

import pytest

from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.shapes import procedure

FAILOVERS = "/v1/failovers"
WORDS = ["failover", "run", "--region", "7", "--region", "8"]
SUCCEEDED: dict[str, Any] = {"state": "succeeded", "done": True}
RUNNING: dict[str, Any] = {"state": "running", "done": False}
FAILED: dict[str, Any] = {
    "state": "failed",
    "done": True,
    "error": {"code": "region-lost", "detail": "no copy is left", "facts": {"region_id": "8"}},
}


def given(rest: Rest, *ends: dict[str, Any]) -> None:
    """One procedure for each of *ends*: p-0, p-1."""
    started = [procedure(id=f"p-{number}", **RUNNING) for number in range(len(ends))]
    rest.answers["POST", FAILOVERS] = (202, {"procedures": started})
    for one, end in zip(started, ends, strict=True):
        rest.answers["GET", f"/v1/procedures/{one['id']}"] = (200, {**one, **end})


@pytest.mark.parametrize(
    ("ends", "wait", "code"),
    [
        ([SUCCEEDED, SUCCEEDED], "9", 0),
        ([RUNNING, RUNNING], "0", 0),
        ([RUNNING, RUNNING], "0.05", 3),
        ([RUNNING, SUCCEEDED], "0.05", 3),
        ([FAILED, SUCCEEDED], "9", 1),
        ([RUNNING, FAILED], "0.05", 1),
    ],
)
def test_given_two_procedures_when_they_end_or_not_then_both_are_told_and_the_worst_counts(
    run: Run, rest: Rest, ends: list[dict[str, Any]], wait: str, code: int
) -> None:
    given(rest, *ends)

    shown = run(*WORDS, "--wait", wait, "--metasrv", rest.url)
    as_json = run(*WORDS, "--wait", wait, "--json", "--metasrv", rest.url)

    assert (shown.exit_code, as_json.exit_code) == (code, code), shown.output
    assert [(one["id"], one["state"]) for one in json.loads(as_json.stdout)] == [
        (f"p-{number}", end["state"]) for number, end in enumerate(ends)
    ]
    for number, end in enumerate(ends):
        goes_on = f"metasrv procedure cancel p-{number}" in shown.stdout
        assert (f"p-{number}" in shown.stdout, goes_on) == (True, end is RUNNING)
    assert ("no copy is left" in shown.stderr) == (FAILED in ends)
    assert ("no copy is left" in as_json.stderr) == (FAILED in ends)


def test_given_two_procedures_when_started_then_the_service_answers_at_once(
    run: Run, rest: Rest
) -> None:
    given(rest, RUNNING, RUNNING)

    run(*WORDS, "--wait", "0", "--metasrv", rest.url)

    assert rest.asked[0].prefer == "wait=0"
    assert {one.prefer for one in rest.asked[1:]} == {None}


@pytest.mark.usefixtures("impatient")
def test_given_a_service_that_does_not_answer_when_waited_for_then_all_ids_are_told(
    run: Run, rest: Rest
) -> None:
    given(rest, RUNNING, RUNNING)
    rest.answers["GET", "/v1/procedures/p-0"] = (502, b"a proxy")

    shown = run(*WORDS, "--wait", "9", "--metasrv", rest.url)

    assert shown.exit_code == 2, shown.output
    assert "p-0" in shown.stdout
    assert "p-1" in shown.stdout
    assert "HTTP status 502" in shown.stderr
