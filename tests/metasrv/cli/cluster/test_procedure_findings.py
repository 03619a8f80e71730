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
