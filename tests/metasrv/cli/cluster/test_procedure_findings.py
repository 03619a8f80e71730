"""`metasrv procedure get` and `watch` of a change that rows were in the way of."""

from typing import Any

import pytest

from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.shapes import procedure

BROKEN = {
    "code": "check-violation",
    "detail": "2 rows break positive",
    "facts": {
        "name": "positive",
        "total": 2,
        "violations": [
            {"constraint": "positive", "key": {"id": 7}, "values": {"price": -1}},
            {"constraint": "positive", "key": {"id": 8}, "values": {"price": None}},
        ],
    },
}
FAULT = {
    "rule": "entry-missing",
    "region_id": "4398046511104",
    "element": "by_note",
    "keys": [{"id": 5}],
    "values": {"note": "x"},
}
CHECKED = {
    "table_id": 1024,
    "name": "main.public.t",
    "rows": 1,
    "entries": 0,
    "clean": False,
    "totals": {"entry-missing": 1},
    "faults": [FAULT],
}


@pytest.mark.parametrize("command", ["get", "watch"])
def test_given_rows_that_break_a_constraint_when_shown_then_each_with_its_key(
    command: str, run: Run, rest: Rest
) -> None:
    found: dict[str, Any] = procedure(state="rolled_back", done=True, error=BROKEN)
    rest.answers["GET", f"/v1/procedures/{found['id']}"] = (200, found)

    shown = run("procedure", command, found["id"], "--metasrv", rest.url)

    for said in ("row id=7 breaks positive: price=-1", "row id=8 breaks positive: price=null"):
        assert said in shown.output


def test_given_a_check_that_found_faults_when_shown_then_each_of_them(run: Run, rest: Rest) -> None:
    found = procedure(kind="check_table", state="succeeded", done=True, result=CHECKED)
    rest.answers["GET", f"/v1/procedures/{found['id']}"] = (200, found)

    shown = run("procedure", "get", found["id"], "--metasrv", rest.url)

    assert shown.exit_code == 0, shown.output
    assert "entry-missing: region_id=4398046511104, element=by_note" in shown.output
    assert '{"id": 5}' in shown.output


def test_given_procedures_of_one_table_when_listed_then_short_ids_differ_and_are_taken(
    run: Run, rest: Rest
) -> None:
    ids = [f"018f3c0a-0000-7000-8000-00000000000{number}" for number in range(2)]
    ids.append("018f3c0b-0000-7000-8000-000000000000")
    listed = [procedure(id=id, kind="create_index") for id in ids]
    rest.answers["GET", "/v1/procedures"] = (200, {"procedures": listed, "next_page_token": None})
    rest.answers["GET", f"/v1/procedures/{ids[2]}"] = (200, listed[2])

    shown = run("procedure", "list", "--metasrv", rest.url)
    by_beginning = run("procedure", "get", "018f3c0b", "--metasrv", rest.url)
    by_too_little = run("procedure", "get", "018f3c0a", "--metasrv", rest.url)

    lines = shown.stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ids
    assert by_beginning.exit_code == 0
    assert ids[2] in by_beginning.stdout
    assert by_too_little.exit_code == 2
    assert ids[0] in by_too_little.stderr
    assert ids[1] in by_too_little.stderr


def test_given_a_procedure_when_shown_then_its_request_reasons_and_throttle_are(
    run: Run, rest: Rest
) -> None:
    body = {"name": "by_note", "columns": ["note"], "unique": False, "if_not_exists": False}
    control = {"action": "pause", "by": "ada", "at": "2026-01-01T00:00:00Z", "reason": "disk full"}
    found = procedure(
        state="paused",
        kind="create_index",
        statement={"method": "POST", "path": "/v1/x", "body": body},
        controls=[control],
        throttle_percent=50,
        throttle_rows_per_s=2000,
        progress={
            "phase": "fill",
            "done": 5,
            "total": 9,
            "unit": "rows",
            "rate_per_s": 7.0,
            "eta_s": 0,
        },
    )
    rest.answers["GET", f"/v1/procedures/{found['id']}"] = (200, found)

    shown = run("procedure", "get", found["id"], "--metasrv", rest.url).stdout

    for said in (
        'name=by_note, columns=["note"]\n',
        "pause by ada at 2026-01-01T00:00:00Z: disk full",
        "rests 50 % of the time, 2,000 rows a second at most",
        "5 of 9 rows\n",
    ):
        assert said in shown
    assert "/v1/" not in shown


def test_given_a_state_that_there_is_not_when_listed_then_the_near_one_is_suggested(
    run: Run, rest: Rest
) -> None:
    shown = run("procedure", "list", "--state", "runing", "--metasrv", rest.url)

    assert shown.exit_code == 2
    assert "did you mean running?" in shown.stderr
    assert "rolled_back" in shown.stderr
    assert rest.asked == []
