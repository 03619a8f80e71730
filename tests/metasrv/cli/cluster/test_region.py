"""Changes of the copies of a region, and drains, as a user types them."""

import pytest

from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.shapes import procedure

REGION = "/v1/regions/7"
STARTS = {
    "region switch-leader 7": f"{REGION}/switch-leader",
    "region add-copy 7": f"{REGION}/copies",
    "region remove-copy 7 dn-1": f"{REGION}/copies/dn-1/remove",
    "region move-copy 7 dn-1": f"{REGION}/copies/dn-1/move",
    "node drain dn-1 --reason x": "/v1/nodes/dn-1/drain",
}


@pytest.mark.parametrize("words", STARTS)
@pytest.mark.parametrize(("wait", "code"), [("0", 0), ("0.05", 3)])
def test_given_a_wait_when_a_procedure_is_started_then_the_service_answers_at_once(
    run: Run, rest: Rest, words: str, wait: str, code: int
) -> None:
    running = procedure(id="p-7", state="running", done=False)
    rest.answers["POST", STARTS[words]] = (202, running)
    rest.answers["GET", "/v1/procedures/p-7"] = (200, running)

    done = run(*words.split(), "--wait", wait, "--metasrv", rest.url)

    assert done.exit_code == code, done.output
    assert "metasrv procedure cancel p-7" in done.stdout
    assert [one.prefer for one in rest.asked if one.method == "POST"] == ["wait=0"]
    assert {one.prefer for one in rest.asked if one.method == "GET"} == {None}


def test_given_a_needed_copy_when_removed_by_force_without_a_reason_then_nothing_is_asked(
    rest: Rest, run: Run
) -> None:
    done = run("region", "remove-copy", "4398046511104", "dn-2", "--force", "--metasrv", rest.url)

    assert done.exit_code == 2, done.output
    assert "--force needs a --reason" in done.output
    assert rest.asked == []
