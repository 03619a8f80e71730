"""Every reason for which a procedure waits has its row in docs/operate/procedure-stalled.md."""

import re
from pathlib import Path

from metasrv.api.http.metrics import WAITS
from metasrv_base.wire.api.procedures import WaitingBody

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/operate/procedure-stalled.md"
ROW = re.compile(r"^\| `(\w+)` \|.*`[\w/]+\.py::\w+", re.MULTILINE)
NAME = re.compile(r"`(\w+)`")


def test_given_a_reason_to_wait_then_the_page_names_the_code_that_decides_it() -> None:
    assert set(ROW.findall(PAGE.read_text())) == set(WAITS)


def test_given_a_reason_to_wait_then_the_wire_model_names_it() -> None:
    described = WaitingBody.model_json_schema()["properties"]["kind"]["description"]

    assert set(NAME.findall(described)) == set(WAITS)
