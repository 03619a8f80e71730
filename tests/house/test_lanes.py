"""Lanes go side by side, each one thing after another, and none outlives the others' failure."""

from pathlib import Path

import pytest

from scripts.children import OUT_OF_TIME
from scripts.lanes import Lane, run, run_lanes
from tests.processes import has_ended

pytestmark = pytest.mark.process

MEET = ("sh", "-c", "touch $1; until test -e $2; do sleep 0.02; done", "meet")
FAMILY = ("sh", "-c", "sleep 300 & echo $!; wait")  # says the id of its own child
LIMIT_S = 60


def test_given_children_that_wait_for_each_other_when_in_two_lanes_then_they_meet(
    tmp_path: Path,
) -> None:
    codes: list[int] = []

    def lane(own: str, other: str) -> Lane:
        codes.append((yield from run((*MEET, own, other), cwd=tmp_path, log=None, limit_s=LIMIT_S)))

    run_lanes([lane("a", "b"), lane("b", "a")])

    assert codes == [0, 0]


def test_given_a_limit_when_it_passes_then_the_family_is_gone_and_the_lane_goes_on(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    codes: list[int] = []

    def lane() -> Lane:
        codes.append((yield from run(FAMILY, cwd=tmp_path, log=log, limit_s=3)))
        codes.append((yield from run(("true",), cwd=tmp_path, log=log, limit_s=LIMIT_S)))

    run_lanes([lane()])

    assert codes == [OUT_OF_TIME, 0]
    assert has_ended(int(log.read_text()))


def test_given_a_lane_that_fails_then_the_family_of_the_other_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def other() -> Lane:
        yield from run(FAMILY, cwd=tmp_path, log=log, limit_s=LIMIT_S)

    def fails() -> Lane:
        while not (log.exists() and log.read_text().endswith("\n")):
            yield
        raise FileNotFoundError(log.name)

    with pytest.raises(FileNotFoundError):
        run_lanes([other(), fails()])

    assert has_ended(int(log.read_text()))
